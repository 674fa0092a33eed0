// The page's lifecycle: positions are saved before it closes, the connection is checked when it is visible again, and a hidden
// page can disconnect.
//
// A hidden page may be frozen or discarded without another event, and its connection may be lost unnoticed. So positions are
// saved when the page is hidden or left, and the server is pinged when it is visible again.

import { after } from "./signal.js";
import { NEVER_MS } from "./arguments.js";

/** @typedef {import("./platform/platform.js").Platform} Platform */

/**
 * @typedef {object} Care
 * @property {() => void} doubt
 * @property {() => unknown} save
 * @property {Platform["watchPage"]} watchPage
 */

/** Watches the page for one client. */
export class Background {
  #client;
  #pauseHiddenMs;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #hasPaused = false; // this, and not the user
  stop = () => {};

  /**
   * @param {{ pause: () => void, resume: () => void, isPaused: boolean }} client
   * @param {number | null} pauseHiddenMs
   * @param {Care} care
   */
  constructor(client, pauseHiddenMs, { doubt, save, watchPage }) {
    this.#client = client;
    this.#pauseHiddenMs = pauseHiddenMs;
    const stopWatching = watchPage({
      hidden: () => {
        save();
        this.#hidden();
      },
      visible: () => {
        this.#visible();
        doubt();
      },
      online: doubt,
      leaving: save,
    });
    this.stop = () => {
      clearTimeout(this.#timer);
      stopWatching();
    };
  }

  #hidden() {
    if (this.#pauseHiddenMs === null || this.#pauseHiddenMs >= NEVER_MS) return;
    clearTimeout(this.#timer);
    this.#timer = after(this.#pauseHiddenMs, () => {
      if (this.#client.isPaused) return; // the program paused it and will resume it
      this.#hasPaused = true;
      this.#client.pause();
    });
  }

  #visible() {
    clearTimeout(this.#timer);
    if (!this.#hasPaused) return;
    this.#hasPaused = false;
    this.#client.resume();
  }
}
