// The console's only clock: at most one refresh a second, never two at once, none while the tab is hidden.

import { cancel, isHidden, later, nowMs, onVisibility } from "./browser.js";

const INTERVAL_MS = 1000;

export class Pace {
  // `refresh` is awaited: a slow node is asked again only after it has answered.
  constructor(refresh) {
    this.refresh = refresh;
    this.timer = 0;
    this.isRunning = false;
    onVisibility(() => (isHidden() ? cancel(this.timer) : this.soon(0)));
  }

  soon(ms) {
    cancel(this.timer);
    if (!isHidden()) this.timer = later(() => this.beat(), ms);
  }

  async beat() {
    if (this.isRunning) return;
    this.isRunning = true;
    const began_ms = nowMs();
    try {
      await this.refresh();
    } finally {
      this.isRunning = false;
      this.soon(Math.max(0, INTERVAL_MS - (nowMs() - began_ms)));
    }
  }
}
