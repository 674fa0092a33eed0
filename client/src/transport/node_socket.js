// A WebSocket link over Node's own sockets (Node 20 has no WebSocket, and no later one can stop reading).
//
// Owns the handshake and the socket; framing is frames.js's. Reading stops between two frames when it is paused, so that a
// slow consumer makes the server's log wait and no memory here.

import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";

import { encodeText } from "../content.js";
import { BINARY, CLOSE, FrameReader, FramingBroken, PING, PONG, TEXT, readClose, readText, writeFrame } from "./frames.js";
import { BROKE, CLOSE_TIMEOUT_MS, SEND_BUFFER_BYTES_MAX } from "./transport.js";

/** @typedef {import("node:http").IncomingMessage} IncomingMessage */
/** @typedef {import("node:net").Socket} Socket */
/** @typedef {import("./frames.js").Unit} Unit */
/** @typedef {import("./transport.js").Link} Link */
/** @typedef {import("./transport.js").LinkEvents} LinkEvents */
/** @typedef {import("./transport.js").LinkOptions} LinkOptions */

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, 1.3
const REFUSAL_BYTES_MAX = 4_096; // of the body that says why
const REASON_BYTES_MAX = 123;
const MISDIRECTED = 421;
const TOO_BIG = 1009; // the close code

/**
 * @typedef {Pick<import("node:https").RequestOptions, "ca" | "cert" | "key" | "passphrase" | "servername" | "rejectUnauthorized">}
 *   TlsOptions as node:tls has them
 */

/**
 * The transport over Node's sockets, with what wss:// addresses need beyond what the machine trusts already.
 * @param {TlsOptions} [tls]
 * @returns {import("./transport.js").Transport}
 */
export function nodeSocket(tls = {}) {
  return (url, options, events) => new NodeLink(new URL(url), options, events, tls);
}

/** @implements {Link} */
class NodeLink {
  #events;
  #options;
  #reader;
  #request;
  /** @type {Socket | null} */
  #socket = null;
  #isPaused = false;
  #isClosing = false; // a close frame was sent
  #isEnded = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #closeTimer;

  /**
   * @param {URL} url
   * @param {LinkOptions} options
   * @param {LinkEvents} events
   * @param {TlsOptions} tls
   */
  constructor(url, options, events, tls) {
    this.#events = events;
    this.#options = options;
    this.#reader = new FrameReader(options.frameBytesMax);
    const key = randomBytes(16).toString("base64");
    const isSecure = url.protocol === "wss:";
    const target = new URL(url);
    target.protocol = isSecure ? "https:" : "http:";
    this.#request = (isSecure ? httpsRequest : httpRequest)(target, {
      ...tls,
      agent: false,
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": options.subprotocol,
      },
    });
    this.#request.on("upgrade", (response, socket, head) => {
      this.#upgraded(response, /** @type {Socket} */ (socket), head, key);
    });
    this.#request.on("response", (response) => this.#refused(response));
    this.#request.on("error", (error) => this.#end(null, error.message || String(error)));
    this.#request.end();
  }

  /** @param {string | Uint8Array} frame */
  send(frame) {
    if (this.#isClosing) return true;
    return typeof frame === "string" ? this.#write(TEXT, encodeText(frame)) : this.#write(BINARY, frame);
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  close(code, reason) {
    if (this.#socket === null) {
      this.abort();
      return;
    }
    if (this.#isClosing) return;
    const text = cut(encodeText(reason), REASON_BYTES_MAX);
    this.#write(CLOSE, Uint8Array.of(code >> 8, code & 0xff, ...text));
    this.#isClosing = true;
    this.#closeTimer = setTimeout(() => this.abort(), CLOSE_TIMEOUT_MS);
    this.resume(); // the peer's answer is behind whatever waits
  }

  abort() {
    this.#end(null, "aborted");
  }

  pause() {
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume() {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    queueMicrotask(() => {
      this.#read();
      if (!this.#isPaused) this.#socket?.resume();
    });
  }

  /**
   * @param {IncomingMessage} response
   * @param {Socket} socket
   * @param {Buffer} head
   * @param {string} key
   */
  #upgraded(response, socket, head, key) {
    const accept = createHash("sha1").update(key + GUID).digest("base64");
    if (this.#isEnded || response.headers["sec-websocket-accept"] !== accept) {
      socket.destroy();
      this.#end(null, "the server answered the handshake wrongly");
      return;
    }
    if (response.headers["sec-websocket-protocol"] !== this.#options.subprotocol) {
      socket.destroy();
      this.#end(null, `the server does not speak ${this.#options.subprotocol}`);
      return;
    }
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#data(chunk));
    socket.on("drain", () => this.#events.drained());
    socket.on("error", (error) => this.#end(null, `${BROKE}: ${error.message}`));
    socket.on("end", () => this.#end(null, BROKE));
    socket.on("close", () => this.#end(null, BROKE));
    this.#events.opened();
    if (head.length > 0) this.#data(head);
  }

  /** @param {IncomingMessage} response */
  #refused(response) {
    let body = "";
    const refuse = () => {
      const reason = `refused with ${response.statusCode}: ${wordsOf(body.slice(0, REFUSAL_BYTES_MAX).trim())}`;
      this.#end(null, reason, response.statusCode === MISDIRECTED ? { isWrongPort: true } : {});
    };
    response.setEncoding("utf8");
    response.on("data", (text) => {
      body += text;
      if (body.length >= REFUSAL_BYTES_MAX) refuse();
    });
    response.on("error", refuse);
    response.on("end", refuse);
  }

  /** @param {Buffer} chunk */
  #data(chunk) {
    this.#reader.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this.#read();
  }

  #read() {
    try {
      while (!this.#isPaused && !this.#isEnded) {
        const unit = this.#reader.next();
        if (unit === null) return;
        if (unit.opcode === TEXT) this.#events.frame(readText(unit.payload));
        else if (unit.opcode === BINARY) this.#events.frame(unit.payload);
        else this.#control(unit);
      }
    } catch (error) {
      if (!(error instanceof FramingBroken)) throw error;
      if (!this.#isClosing) this.#write(CLOSE, Uint8Array.of(error.code >> 8, error.code & 0xff));
      this.#end(null, `the server broke the framing: ${error.message}`, error.code === TOO_BIG ? { isTooLarge: true } : { isInvalid: true });
    }
  }

  /** @param {Unit} unit */
  #control({ opcode, payload }) {
    if (opcode === PING) {
      const isDeaf = (this.#socket?.writableLength ?? 0) >= SEND_BUFFER_BYTES_MAX; // who does not read needs no answer
      if (!isDeaf) this.#write(PONG, payload);
    } else if (opcode === CLOSE) {
      const { code, reason } = readClose(payload);
      if (!this.#isClosing) this.#write(CLOSE, payload.slice(0, 2));
      this.#isClosing = true;
      this.#end(code, reason);
    }
  }

  /**
   * @param {number} opcode
   * @param {Uint8Array} payload
   */
  #write(opcode, payload) {
    const socket = this.#socket;
    if (socket === null || !socket.writable || this.#isEnded) return true;
    socket.write(writeFrame(opcode, payload, randomBytes(4)));
    return socket.writableLength < SEND_BUFFER_BYTES_MAX;
  }

  /**
   * @param {number | null} code
   * @param {string} reason
   * @param {{ isWrongPort?: boolean, isTooLarge?: boolean, isInvalid?: boolean }} [why]
   */
  #end(code, reason, why = {}) {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#closeTimer);
    const socket = this.#socket;
    if (socket === null) this.#request.destroy();
    else if (this.#isClosing) socket.destroySoon(); // after what is written has gone
    else socket.destroy();
    queueMicrotask(() => this.#events.closed({ code, reason, ...why }));
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
 * At most so many bytes of a text, not in the middle of a character.
 * @param {Uint8Array} text
 * @param {number} bytesMax
 */
function cut(text, bytesMax) {
  let end = Math.min(text.length, bytesMax);
  while (end < text.length && end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end--;
  return text.subarray(0, end);
}
