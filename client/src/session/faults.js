// What ends a client that its server's frames keep breaking: a message that cannot be received comes again after each
// reconnect, so the second time in a row is the last.

import { ClientError } from "../errors.js";

const HELD_MS = 60_000; // a connection that held so long before is a first time again

/** Whether the last connection that was served broke by a frame as well. */
export class Faults {
  #hasBroken = false;

  /**
   * A connection ended; returns what ends the client, if it does.
   * @param {string | null} fault the frame that broke it, in words
   * @param {number | null} servedMs null: it never was served, or could not be made; without a fault that tells nothing
   * @returns {ClientError | null}
   */
  lost(fault, servedMs) {
    if (fault === null && servedMs === null) return null;
    const isAgain = this.#hasBroken && (servedMs === null || servedMs < HELD_MS);
    this.#hasBroken = fault !== null;
    return fault !== null && isAgain ? new ClientError(`the server sent ${fault}, twice in a row; the client does not connect a third time`) : null;
  }
}
