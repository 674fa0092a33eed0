// The contract's cases, protocol/vectors, which test the Rust core and the Python client too.

import { readFileSync } from "node:fs";

/** @param {string} name */
export function vectors(name) {
  return JSON.parse(readFileSync(new URL(`../../../protocol/vectors/${name}.json`, import.meta.url), "utf8"));
}

/** @param {string} hex */
export const bytesOf = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
/** @param {Uint8Array} bytes */
export const hexOf = (bytes) => Buffer.from(bytes).toString("hex");
