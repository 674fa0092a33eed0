// Requests to dispatch with a receiver's token: each has a time limit, and all end with the inbox.

import { checkToken } from "../arguments.js";
import { ClientClosed, ClientError } from "../errors.js";

/** @typedef {import("../transport/http/answer.js").Ask} Ask */
/** @typedef {string | (() => string | Promise<string>)} TokenSource */

const TIMEOUT_MS = 15_000;
const SERVER_ERROR = 500;
const UNAUTHORIZED = 401;
const RECEIVER_MISSING = 4310;
const KEEPALIVE_LENGTH_MAX = 16_384; // a browser refuses more than 64 KiB of all requests together
const RETRY = [408, 425, 429]; // a proxy in between may send these, too

/** Dispatch refused a request: `code` and `codeName` are those of its error, 0 and empty if the answer is not from dispatch. */
export class DispatchRefused extends ClientError {
  /**
   * @param {string} path
   * @param {number} status
   * @param {{ code?: number, title?: string, detail?: string }} problem
   */
  constructor(path, status, { code = 0, title = "", detail = "" }) {
    super(`dispatch refused ${path.split("?")[0]} with ${status} ${title}${code ? ` (${code})` : ""}: ${detail || "no reason was given"}`);
    this.status = status;
    this.code = code;
    this.codeName = title;
  }
}

/** Dispatch did not answer in time. */
export class DispatchTimeout extends ClientError {
  /** @param {string} path */
  constructor(path) {
    super(`dispatch did not answer ${path.split("?")[0]} in time`);
  }
}

DispatchRefused.prototype.name = "DispatchRefused"; // also where classes are minified
DispatchTimeout.prototype.name = "DispatchTimeout";

/** One dispatch, one receiver. */
export class DispatchRequests {
  #url;
  #token;
  #ask;
  /** @type {Set<AbortController>} */
  #open = new Set();
  #isClosed = false;
  #hasAnswered = false;

  /**
   * @param {string} url
   * @param {TokenSource} token
   * @param {Ask} ask
   */
  constructor(url, token, ask) {
    if (typeof token !== "function") checkToken(token);
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#ask = ask;
  }

  /**
   * The JSON of an answer; throws DispatchRefused, ClientClosed, or the error of the network.
   * @param {"GET" | "POST" | "PUT"} method
   * @param {string} path
   * @param {object} [body]
   * @param {number} [waitMs] how long dispatch may wait before it answers
   * @returns {Promise<any>}
   */
  async ask(method, path, body, waitMs = 0) {
    if (this.#isClosed) throw new ClientClosed("the inbox");
    const ending = new AbortController();
    this.#open.add(ending);
    const timer = setTimeout(() => ending.abort(new DispatchTimeout(path)), TIMEOUT_MS + waitMs);
    try {
      const token = await this.#readToken(ending.signal);
      const headers = { Authorization: `Bearer ${token}` };
      const request = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
      const isKept = method !== "GET" && (request.body?.length ?? 0) < KEEPALIVE_LENGTH_MAX;
      const kept = { ...request, signal: ending.signal, keepalive: isKept }; // a mark outlives the page that a link leaves
      const answer = await this.#ask(this.#url + path, kept);
      const text = await new Response(answer.body).text();
      if (answer.status !== 200) throw new DispatchRefused(path, answer.status, problemOf(text));
      const read = JSON.parse(text);
      this.#hasAnswered = true;
      return read;
    } finally {
      clearTimeout(timer);
      this.#open.delete(ending);
    }
  }

  /**
   * Whether the same request may succeed later: a network or a server recovers, a token function may give another token.
   * @param {unknown} error
   */
  mayRetry(error) {
    if (!(error instanceof ClientError)) return !this.#isClosed; // the network's
    if (!(error instanceof DispatchRefused)) return error instanceof DispatchTimeout;
    if (error.code === RECEIVER_MISSING) return this.#hasAnswered; // deleted, and perhaps created again
    if (error.status === UNAUTHORIZED) return typeof this.#token === "function";
    return error.status >= SERVER_ERROR || RETRY.includes(error.status);
  }

  /** The time limit of the request has the token function, too. @param {AbortSignal} signal */
  async #readToken(signal) {
    if (typeof this.#token !== "function") return this.#token;
    /** @type {Promise<never>} */
    const ended = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    ended.catch(() => {}); // the request itself fails with it later
    const token = await Promise.race([this.#token(), ended]);
    checkToken(token);
    return token;
  }

  /** Ends all requests. */
  close() {
    this.#isClosed = true;
    for (const ending of this.#open) ending.abort(new ClientClosed("the inbox"));
  }
}

/** @param {string} text */
function problemOf(text) {
  try {
    const read = JSON.parse(text);
    return typeof read?.code === "number" ? read : {};
  } catch {
    return {}; // of somebody between
  }
}
