// One watch as a stream carries it: which selectors it was told to have subscribers. Each new stream tells the state first, in
// which those who left meanwhile do not appear: who is not told again soon has gone.

const STATE_MS = 1_000; // within this after the answer the whole state has been told

export class Watched {
  isServed = false; // its reply has been told
  /** @type {Set<string>} */
  #known = new Set();
  /** @type {Set<string>} told by an earlier stream only */
  #unconfirmed = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {{ id: number, watch: string }} command */
  constructor({ id, watch }) {
    this.id = id;
    this.selector = watch;
  }

  get command() {
    return { id: this.id, watch: this.selector };
  }

  /**
   * The node watches from now on; the state follows.
   * @param {(frame: string) => void} tell
   */
  asked(tell) {
    this.stop();
    this.#unconfirmed = new Set([...this.#unconfirmed, ...this.#known]);
    if (this.#unconfirmed.size === 0) return;
    this.#timer = setTimeout(() => {
      for (const interest of this.#unconfirmed) {
        this.#known.delete(interest);
        tell(JSON.stringify({ interest, subscribers: false }));
      }
      this.#unconfirmed.clear();
    }, STATE_MS);
  }

  /** @param {{ interest: string, subscribers: boolean }} read */
  told({ interest, subscribers }) {
    this.#unconfirmed.delete(interest);
    if (subscribers) this.#known.add(interest);
    else this.#known.delete(interest);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
