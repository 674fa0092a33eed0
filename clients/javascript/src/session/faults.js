// Ends a client whose connection breaks on a frame of the server twice in a row: a message that cannot be received would
// arrive again after each reconnect.

import { ClientError } from "../errors.js";

const HELD_MS = 60_000; // a connection that held so long before is a first time again

/** Whether the last connection that was served broke by a frame as well. */
export class Faults {
  #hasBroken = false;
  #wasMisread = false;

  /**
   * A connection ended; returns what ends the client, if it does.
   * @param {string | null} fault what was wrong with the frame that broke it, a sentence
   * @param {number | null} servedMs null: it never was served, or could not be made; without a fault that is not conclusive
   * @returns {ClientError | null}
   */
  lost(fault, servedMs) {
    if (fault === null && servedMs === null) return null;
    const isAgain = this.#hasBroken && (servedMs === null || servedMs < HELD_MS);
    this.#hasBroken = fault !== null;
    return fault !== null && isAgain ? new ClientError(`${fault}, twice in a row; the client does not connect a third time`) : null;
  }

  /**
   * A connection ended: whether the server could not read one of its frames, and could read all of the connection before.
   * Then the client reconnects at once; what is misread again waits like any other failure.
   * @param {boolean} isMisread
   * @param {boolean} wasServed
   */
  isFirstMisread(isMisread, wasServed) {
    const isFirst = isMisread && !this.#wasMisread;
    if (wasServed) this.#wasMisread = isMisread;
    return isFirst;
  }
}
