// The encodings of this client, by the names that its options use.

import { BinaryEncoding } from "./binary.js";
import { JsonEncoding } from "./json.js";

/** @typedef {"json" | "binary"} EncodingName */

/**
 * @typedef {object} Encoding the encoding of one connection; it may keep state of that connection
 * @property {string} subprotocol
 * @property {(commands: import("./command.js").Command[]) => string | Uint8Array} encode several as one frame, in order
 * @property {(frame: string | Uint8Array) => import("./push.js").Received[]} decode one frame; throws FrameInvalid
 */

/**
 * A new codec for one connection.
 * @param {EncodingName} name
 * @returns {Encoding}
 */
export function newEncoding(name) {
  if (name === "json") return new JsonEncoding();
  if (name === "binary") return new BinaryEncoding();
  throw new RangeError(`${JSON.stringify(name)} is not an encoding: expected "json" or "binary"`);
}
