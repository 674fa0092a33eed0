// Somebody waits, somebody rings. A ring that nobody waits for is not kept: look first, then wait, without a pause between.

import { NEVER_MS } from "./arguments.js";

/**
 * A timer for any number of milliseconds. Timers of JavaScript fire at once past 2^31 ms: such a long one never fires here.
 * @param {number} ms
 * @param {() => void} call
 * @returns {ReturnType<typeof setTimeout> | undefined}
 */
export function after(ms, call) {
  return ms < NEVER_MS ? setTimeout(call, ms) : undefined;
}

/** One bell, any number of waiters. */
export class Bell {
  /** @type {Promise<void> | null} */
  #rung = null;
  #resolve = () => {};

  /** Until the next ring. */
  wait() {
    this.#rung ??= new Promise((resolve) => {
      this.#resolve = resolve;
    });
    return this.#rung;
  }

  /**
   * Until the next ring, or so many milliseconds.
   * @param {number} ms
   * @returns {Promise<void>}
   */
  waitAtMost(ms) {
    return new Promise((resolve) => {
      const timer = after(ms, resolve);
      this.wait().then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  ring() {
    this.#resolve();
    this.#rung = null;
    this.#resolve = () => {};
  }
}
