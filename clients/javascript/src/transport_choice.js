// Chooses the transport of the next connection: a WebSocket, else Server-Sent Events with POST, else long polling with POST.
//
// If no server answers over a WebSocket, the client connects over HTTP at once, and stays with HTTP while it works. The transport
// that worked for an address is remembered for the next client. While HTTP is in use, a WebSocket is tried from time to time, and
// used as soon as one opens. After each failed try the next wait is twice as long.

import { shownAddress } from "./session/servers.js";
import { after } from "./signal.js";
import { httpAddress } from "./transport/http/address.js";
import { httpTransport } from "./transport/http/http_link.js";

/** @typedef {import("./platform/platform.js").Platform} Platform */
/** @typedef {import("./session/settings.js").Settings} Settings */
/** @typedef {import("./transport/transport.js").Transport} Transport */
/** @typedef {import("./codec/encodings.js").EncodingName} EncodingName */
/** @typedef {"websocket" | "sse" | "poll"} TransportName */
/** @typedef {{ name: TransportName | "custom", open: Transport, encoding: EncodingName, connectTimeoutMs: number }} TransportOption */

const WEBSOCKET = 0;
const HANDSHAKE_MS_MAX = 5_000; // if there is another transport to fall back to
const FAILURES_MAX = 3; // of a WebSocket that has worked before, until another transport is tried
const AGAIN_MS_MAX = 3_600_000;

/** @type {Map<string, TransportName>} the transport that worked last, by address; shared by all clients of this page or process */
const memory = new Map();

/** The transports of one client, and which one comes next. */
export class TransportChoice {
  isNextAtOnce = false; // reconnect to the same server without a wait
  #transports;
  #againMs;
  #options;
  #index = WEBSOCKET; // of the transport to use next
  #fallback = 1;
  #url = "";
  #hasSocketWorked = false;
  #failures = 0;
  #tries = 0; // failed tries of a WebSocket while HTTP is in use
  #isFound = false; // a WebSocket opened while HTTP was in use
  #stopSeeking = () => {};

  /**
   * @param {TransportName | "auto" | Transport} choice
   * @param {EncodingName} encoding
   * @param {Platform & { whenHidden?: "poll" | "stay" | undefined }} platform
   * @param {Readonly<Settings>} settings
   */
  constructor(choice, encoding, platform, settings) {
    this.#transports = transportsOf(choice, encoding, platform, settings.connectTimeoutMs);
    this.#againMs = settings.webSocketAgainMs;
    this.#options = { subprotocol: `godwit.v1.${encoding}`, frameBytesMax: settings.frameBytesMax };
  }

  /**
   * Throws RangeError for an address that the chosen transport can never use.
   * @param {readonly string[]} urls
   */
  check(urls) {
    const name = this.#transports[0]?.name;
    const found = name === "sse" || name === "poll" ? urls.find((url) => httpAddress(url) === null) : undefined;
    if (found === undefined) return;
    throw new RangeError(`the server address ${shownAddress(found)} has a path: over HTTP (${name}) expected none, or one that ends in /v1/live`);
  }

  /**
   * The transport to use for this address: a WebSocket if its HTTP address cannot be derived.
   * @param {string} url
   * @returns {TransportOption}
   */
  choose(url) {
    if (this.#url === "" && this.#transports.length > 1) {
      const known = this.#transports.findIndex(({ name }) => name === memory.get(url));
      if (known > WEBSOCKET) this.#index = this.#fallback = known;
    }
    this.#url = url;
    if (this.#transports.length > 1 && httpAddress(url) === null) this.#index = WEBSOCKET;
    return /** @type {TransportOption} */ (this.#transports[this.#index]);
  }

  /**
   * A server has answered over the current transport.
   * @param {() => void} leave ends the link, so that a better transport can be used
   */
  worked(leave) {
    if (this.#transports.length === 1) return;
    if (this.#index === WEBSOCKET) {
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
    if (this.#transports.length === 1 || isUntried) return;
    const hasWorked = wasWelcome || code !== null; // a server that gives a close code was reached
    if (this.#index === WEBSOCKET) this.#socketEnded(hasWorked);
    else if (this.#isFound) this.#take(WEBSOCKET);
    else if (isUnusable && this.#fallback + 1 < this.#transports.length) {
      this.#take(++this.#fallback);
      this.#remember();
    } else if (!hasWorked) this.#index = WEBSOCKET; // begin with a WebSocket again, after a wait
    this.#isFound = false;
  }

  /** The connection is gone: stop trying WebSockets. */
  stop() {
    this.#stopSeeking();
    this.#stopSeeking = () => {};
  }

  /** @param {boolean} hasWorked */
  #socketEnded(hasWorked) {
    if (hasWorked || httpAddress(this.#url) === null) return;
    this.#failures++;
    if (this.#failures >= (this.#hasSocketWorked ? FAILURES_MAX : 1)) this.#take(this.#fallback);
  }

  /** @param {number} index */
  #take(index) {
    this.#index = index;
    this.isNextAtOnce = true;
  }

  #remember() {
    const option = /** @type {TransportOption} */ (this.#transports[this.#fallback]);
    memory.set(this.#url, /** @type {TransportName} */ (option.name));
  }

  /** @param {() => void} leave */
  #seek(leave) {
    this.stop();
    const option = /** @type {TransportOption} */ (this.#transports[WEBSOCKET]);
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
      link = option.open(this.#url, this.#options, events);
      timer = after(option.connectTimeoutMs, () => link?.abort()); // a server that accepts the socket and never answers is not usable
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
 * Lets the program end although the timer has not fired.
 * @param {{ unref?: () => void } | number | undefined} timer
 */
function release(timer) {
  if (typeof timer === "object") timer.unref?.();
}

/**
 * @param {TransportName | "auto" | Transport} choice
 * @param {EncodingName} encoding
 * @param {Platform & { whenHidden?: "poll" | "stay" | undefined }} platform
 * @param {number} connectTimeoutMs
 * @returns {TransportOption[]}
 */
function transportsOf(choice, encoding, platform, connectTimeoutMs) {
  if (![undefined, "poll", "stay"].includes(platform.whenHidden)) {
    throw new TypeError(`${JSON.stringify(platform.whenHidden)} is not a valid whenHidden: expected "poll" or "stay"`);
  }
  if (typeof choice === "function") return [{ name: "custom", open: choice, encoding, connectTimeoutMs }];
  /** @type {(name: "sse" | "poll") => TransportOption} */
  const http = (name) => ({ name, open: httpTransport(name, platform), encoding: "json", connectTimeoutMs });
  const isAlone = choice === "websocket";
  const handshakeMs = isAlone ? connectTimeoutMs : Math.min(connectTimeoutMs, HANDSHAKE_MS_MAX);
  /** @type {TransportOption} */
  const socket = { name: "websocket", open: platform.open, encoding, connectTimeoutMs: handshakeMs };
  if (choice === "auto") return [socket, http("sse"), http("poll")];
  if (isAlone) return [socket];
  if (choice !== "sse" && choice !== "poll") {
    throw new TypeError(`${JSON.stringify(choice)} is not a transport: expected "auto", "websocket", "sse", "poll" or a function`);
  }
  if (encoding !== "json") throw new TypeError(`the ${encoding} encoding needs a WebSocket; over HTTP (${choice}) messages are JSON`);
  return [http(choice)];
}
