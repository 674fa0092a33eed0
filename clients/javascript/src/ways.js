// Which way to carry frames next: a WebSocket, else Server-Sent Events with POST, else long poll with POST.
//
// A WebSocket that was never welcomed is followed at once by HTTP, which is kept for as long as it works; what worked for an
// address is remembered for the next client. While HTTP carries, a WebSocket is tried now and then beside it, and taken as
// soon as one opens. Each try that fails makes the next one wait twice as long.

import { after } from "./bell.js";
import { httpTransport } from "./transport/http/http_link.js";

/** @typedef {import("./platform/platform.js").Platform} Platform */
/** @typedef {import("./session/settings.js").Settings} Settings */
/** @typedef {import("./transport/transport.js").Transport} Transport */
/** @typedef {import("./codec/encodings.js").EncodingName} EncodingName */
/** @typedef {"websocket" | "sse" | "poll"} WayName */
/** @typedef {{ name: WayName | "custom", open: Transport, encoding: EncodingName, connectTimeoutMs: number }} Way */

const WEBSOCKET = 0;
const HANDSHAKE_MS_MAX = 5_000; // where another way stands ready
const FAILURES_MAX = 3; // of a WebSocket that has worked before, until another way is tried
const AGAIN_MS_MAX = 3_600_000;

/** @type {Map<string, WayName>} what worked last, by address; of all clients of this page or process */
const memory = new Map();

/** The ways of one client. */
export class Ways {
  isNextAtOnce = false; // no wait, and the same server
  #ways;
  #againMs;
  #options;
  #place = WEBSOCKET; // of the way to take next
  #fallback = 1;
  #url = "";
  #hasSocketWorked = false;
  #failures = 0;
  #tries = 0; // of a WebSocket beside HTTP
  #isFound = false; // and it opened
  #stopSeeking = () => {};

  /**
   * @param {WayName | "auto" | Transport} choice
   * @param {EncodingName} encoding
   * @param {Platform & { whenHidden?: "poll" | "stay" | undefined }} platform
   * @param {Readonly<Settings>} settings
   */
  constructor(choice, encoding, platform, settings) {
    this.#ways = waysOf(choice, encoding, platform, settings.connectTimeoutMs);
    this.#againMs = settings.webSocketAgainMs;
    this.#options = { subprotocol: `godwit.v1.${encoding}`, frameBytesMax: settings.frameBytesMax };
  }

  /**
   * The way to take to this address.
   * @param {string} url
   * @returns {Way}
   */
  choose(url) {
    if (this.#url === "" && this.#ways.length > 1) {
      const known = this.#ways.findIndex(({ name }) => name === memory.get(url));
      if (known > WEBSOCKET) this.#place = this.#fallback = known;
    }
    this.#url = url;
    return /** @type {Way} */ (this.#ways[this.#place]);
  }

  /**
   * A server has answered by this way.
   * @param {() => void} leave ends the link, so that a better way can be taken
   */
  worked(leave) {
    if (this.#ways.length === 1) return;
    if (this.#place === WEBSOCKET) {
      memory.delete(this.#url);
      this.#hasSocketWorked = true;
      this.#failures = this.#tries = 0;
      this.#fallback = 1;
    } else {
      this.#remember();
      this.#seek(leave);
    }
  }

  /**
   * The link has ended, or could not be made.
   * @param {boolean} wasWelcome
   * @param {import("./transport/transport.js").LinkEnd} end
   */
  ended(wasWelcome, { code, isUntried = false, isUnusable = false }) {
    this.stop();
    this.isNextAtOnce = false;
    if (this.#ways.length === 1 || isUntried) return;
    const hasWorked = wasWelcome || code !== null; // who gives a code was reached
    if (this.#place === WEBSOCKET) this.#socketEnded(hasWorked);
    else if (this.#isFound) this.#take(WEBSOCKET);
    else if (isUnusable && this.#fallback + 1 < this.#ways.length) {
      this.#take(++this.#fallback);
      this.#remember();
    } else if (!hasWorked) this.#place = WEBSOCKET; // from the beginning, after a wait
    this.#isFound = false;
  }

  /** Nobody is connected: seek no better way. */
  stop() {
    this.#stopSeeking();
    this.#stopSeeking = () => {};
  }

  /** @param {boolean} hasWorked */
  #socketEnded(hasWorked) {
    if (hasWorked) return;
    this.#failures++;
    if (this.#failures >= (this.#hasSocketWorked ? FAILURES_MAX : 1)) this.#take(this.#fallback);
  }

  /** @param {number} place */
  #take(place) {
    this.#place = place;
    this.isNextAtOnce = true;
  }

  #remember() {
    const way = /** @type {Way} */ (this.#ways[this.#fallback]);
    memory.set(this.#url, /** @type {WayName} */ (way.name));
  }

  /** @param {() => void} leave */
  #seek(leave) {
    this.stop();
    const way = /** @type {Way} */ (this.#ways[WEBSOCKET]);
    const waitMs = Math.min(AGAIN_MS_MAX, this.#againMs * 2 ** Math.min(this.#tries, 30));
    /** @type {import("./transport/transport.js").Link | undefined} */
    let link;
    let isStopped = false;
    const events = {
      opened: () => {
        if (isStopped) return;
        this.#isFound = true;
        this.stop();
        leave();
      },
      frame: () => {},
      drained: () => {},
      closed: () => {
        if (isStopped) return;
        this.#tries++;
        this.#seek(leave);
      },
    };
    let timer = after(waitMs, () => {
      link = way.open(this.#url, this.#options, events);
      timer = after(way.connectTimeoutMs, () => link?.abort()); // who takes it up and answers nothing is no way
      release(timer);
    });
    release(timer);
    this.#stopSeeking = () => {
      isStopped = true;
      clearTimeout(timer);
      link?.abort();
    };
  }
}

/**
 * No program has to live for it.
 * @param {{ unref?: () => void } | number | undefined} timer
 */
function release(timer) {
  if (typeof timer === "object") timer.unref?.();
}

/**
 * @param {WayName | "auto" | Transport} choice
 * @param {EncodingName} encoding
 * @param {Platform & { whenHidden?: "poll" | "stay" | undefined }} platform
 * @param {number} connectTimeoutMs
 * @returns {Way[]}
 */
function waysOf(choice, encoding, platform, connectTimeoutMs) {
  if (![undefined, "poll", "stay"].includes(platform.whenHidden)) {
    throw new TypeError(`${JSON.stringify(platform.whenHidden)} is not a valid whenHidden: expected "poll" or "stay"`);
  }
  if (typeof choice === "function") return [{ name: "custom", open: choice, encoding, connectTimeoutMs }];
  /** @type {(name: "sse" | "poll") => Way} */
  const http = (name) => ({ name, open: httpTransport(name, platform), encoding: "json", connectTimeoutMs });
  const isAlone = choice === "websocket";
  const handshakeMs = isAlone ? connectTimeoutMs : Math.min(connectTimeoutMs, HANDSHAKE_MS_MAX);
  /** @type {Way} */
  const socket = { name: "websocket", open: platform.open, encoding, connectTimeoutMs: handshakeMs };
  if (choice === "auto") return [socket, http("sse"), http("poll")];
  if (isAlone) return [socket];
  if (choice !== "sse" && choice !== "poll") {
    throw new TypeError(`${JSON.stringify(choice)} is not a transport: expected "auto", "websocket", "sse", "poll" or a function`);
  }
  if (encoding !== "json") throw new TypeError(`the ${encoding} encoding needs a WebSocket; over HTTP (${choice}) messages are JSON`);
  return [http(choice)];
}
