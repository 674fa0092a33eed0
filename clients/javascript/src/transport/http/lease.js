// How long a stream is kept if connections are scarce: for a while, and then other pages get its connection.

/** @typedef {import("./http_link.js").Host} Host */

const LOOK_MS = 100; // until a stream that cannot be closed yet is checked again

export class Lease {
  #host;
  #isBusy;
  #over;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {Host} host
   * @param {() => boolean} isBusy the stream cannot be closed yet
   * @param {(restMs: number) => void} over
   */
  constructor(host, isBusy, over) {
    this.#host = host;
    this.#isBusy = isBusy;
    this.#over = over;
  }

  begin() {
    this.stop();
    const { pace } = this.#host;
    if (pace !== null) this.#timer = setTimeout(() => this.#look(), pace.leaseMs);
  }

  stop() {
    clearTimeout(this.#timer);
  }

  #look() {
    const { pace } = this.#host;
    if (pace === null) return;
    if (this.#isBusy()) this.#timer = setTimeout(() => this.#look(), LOOK_MS);
    else this.#over(pace.restMs);
  }
}
