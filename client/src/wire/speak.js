// The wires this client speaks, by the names a user gives them.

import { BinaryWire } from "./binary.js";
import { JsonWire } from "./json.js";

/** @typedef {"json" | "binary"} WireName */

/**
 * @typedef {object} Wire one connection's way of writing; it may remember what it was told on the connection
 * @property {string} subprotocol
 * @property {(commands: import("./command.js").Command[]) => string | Uint8Array} encode several as one frame, in order
 * @property {(frame: string | Uint8Array) => import("./push.js").Told[]} decode what one frame says; throws FrameInvalid
 */

/**
 * A fresh wire for one connection.
 * @param {WireName} name
 * @returns {Wire}
 */
export function newWire(name) {
  if (name === "json") return new JsonWire();
  if (name === "binary") return new BinaryWire();
  throw new RangeError(`${JSON.stringify(name)} is no wire; there are "json" and "binary"`);
}
