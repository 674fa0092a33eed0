// The answers of a node, or of a proxy, to a request, as this client understands them.

import { Code } from "../../codes.js";

const MISDIRECTED = 421; // clients of Godwit are served at another address

/**
 * @typedef {object} Answer as fetch gives it
 * @property {number} status
 * @property {{ get: (name: string) => string | null }} headers
 * @property {ReadableStream<Uint8Array> | null} body
 */

/** @typedef {{ method?: string, headers?: Record<string, string>, body?: string, signal?: AbortSignal }} Request */
/** @typedef {(url: string, request: Request) => Promise<Answer>} Ask */
/** @typedef {import("../transport.js").LinkEnd} LinkEnd */

/** A request was refused. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {{ code?: number, title?: string, detail?: string, retry?: boolean }} problem empty where it is not a node's
   * @param {number | null} afterMs when to try again, if the answer has a time
   */
  constructor(status, problem, afterMs) {
    const said = [problem.title, problem.detail].filter(Boolean).join(": ");
    super([`refused with ${status}`, said].filter(Boolean).join(problem.code === undefined ? ": " : " "));
    this.status = status;
    this.problem = problem;
    this.afterMs = afterMs;
  }

  /** It concerns only what was requested; the client can continue here. */
  get isOfCommand() {
    const { code = 0 } = this.problem;
    return code >= 4100 && code <= 4199 && !this.isOfLeaving;
  }

  /** The head of the request is too long. Only the token varies in it, so every further request would be too. */
  get isOfHead() {
    return this.problem.code === Code.HeaderTooBig;
  }

  /** The node is shutting down and accepts nothing more. Over HTTP there may be no connection whose end would report it. */
  get isOfLeaving() {
    return this.problem.code === Code.NodeDraining;
  }

  /**
   * The same as an error of the JSON encoding.
   * @param {number} id
   * @param {string} [what] the command and its size, where that is why
   */
  toPush(id, what = "") {
    const { code, title, retry } = this.problem;
    let { detail } = this.problem;
    if (code === Code.BodyTooBig && what !== "") detail = `${what}: ${detail}`;
    return JSON.stringify({ id, error: code, name: title, reason: detail ?? "", retry: retry ?? false });
  }

  /**
   * The same as the end of a subscription that was served.
   * @param {string} selector
   */
  ended(selector) {
    const { code, title, detail, retry } = this.problem;
    return JSON.stringify({ ended: selector, error: code, name: title, reason: detail ?? "", retry: retry ?? false });
  }

  /** @returns {LinkEnd} */
  get end() {
    const { code = 0, detail } = this.problem;
    if (this.status === MISDIRECTED) return { code: null, reason: this.message, isWrongPort: true };
    const isEnd = code >= 4000 && !(code >= 4100 && code <= 4199);
    if (this.afterMs !== null) {
      return { code: isEnd ? code : null, reason: JSON.stringify({ reason: this.message, reconnect_after_ms: this.afterMs }) };
    }
    return isEnd ? { code, reason: detail ?? this.message } : { code: null, reason: this.message };
  }
}

/**
 * The error in an answer that is not a success.
 * @param {Answer} answer
 * @param {string} text its body
 */
export function refusedOf({ status, headers }, text) {
  const seconds = Number(headers.get("retry-after") ?? NaN);
  return new Refused(status, problemOf(text), Number.isFinite(seconds) ? seconds * 1000 : null);
}

/** @param {string} text */
function problemOf(text) {
  try {
    const read = JSON.parse(text);
    const hasCode = read?.code === undefined || typeof read.code === "number"; // absent, for example, in answers of an admin port
    return hasCode && typeof read?.title === "string" ? read : {};
  } catch {
    return {}; // of a proxy
  }
}
