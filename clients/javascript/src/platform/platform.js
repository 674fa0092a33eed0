// The differences between a browser and Node, as one value; the rest of the client is the same for both.

/**
 * @typedef {object} PageEvents events of the page
 * @property {() => void} hidden the page is hidden
 * @property {() => void} visible the page is visible again
 * @property {() => void} online the network may be back
 * @property {() => void} leaving the page may be closed after this call
 */

/**
 * @typedef {object} Platform
 * @property {import("../transport/transport.js").Transport} open a WebSocket
 * @property {import("../transport/http/answer.js").Ask} ask one request over HTTP, whose answer can be read as it arrives
 * @property {() => number} now milliseconds of a clock that never runs backwards
 * @property {(bytes: number) => string} randomText so many unguessable bytes, as hexadecimal digits
 * @property {(() => import("../transport/http/tab_pacing.js").Page)} [newPage] the page of a client's connection; absent outside browsers
 * @property {(events: PageEvents) => () => void} watchPage returns how to stop; does nothing where there is no page
 */

/**
 * Unguessable bytes as hexadecimal digits.
 * @param {Uint8Array} bytes
 */
export function hexadecimal(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
