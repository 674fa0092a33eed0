// What to do where a node says that there is no room: it counts a stream that is being left until it has seen it go.

import { Code } from "../../codes.js";
import { Refused } from "./answer.js";

/** @typedef {import("./http_link.js").Host} Host */

const WAITS_MS = [10, 20, 40, 80, 160]; // for a node to see that a stream was left
/** @type {readonly number[]} */
const CODES = [Code.SubscriptionsTooMany, Code.ConnectsTooMany, Code.ConnectionsTooMany];

/**
 * Whether what was refused may be had once a stream that was left is counted no more.
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
