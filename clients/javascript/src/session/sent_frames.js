// Finds the frame for which a server closed because one was too big: the largest that was sent on this connection.
//
// If it held a single publish, that is refused. Several are sent one by one on the next connection. Any other command ends the
// client, because it would be refused again without end. The client reconnects at once, and for a minute refuses a publish
// whose frame would be as large, without sending it: the server's limit may have been raised since.

import { CODES, Code } from "../codes.js";
import { SessionClosed } from "../errors.js";

/** @typedef {import("../codec/command.js").Command} Command */
/** @typedef {import("./publishing.js").Frame} Frame */
/** @typedef {import("./publishing.js").PublishQueue} PublishQueue */

/** @type {Frame} */
const NONE = { size: 0, ids: [], isMixed: false };
const LEARNED_MS = 60_000; // how long a size that was refused is not sent again
const ENVELOPE_BYTES = 64; // by which frames of the same publish differ: its id and number, and whether it is a repeat

/** The frames of one connection; only the largest is remembered. */
export class SentFrames {
  wasRefused = false; // the last connection ended because a frame was too large
  #largest = NONE;
  #refusedSize = Infinity; // bytes of the smallest frame that the server refused
  #refusedAt = 0;

  /** A new connection. */
  clear() {
    this.#largest = NONE;
  }

  /**
   * These commands were sent as one frame of `size` bytes.
   * @param {Command[]} batch
   * @param {number} size
   */
  sent(batch, size) {
    if (size <= this.#largest.size) return;
    const ids = batch.filter(({ verb }) => verb === "publish").map(({ id }) => id);
    this.#largest = { size, ids, isMixed: batch.length > 1 };
  }

  /**
   * Whether the server refused a frame of about this size or a smaller one a short time ago.
   * @param {number} size
   * @param {number} now
   */
  isTooLarge(size, now) {
    return size + ENVELOPE_BYTES > this.#refusedSize && now - this.#refusedAt < LEARNED_MS;
  }

  /**
   * The connection ended with this close code. If the largest frame was refused for its size, returns what ends the client, if
   * it does.
   * @param {number | null} code
   * @param {PublishQueue} publishes
   * @param {number} now
   */
  lost(code, publishes, now) {
    const { size, ids } = this.#largest;
    this.wasRefused = code === Code.MessageTooBig && ids.length > 0;
    if (code !== Code.MessageTooBig) this.#refusedSize = Infinity; // the next server may have another limit
    if (this.wasRefused) {
      publishes.refuseTooBig(this.#largest);
      if (!this.isTooLarge(size, now)) [this.#refusedSize, this.#refusedAt] = [size, now];
    }
    if (code !== Code.MessageTooBig || ids.length > 0 || size === 0) return null;
    const sentence = CODES.get(Code.MessageTooBig)?.sentence ?? "";
    return new SessionClosed(Code.MessageTooBig, `a command of ${size} bytes is not accepted: ${sentence}`);
  }
}
