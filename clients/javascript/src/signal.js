// A notification for any number of waiters. It is not stored: check the state first, then call `wait` without an `await` in between.

import { NEVER_MS } from "./arguments.js";

/** @type {typeof Symbol.asyncDispose} `await using` calls the method of this name */
export const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose"); // older browsers lack it

/**
 * A timer for any number of milliseconds. JavaScript's timers fire at once above 2^31 ms; this one never fires then.
 * @param {number} ms
 * @param {() => void} call
 * @returns {ReturnType<typeof setTimeout> | undefined}
 */
export function after(ms, call) {
  return ms < NEVER_MS ? setTimeout(call, ms) : undefined;
}

/** Wakes all waiters. */
export class Signal {
  /** @type {Promise<void> | null} */
  #notified = null;
  #resolve = () => {};

  /** Resolves at the next `notify`. */
  wait() {
    this.#notified ??= new Promise((resolve) => {
      this.#resolve = resolve;
    });
    return this.#notified;
  }

  /**
   * Resolves at the next `notify`, or after `ms` milliseconds.
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

  notify() {
    this.#resolve();
    this.#notified = null;
    this.#resolve = () => {};
  }
}
