// Somebody waits, somebody rings. A ring that nobody waits for is not kept: look first, then wait, without a pause between.

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
      const timer = setTimeout(resolve, ms);
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
