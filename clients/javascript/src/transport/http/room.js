// Handles a node's answer that it is full: it counts a stream that is being closed until it has noticed the end.

import { Code } from "../../codes.js";
import { Refused } from "./answer.js";

/** @typedef {import("./http_link.js").Host} Host */

const WAITS_MS = [10, 20, 40, 80, 160]; // for a node to see that a stream was left
/** @type {readonly number[]} */
const CODES = [Code.SubscriptionsTooMany, Code.ConnectsTooMany, Code.ConnectionsTooMany];

/**
 * Whether a refused request may succeed once a closed stream is no longer counted.
 * @param {unknown} error
 * @returns {error is Refused}
 */
export function isOfRoom(error) {
  return error instanceof Refused && isCodeOfRoom(error.problem.code ?? 0);
}

/** @param {number} code */
export function isCodeOfRoom(code) {
  return CODES.includes(code);
}

/**
 * Whether it is worth to wait for room once more.
 * @param {number} tries so far
 */
export function isRoomPossible(tries) {
  return tries < WAITS_MS.length;
}

/**
 * Wait for that; false: that was long enough.
 * @param {number} tries so far
 */
export async function waitForRoom(tries) {
  const waitMs = WAITS_MS[tries];
  if (waitMs !== undefined) await new Promise((resolve) => setTimeout(resolve, waitMs));
  return waitMs !== undefined;
}

/**
 * Whether one connection may have all of these.
 * @param {Host} host
 * @param {string} query
 */
export async function mayShare(host, query) {
  return !(await isRefused(host.ask(`/v1/stream?${query}`, { method: "HEAD" })));
}

/**
 * Any other failure is for the next request to meet.
 * @param {Promise<unknown>} asked
 */
async function isRefused(asked) {
  try {
    await asked;
  } catch (error) {
    return error instanceof Refused;
  }
  return false;
}
