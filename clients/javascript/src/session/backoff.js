// How long to wait before reconnecting: full jitter, or the delay that the server asked for; and the rest of its reason.
//
// The first try comes within `firstMs`; the bound doubles with each failure up to `maxMs`. Waits are drawn from the whole
// range, so that clients that were disconnected together do not reconnect together. The caller passes the random number.

import { CODES } from "../codes.js";
import { shownAddress } from "./servers.js";

const DOUBLINGS_MAX = 30; // beyond it the bound is `maxMs` anyway
export const WISH_MS_MAX = 3_600_000; // a server may ask for an hour, not for a year

/**
 * The wait before the next try, after `failures` failures since the last good connection.
 * @param {number} failures
 * @param {number} random
 * @param {number} firstMs
 * @param {number} maxMs
 */
export function reconnectWaitMs(failures, random, firstMs, maxMs) {
  return Math.floor(random * Math.min(maxMs, firstMs * 2 ** Math.min(failures, DOUBLINGS_MAX)));
}

/**
 * `reconnect_after_ms` of a close reason that is a JSON object.
 * @param {string} reason
 * @returns {number | null}
 */
export function wishOf(reason) {
  try {
    const wish = JSON.parse(reason)?.reconnect_after_ms;
    return Number.isInteger(wish) ? Math.min(Math.max(0, wish), WISH_MS_MAX) : null;
  } catch {
    return null;
  }
}

/**
 * A close reason for people: the server's own is a JSON object with a name, and a sentence where that is more than its code's.
 * @param {number | null} code
 * @param {string} reason
 */
export function wordsOf(code, reason) {
  if (reason === "" && code !== null) return `the server closed the connection (${code})`;
  try {
    const read = JSON.parse(reason);
    const sent = typeof read?.reason === "string" ? read.reason : null;
    if (typeof read?.name !== "string") return sent ?? reason;
    const wish = wishOf(reason);
    const when = wish === null ? "later" : `after ${wish} ms`;
    const why = sent ?? (code === null ? "" : CODES.get(code)?.sentence.replace("after reconnect_after_ms", when));
    return why ? `${read.name}: ${why}` : read.name;
  } catch {
    return reason;
  }
}

/** Failures since the last connection that held for `firstMs`, and what the server asked for. */
export class Backoff {
  #firstMs;
  #maxMs;
  #failures = 0;
  /** @type {number | null} */
  #wishMs = null;

  /**
   * @param {number} firstMs
   * @param {number} maxMs
   */
  constructor(firstMs, maxMs) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
  }

  /**
   * A connection ended after it was served for so long (null: it never was), or could not be made.
   * @param {number | null} servedMs
   * @param {number | null} wishMs
   */
  lost(servedMs, wishMs) {
    const hasHeld = servedMs !== null && servedMs >= this.#firstMs;
    this.#failures = hasHeld ? 0 : this.#failures + 1;
    this.#wishMs = wishMs;
  }

  /** Whether the server set the time to reconnect. */
  get isTold() {
    return this.#wishMs !== null;
  }

  /**
   * How long to stay away, by a random number in [0, 1).
   * @param {number} random
   */
  waitMs(random) {
    if (this.#wishMs !== null) return this.#wishMs;
    return reconnectWaitMs(Math.max(this.#failures - 1, 0), random, this.#firstMs, this.#maxMs);
  }
}

/** Logs how a client lost its server: the first failed attempt as a warning, the following ones as details. */
export class Losses {
  #log;
  #hasWarned = false;

  /** @param {Record<"info" | "warn", (line: string) => void>} log */
  constructor(log) {
    this.#log = log;
  }

  /**
   * @param {string} url
   * @param {string} reason
   * @param {boolean} wasWelcome the server had answered; a subscription's status reports that already
   * @param {number} waitMs until the next try
   */
  tell(url, reason, wasWelcome, waitMs) {
    const said = wasWelcome || reason.includes(shownAddress(url)) ? reason : `cannot connect to ${shownAddress(url)}: ${reason}`;
    if (wasWelcome) this.#log.info(`godwit: disconnected from ${shownAddress(url)} (${said}); next try in ${waitMs} ms`);
    else if (this.#hasWarned) this.#log.info(`godwit: ${said}; next try in ${waitMs} ms`);
    else this.#log.warn(`godwit: ${said}; retrying`);
    this.#hasWarned = !wasWelcome;
  }
}
