// Finds the frame for which a server closed because one was too big: the largest that was sent on this connection.
//
// A publish that was alone in it is refused. Several are sent one by one on the next connection. Any other command ends the
// client, because it would be refused again without end.

import { CODES, Code } from "../codes.js";
import { SessionClosed } from "../errors.js";

/** @typedef {import("../codec/command.js").Command} Command */
/** @typedef {import("./publishing.js").Frame} Frame */
/** @typedef {import("./publishing.js").PublishQueue} PublishQueue */

/** @type {Frame} */
const NONE = { size: 0, ids: [], isMixed: false };

/** The frames of one connection; only the largest is remembered. */
export class SentFrames {
  #largest = NONE;

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
   * The server refused the largest for its size; returns what ends the client, if it does.
   * @param {PublishQueue} publishes
   */
  refused(publishes) {
    const { size, ids } = this.#largest;
    if (ids.length > 0) publishes.refuseTooBig(this.#largest);
    if (ids.length > 0 || size === 0) return null;
    const sentence = CODES.get(Code.MessageTooBig)?.sentence ?? "";
    return new SessionClosed(Code.MessageTooBig, `a command of ${size} bytes is not accepted: ${sentence}`);
  }
}
