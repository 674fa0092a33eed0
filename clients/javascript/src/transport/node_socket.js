// A WebSocket link in Node, over the package ws (Node 20 has no WebSocket, and that of later ones cannot stop reading).
//
// Owns one link: what its ends mean, and that a paused link delivers nothing. ws parses a whole chunk of the socket at once, so
// frames that come after a pause wait here: at most one chunk of the socket, since ws reads no further.

import Socket from "ws";

import { decodeText, encodeText } from "../content.js";
import { BROKE, CLOSE_TIMEOUT_MS, SEND_BUFFER_BYTES_MAX } from "./transport.js";

/** @typedef {import("./transport.js").Link} Link */
/** @typedef {import("./transport.js").LinkEnd} LinkEnd */
/** @typedef {import("./transport.js").LinkEvents} LinkEvents */
/** @typedef {import("./transport.js").LinkOptions} LinkOptions */

const REFUSAL_BYTES_MAX = 4_096; // of the body with the reason
const REASON_BYTES_MAX = 123;
const MISDIRECTED = 421;
const NO_CODE = 1005; // ws: a close frame without a code
const NO_CLOSE = 1006; // ws: the connection ended without a close frame
const NOT_UTF8 = 1007;
const BROKE_FRAMING = "the server broke the framing";

/** @typedef {string | Uint8Array} Pem text, or the bytes of a file */

/**
 * @typedef {object} TlsOptions as node:tls has them; without its types, which a project for browsers does not have
 * @property {Pem | Pem[] | undefined} [ca]
 * @property {Pem | Pem[] | undefined} [cert]
 * @property {Pem | Pem[] | undefined} [key]
 * @property {string | undefined} [passphrase]
 * @property {string | undefined} [servername]
 * @property {boolean | undefined} [rejectUnauthorized]
 */

/**
 * The transport over Node's sockets, with what wss:// addresses need beyond what the machine trusts already.
 * @param {TlsOptions} [tls]
 * @returns {import("./transport.js").Transport}
 */
export function nodeSocket(tls = {}) {
  return (url, options, events) => new NodeLink(url, options, events, tls);
}

/** @implements {Link} */
class NodeLink {
  #events;
  #subprotocol;
  #socket;
  #isOpen = false;
  #isPaused = false;
  #isFull = false; // `send` answered false
  #isEnded = false;
  /** @type {(string | Uint8Array)[]} */
  #waiting = []; // frames that came while paused
  /** @type {LinkEnd | null} */
  #end = null; // reported once nothing waits
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #closeTimer;

  /**
   * @param {string} url
   * @param {LinkOptions} options
   * @param {LinkEvents} events
   * @param {TlsOptions} tls
   */
  constructor(url, options, events, tls) {
    this.#events = events;
    this.#subprotocol = options.subprotocol;
    /** @type {Socket.ClientOptions & { closeTimeout: number }} its types do not have the last one yet */
    const settings = {
      .../** @type {Socket.ClientOptions} */ (tls), // node:tls takes any Uint8Array, which its types do not say
      perMessageDeflate: false,
      skipUTF8Validation: true, // decodeText refuses text that is not UTF-8
      maxPayload: options.frameBytesMax,
      autoPong: false,
      closeTimeout: CLOSE_TIMEOUT_MS,
    };
    const socket = new Socket(url, options.subprotocol, settings);
    socket.on("open", () => {
      this.#isOpen = true;
      if (!this.#isEnded) events.opened();
    });
    socket.on("unexpected-response", (_request, response) => this.#refused(response));
    socket.on("message", (data, isBinary) => this.#message(/** @type {Buffer} */ (data), isBinary));
    socket.on("ping", (payload) => {
      if (socket.bufferedAmount < SEND_BUFFER_BYTES_MAX) socket.pong(payload); // a peer that does not read needs no answer
    });
    socket.on("error", (error) => this.#failed(error));
    socket.on("close", (code, reason) => {
      if (code === NO_CLOSE) this.#finish({ code: null, reason: BROKE });
      else this.#finish({ code: code === NO_CODE ? null : code, reason: reason.toString() }); // text for people
    });
    this.#socket = socket;
  }

  /** @param {string | Uint8Array} frame */
  send(frame) {
    if (this.#socket.readyState !== Socket.OPEN) return true;
    this.#socket.send(frame, this.#sent);
    this.#isFull = this.#socket.bufferedAmount >= SEND_BUFFER_BYTES_MAX;
    return !this.#isFull;
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  close(code, reason) {
    if (!this.#isOpen) {
      this.abort();
      return;
    }
    if (this.#closeTimer !== undefined) return;
    this.#closeTimer = setTimeout(() => this.abort(), CLOSE_TIMEOUT_MS);
    this.#socket.close(code, Buffer.from(cut(encodeText(reason), REASON_BYTES_MAX)));
    this.resume(); // the peer's answer is behind the waiting frames
  }

  abort() {
    this.#finish({ code: null, reason: "aborted" });
    this.#socket.terminate();
  }

  pause() {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume() {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    queueMicrotask(() => {
      this.#deliver();
      if (!this.#isPaused) this.#socket.resume();
    });
  }

  #sent = () => {
    if (!this.#isFull || this.#socket.bufferedAmount >= SEND_BUFFER_BYTES_MAX) return;
    this.#isFull = false;
    if (!this.#isEnded) this.#events.drained();
  };

  /**
   * @param {Buffer} data
   * @param {boolean} isBinary
   */
  #message(data, isBinary) {
    const frame = isBinary ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : this.#textOf(data);
    if (frame === null) return;
    if (this.#isPaused || this.#waiting.length > 0) this.#waiting.push(frame);
    else if (!this.#isEnded) this.#events.frame(frame);
  }

  /**
   * Null where it is not UTF-8, which ends the link. ws would look first and read then, which takes longer.
   * @param {Buffer} data
   */
  #textOf(data) {
    try {
      return decodeText(data);
    } catch {
      if (!this.#isEnded) this.#socket.close(NOT_UTF8);
      this.#finish({ code: null, reason: `${BROKE_FRAMING}: a text frame is not UTF-8`, isInvalid: true });
      return null;
    }
  }

  /** Deliver the waiting frames, until it is paused again; then the end, if there was one. */
  #deliver() {
    let count = 0;
    while (!this.#isPaused && !this.#isEnded && count < this.#waiting.length) {
      this.#events.frame(/** @type {string | Uint8Array} */ (this.#waiting[count++]));
    }
    this.#waiting.splice(0, count);
    if (this.#end !== null && this.#waiting.length === 0 && !this.#isPaused) this.#report(this.#end);
  }

  /** @param {Error & { code?: string }} error */
  #failed(error) {
    const { code = "", message } = error;
    const isTooLarge = code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
    if (code.startsWith("WS_ERR_")) {
      const reason = `${BROKE_FRAMING}: ${message}`;
      this.#finish({ code: null, reason, ...(isTooLarge ? { isTooLarge } : { isInvalid: true }) });
    } else if (this.#isOpen) this.#finish({ code: null, reason: `${BROKE}: ${message}` });
    else if (/subprotocol/i.test(message)) this.#finish({ code: null, reason: `the server does not speak ${this.#subprotocol}` });
    else if (/header/i.test(message)) this.#finish({ code: null, reason: `the server answered the handshake wrongly: ${message}` });
    else this.#finish({ code: null, reason: message || String(error) });
  }

  /** @param {import("node:http").IncomingMessage} response */
  #refused(response) {
    let body = "";
    const refuse = () => {
      const reason = [`refused with ${response.statusCode}`, wordsOf(body.slice(0, REFUSAL_BYTES_MAX).trim())].filter(Boolean).join(": ");
      this.#finish({ code: null, reason, ...(response.statusCode === MISDIRECTED ? { isWrongPort: true } : {}) });
      this.#socket.terminate();
    };
    response.setEncoding("utf8");
    response.on("data", (text) => {
      body += text;
      if (body.length >= REFUSAL_BYTES_MAX) refuse();
    });
    response.on("error", refuse);
    response.on("end", refuse);
  }

  /**
   * The first end counts. A close frame is reported behind the messages that came before it, a break at once.
   * @param {LinkEnd} end
   */
  #finish(end) {
    if (this.#end !== null) return;
    this.#end = end;
    if (end.code === null) this.#report(end); // waiting frames are sent again after a resume
    else this.#deliver();
  }

  /** @param {LinkEnd} end */
  #report(end) {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#waiting = [];
    clearTimeout(this.#closeTimer);
    queueMicrotask(() => this.#events.closed(end));
  }
}

/**
 * The sentence of a refusal: a problem's title and detail, else the body as it is.
 * @param {string} body
 */
function wordsOf(body) {
  try {
    const { title, detail } = JSON.parse(body);
    const words = [title, detail].filter((word) => typeof word === "string");
    return words.length > 0 ? words.join(": ") : body;
  } catch {
    return body;
  }
}

/**
 * At most `bytesMax` bytes of a text, never cut within a character.
 * @param {Uint8Array} text
 * @param {number} bytesMax
 */
function cut(text, bytesMax) {
  let end = Math.min(text.length, bytesMax);
  while (end < text.length && end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end--;
  return text.subarray(0, end);
}
