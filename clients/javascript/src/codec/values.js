// The values of the binary encoding: varints, strings, positions, read from a frame and written to one.
//
// Varints hold 64 bits. `varint` gives a number, exact below 2^53 (times, counts, lengths, numbers of subjects);
// `big` gives a bigint for what must be exact everywhere: epochs and sequences.

import { decodeText, encodeText } from "../content.js";
import { Position } from "../model.js";

const NUMBER_END = 1n << 64n;
const EXACT_BITS = 49; // seven more still fit a number exactly

/** Reads one frame from its beginning; anything past its end throws RangeError. */
export class Reader {
  #frame;
  #at = 0;

  /** @param {Uint8Array} frame */
  constructor(frame) {
    this.#frame = frame;
  }

  byte() {
    const value = this.#frame[this.#at++];
    if (value === undefined) throw new RangeError("a frame that is cut short");
    return value;
  }

  varint() {
    const start = this.#at;
    let value = 0;
    for (let shift = 0; shift < EXACT_BITS; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (byte === 0 && shift > 0) throw new RangeError("a varint that is too long");
        return value;
      }
    }
    this.#at = start;
    return Number(this.#long());
  }

  big() {
    const start = this.#at;
    let bytes = 0;
    while (this.byte() >= 0x80) bytes++;
    this.#at = start;
    return bytes < 7 ? BigInt(this.varint()) : this.#long();
  }

  signed() {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  string() {
    return decodeText(this.#take(this.varint()));
  }

  /** A length, and so many bytes. */
  sized() {
    return this.#take(this.varint());
  }

  position() {
    const epoch = this.big();
    return new Position(epoch, this.big());
  }

  rest() {
    return this.#take(this.#frame.length - this.#at);
  }

  #long() {
    let value = 0n;
    let shift = 0n;
    for (;;) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      shift += 7n;
      if (value >= NUMBER_END || (byte === 0 && shift > 7n)) throw new RangeError("a varint that is too long");
      if (byte < 0x80) return value;
    }
  }

  /** @param {number} size */
  #take(size) {
    const start = this.#at;
    this.#at += size;
    if (this.#at > this.#frame.length) throw new RangeError("a frame that is cut short");
    return this.#frame.subarray(start, this.#at);
  }
}

/** Writes one frame. */
export class Writer {
  #frame = new Uint8Array(64);
  #size = 0;

  /** @param {number} type */
  constructor(type) {
    this.byte(type);
  }

  /** @param {number} value */
  byte(value) {
    this.#room(1);
    this.#frame[this.#size++] = value;
  }

  /** @param {number | bigint} value */
  varint(value) {
    let rest = value;
    while (rest > Number.MAX_SAFE_INTEGER) {
      this.byte(Number(BigInt(rest) & 0x7fn) | 0x80);
      rest = BigInt(rest) >> 7n;
    }
    let small = Number(rest);
    while (small >= 0x80) {
      this.byte((small % 0x80) | 0x80);
      small = Math.floor(small / 0x80);
    }
    this.byte(small);
  }

  /**
   * As they are, to the frame's end.
   * @param {Uint8Array} bytes
   */
  rest(bytes) {
    this.#room(bytes.length);
    this.#frame.set(bytes, this.#size);
    this.#size += bytes.length;
  }

  /** @param {Uint8Array} bytes */
  sized(bytes) {
    this.varint(bytes.length);
    this.rest(bytes);
  }

  /** @param {string} text */
  string(text) {
    this.sized(encodeText(text));
  }

  /** @param {Position} position */
  position(position) {
    this.varint(position.epoch);
    this.varint(position.sequence);
  }

  done() {
    return this.#frame.subarray(0, this.#size);
  }

  /** @param {number} more */
  #room(more) {
    if (this.#size + more <= this.#frame.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#frame.length, this.#size + more));
    larger.set(this.#frame);
    this.#frame = larger;
  }
}
