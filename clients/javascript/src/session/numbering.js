// The numbers of one client's publishes, by which the server recognizes a repeated one (protocol.md, 4.16).

/** @typedef {import("../codec/command.js").Connect} Connect */

/** Assigns rising numbers, and knows the number below which nothing will be sent again. */
export class Numbering {
  #publisher;
  #canNumber;
  #next = 1;
  #keys = 0;
  /** @type {Set<number>} in the order in which they were given */
  #open = new Set();
  isKnown = false; // to the server, on this connection

  /**
   * @param {string} [publisher] id of this client object; empty: publishes are not numbered
   * @param {boolean} [canNumber] false: publishes have keys, because HTTP knows no numbers and may carry them next
   */
  constructor(publisher = "", canNumber = publisher !== "") {
    this.#publisher = publisher;
    this.#canNumber = canNumber;
  }

  /**
   * The command that introduces this client.
   * @param {number} id
   * @param {string | null} token
   * @param {string} client
   * @param {number} frameBytesMax
   * @returns {Connect}
   */
  connect(id, token, client, frameBytesMax) {
    const command = { verb: /** @type {const} */ ("connect"), id, token, client, frameBytesMax };
    return !this.#canNumber ? command : { ...command, publisher: this.#publisher, number: this.#next };
  }

  /** @param {boolean} hasPublisher whether the server numbers this publisher */
  connected(hasPublisher) {
    this.isKnown = hasPublisher && this.#canNumber;
  }

  take() {
    this.#open.add(this.#next);
    return this.#next++;
  }

  /**
   * This number is not sent any more.
   * @param {number} number
   */
  settle(number) {
    this.#open.delete(number);
  }

  /** All numbers below it are settled. */
  get floor() {
    const [first = this.#next] = this.#open;
    return first;
  }

  /** An idempotency key: where no numbers are given, the server has no room for another publisher, and for standard messages. */
  key() {
    return `${this.#publisher.slice(0, 16)}.${(++this.#keys).toString(16)}`;
  }
}
