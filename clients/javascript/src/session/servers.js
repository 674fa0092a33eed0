// Which server to try next.
//
// Servers have weights. Each round tries every one of them once, drawn by weight among those not yet tried; weight 0 is a
// reserve, drawn when no weighted one is left. Randomness is given by the caller.

import { shown } from "../shown.js";

export const LIVE_PATH = "/v1/live";
const WEIGHT_MAX = 1e9; // the sum of all stays a number
const UNSAFE = /[\s#\u0000-\u001f\u007f\p{Surrogate}]/u;

/** @typedef {string | readonly (string | readonly [url: string, weight: number])[]} Servers */

/** The addresses a client may use. */
export class ServerList {
  /** @type {{ url: string, weight: number }[]} */
  #servers;
  /** @type {{ url: string, weight: number }[]} */
  #untried = [];

  /** @param {Servers} servers */
  constructor(servers) {
    if (typeof servers !== "string" && !Array.isArray(servers)) {
      throw new TypeError(`servers is ${shown(servers)}: expected an address, or a list of addresses`);
    }
    const entries = typeof servers === "string" ? [servers] : [...servers];
    this.#servers = entries.map((entry) => {
      const [url, weight] = typeof entry === "string" || !Array.isArray(entry) ? [entry, 1] : entry;
      if (typeof url === "string" && typeof weight === "number") return { url: checked(url), weight };
      throw new TypeError(`servers has the entry ${shown(entry)}: expected an address, or [address, weight]`);
    });
    if (this.#servers.length === 0) throw new RangeError("the list of servers is empty; give at least one ws:// address");
    for (const { url, weight } of this.#servers) {
      if (!(weight >= 0 && weight <= WEIGHT_MAX)) {
        throw new RangeError(`weight ${weight} of the server ${shownAddress(url)} must be a number from 0 to ${WEIGHT_MAX}`);
      }
    }
  }

  get urls() {
    return this.#servers.map(({ url }) => url);
  }

  /**
   * The next server, by a random number in [0, 1).
   * @param {number} random
   */
  choose(random) {
    if (this.#untried.length === 0) this.#untried = [...this.#servers];
    const untried = this.#untried;
    const total = untried.reduce((sum, { weight }) => sum + weight, 0);
    let place = random * (total || untried.length);
    let found = untried.findIndex(({ weight }) => (place -= total > 0 ? weight : 1) < 0);
    if (found < 0) found = untried.length - 1; // rounding left `place` at the very end
    return /** @type {{ url: string }} */ (untried.splice(found, 1)[0]).url;
  }

  /** A connection was established: the next loss starts a new round. */
  succeeded() {
    this.#untried = [];
  }
}

/**
 * An address as it is shown and logged: a user, a password and a query may be secret.
 * @param {string} url
 */
export function shownAddress(url) {
  const query = url.search(/[?#]/);
  const at = url.lastIndexOf("@");
  if (query >= 0 && at > query) return `${/^wss?:\/\//.exec(url)?.[0] ?? ""}...`; // may contain a password or a secret query
  return query < 0 ? url.slice(at + 1) : `${url.slice(at + 1, query + 1)}...`;
}

/**
 * The address, with the default path if it has none; throws RangeError, which never shows a password.
 * @param {string} url
 */
function checked(url) {
  const [, scheme = "", authority = "", rest = ""] = /^(wss?):\/\/([^/?#]*)(.*)$/.exec(url) ?? [];
  const at = authority.lastIndexOf("@");
  if (at >= 0) {
    const host = authority.slice(at + 1);
    throw new RangeError(`the server address of ${host} holds a user or a password: pass a token with \`token\` instead`);
  }
  if (scheme === "") {
    throw new RangeError(`${JSON.stringify(shownAddress(url))} is not a valid server address: it must begin with ws:// or wss://`);
  }
  if (!isAuthority(authority) || UNSAFE.test(url) || !isReadable(url)) {
    throw new RangeError(`${JSON.stringify(shownAddress(url))} is not a valid server address: expected ws://HOST:PORT or wss://HOST:PORT`);
  }
  return /^\/?(?:$|\?)/.test(rest) ? `${scheme}://${authority}${LIVE_PATH}${rest.replace("/", "")}` : url;
}

/** @param {string} url */
function isReadable(url) {
  try {
    new URL(url);
    return true;
  } catch {
    return false; // its host is not a valid name: it would fail at every attempt
  }
}

/** @param {string} authority */
function isAuthority(authority) {
  const [, host, port] = /^(\[[\da-fA-F:.]+\]|[^:[\]]+)(?::(\d+))?$/.exec(authority) ?? [];
  return host !== undefined && (port === undefined || (Number(port) > 0 && Number(port) <= 65_535));
}
