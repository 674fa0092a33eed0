// WebSocket frames (RFC 6455) as a client reads and writes them: bytes in, whole messages and controls out. Pure.
//
// Owns the rules of framing: no reserved bits, no masks from a server, controls whole and small, fragments in order, text
// that is UTF-8, and a limit on one message. What breaks a rule throws FramingBroken with the close code to answer.

import { decodeText } from "../content.js";

export const TEXT = 0x1;
export const BINARY = 0x2;
export const CLOSE = 0x8;
export const PING = 0x9;
export const PONG = 0xa;
const CONTINUATION = 0x0;
const CONTROL_BYTES_MAX = 125;

/** @typedef {{ opcode: number, payload: Uint8Array }} Unit a whole message (TEXT, BINARY) or a control */

/** The peer broke the framing. */
export class FramingBroken extends Error {
  /**
   * @param {number} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Collects chunks and gives what is whole, one at a time, so that its user can stop between two. */
export class FrameReader {
  #bytesMax;
  /** @type {Uint8Array[]} */
  #chunks = [];
  #size = 0; // of all chunks
  #wanted = 2; // so many bytes before it is worth looking again
  /** @type {Uint8Array[]} */
  #fragments = [];
  #fragmentsBytes = 0;
  #opcode = CONTINUATION; // of the fragmented message under way

  /** @param {number} bytesMax of one message, all fragments together */
  constructor(bytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** @param {Uint8Array} chunk */
  push(chunk) {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
  }

  /**
   * The next message or control, or null when more bytes are needed; throws FramingBroken.
   * @returns {Unit | null}
   */
  next() {
    while (this.#size >= this.#wanted) {
      const bytes = this.#together();
      const frame = this.#head(bytes);
      if (frame === null) continue; // `wanted` has grown
      const { first, start, end } = frame;
      this.#chunks = end < bytes.length ? [bytes.subarray(end)] : [];
      this.#size -= end;
      this.#wanted = 2;
      const unit = this.#take(first, bytes.subarray(start, end));
      if (unit !== null) return unit;
    }
    return null;
  }

  /** One piece of all that came; only when there is enough of it, so that a large frame is not copied with each chunk. */
  #together() {
    if (this.#chunks.length > 1) this.#chunks = [concat(this.#chunks, this.#size)];
    return /** @type {Uint8Array} */ (this.#chunks[0]);
  }

  /**
   * The frame at the beginning, or null when it is not whole yet.
   * @param {Uint8Array} bytes
   */
  #head(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [first, second] = [view.getUint8(0), view.getUint8(1)];
    if (first & 0x70) throw new FramingBroken(1002, "a reserved bit is set");
    if (second & 0x80) throw new FramingBroken(1002, "a server does not mask");
    let size = second;
    let start = 2;
    if (second === 126) {
      start = 4;
      if (!this.#has(start)) return null;
      size = view.getUint16(2);
    } else if (second === 127) {
      start = 10;
      if (!this.#has(start)) return null;
      size = view.getUint32(2) * 2 ** 32 + view.getUint32(6);
    }
    if ((first & 0x08) !== 0 && (size > CONTROL_BYTES_MAX || (first & 0x80) === 0)) {
      throw new FramingBroken(1002, "a control that is large or in pieces");
    }
    if (this.#fragmentsBytes + size > this.#bytesMax) {
      throw new FramingBroken(1009, `a message of more than ${this.#bytesMax} bytes`);
    }
    return this.#has(start + size) ? { first, start, end: start + size } : null;
  }

  /** @param {number} size */
  #has(size) {
    this.#wanted = size;
    return this.#size >= size;
  }

  /**
   * @param {number} first
   * @param {Uint8Array} payload
   * @returns {Unit | null}
   */
  #take(first, payload) {
    const [opcode, isLast] = [first & 0x0f, (first & 0x80) !== 0];
    if (opcode === CLOSE || opcode === PING || opcode === PONG) return { opcode, payload };
    if (opcode !== TEXT && opcode !== BINARY && opcode !== CONTINUATION) throw new FramingBroken(1002, "an unknown opcode");
    const isUnderWay = this.#opcode !== CONTINUATION;
    if (isUnderWay !== (opcode === CONTINUATION)) throw new FramingBroken(1002, "fragments out of order");
    if (isLast && !isUnderWay) return { opcode, payload };
    if (!isUnderWay) this.#opcode = opcode;
    this.#fragments.push(payload);
    this.#fragmentsBytes += payload.length;
    if (!isLast) return null;
    const whole = { opcode: this.#opcode, payload: concat(this.#fragments, this.#fragmentsBytes) };
    this.#fragments = [];
    this.#fragmentsBytes = 0;
    this.#opcode = CONTINUATION;
    return whole;
  }
}

/**
 * A frame as a client writes it: whole, and masked with these four bytes.
 * @param {number} opcode
 * @param {Uint8Array} payload
 * @param {Uint8Array} mask
 */
export function writeFrame(opcode, payload, mask) {
  const size = payload.length;
  const start = size < 126 ? 6 : size < 65_536 ? 8 : 14;
  const frame = new Uint8Array(start + size);
  const view = new DataView(frame.buffer);
  view.setUint8(0, 0x80 | opcode);
  view.setUint8(1, 0x80 | (size < 126 ? size : size < 65_536 ? 126 : 127));
  if (start === 8) view.setUint16(2, size);
  if (start === 14) view.setBigUint64(2, BigInt(size));
  frame.set(mask, start - 4);
  for (let at = 0; at < size; at++) frame[start + at] = /** @type {number} */ (payload[at]) ^ (mask[at & 3] ?? 0);
  return frame;
}

/**
 * What a close frame says; throws FramingBroken.
 * @param {Uint8Array} payload
 */
export function readClose(payload) {
  if (payload.length === 0) return { code: null, reason: "" };
  if (payload.length === 1) throw new FramingBroken(1002, "a close code of one byte");
  const code = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
  return { code, reason: readText(payload.subarray(2)) };
}

/** @param {Uint8Array} payload */
export function readText(payload) {
  try {
    return decodeText(payload);
  } catch {
    throw new FramingBroken(1007, "text that is not UTF-8");
  }
}

/**
 * @param {Uint8Array[]} pieces
 * @param {number} size
 */
function concat(pieces, size) {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
