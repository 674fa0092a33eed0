// Decodes the binary encoding, `godwit.v1.binary` (protocol/binary.md). Commands are in written.js.
//
// It remembers, for one connection, the subject of each announced number. Frames of an unknown type are ignored; a truncated
// frame, or a message with a number that was not announced, throws FrameInvalid.

import { BytesBody } from "../content.js";
import { FrameInvalid } from "../errors.js";
import { Dropped, Gap, Interest, Message, NO_FIELDS, Position } from "../model.js";
import { OUTCOMES, REASONS, replyOf } from "./push.js";
import { Reader, Writer } from "./values.js";
import { KINDS, writeCommand } from "./written.js";

/** @typedef {import("./command.js").Command} Command */
/** @typedef {import("./push.js").Received} Received */
/** @typedef {{ epoch: bigint, baseTime: number, subject: string, pattern: string | null }} Announced */

const BATCH = 0x00;
const ANNOUNCEMENT = 0x01;

/** State of one connection: numbers that another connection announced are not valid here. */
export class BinaryEncoding {
  subprotocol = "godwit.v1.binary";
  /** @type {Map<number, Announced>} */
  #announced = new Map();

  /**
   * Several commands as one frame, handled in order.
   * @param {Command[]} commands
   * @returns {Uint8Array}
   */
  encode(commands) {
    const frames = commands.map(writeCommand);
    if (frames.length === 1 && frames[0]) return frames[0];
    const batch = new Writer(BATCH);
    for (const frame of frames) batch.sized(frame);
    return batch.done();
  }

  /**
   * Decode one frame; throws FrameInvalid.
   * @param {string | Uint8Array} frame
   * @returns {Received[]}
   */
  decode(frame) {
    if (typeof frame === "string") throw new FrameInvalid("a text frame on a binary connection");
    try {
      const reader = new Reader(frame);
      const first = reader.byte();
      if (first >= 0x80) return [this.#message(first, reader)];
      if (first === ANNOUNCEMENT) {
        this.#announce(reader);
        return [];
      }
      const read = READ.get(first);
      return read === undefined ? [] : [read(reader)];
    } catch (error) {
      const shown = [...frame.subarray(0, 60)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
      throw new FrameInvalid(`cannot read ${shown}: ${error}`);
    }
  }

  /** @param {Reader} reader */
  #announce(reader) {
    const number = reader.varint();
    const [epoch, baseTime] = [reader.big(), reader.varint()];
    const [subject, pattern] = [reader.string(), reader.string()];
    this.#announced.set(number, { epoch, baseTime, subject, pattern: pattern || null });
  }

  /**
   * @param {number} flags
   * @param {Reader} reader
   */
  #message(flags, reader) {
    const announced = this.#announced.get(reader.varint());
    if (announced === undefined) throw new RangeError("a number that was not announced");
    const position = flags & 0x08 ? null : new Position(announced.epoch, reader.big());
    const timeMs = announced.baseTime + reader.signed();
    const after = flags & 0x10 ? readAfter(reader, position) : null;
    const conflated = flags & 0x20 ? reader.varint() : 0;
    const replyTo = flags & 0x40 ? reader.string() : null;
    const more = (flags & 0x03) === 0x03 ? reader.byte() : flags & 0x03;
    const kind = KINDS[more & 0x03];
    if (kind === undefined) throw new RangeError("an unknown kind of content");
    const facts = { isSnapshot: (flags & 0x04) !== 0, isPatch: (more & 0x04) !== 0, isRemoval: (more & 0x08) !== 0 };
    const held = (more & 0x10) !== 0 ? readFields(reader) : NO_FIELDS;
    const fields = { position, after, timeMs, replyTo, pattern: announced.pattern, conflated, ...facts, fields: held };
    return new Message(announced.subject, kind, new BytesBody(reader.rest()), fields);
  }
}

/** @param {Reader} reader */
function readFields(reader) {
  /** @type {Record<string, string | Uint8Array | null>} */
  const fields = Object.create(null);
  for (let left = reader.varint(); left > 0; left--) {
    const [name, type] = [reader.string(), reader.byte()];
    if (type > 2) throw new RangeError("a field of an unknown type");
    fields[name] = type === 0 ? reader.string() : type === 1 ? reader.sized() : null;
  }
  return fields;
}

/**
 * @param {Reader} reader
 * @param {Position | null} position
 */
function readAfter(reader, position) {
  const distance = reader.big();
  if (distance === 0n) return reader.position();
  if (position === null || distance > position.sequence) throw new RangeError("after lies before every position");
  return new Position(position.epoch, position.sequence - distance);
}

/**
 * @param {Reader} reader
 * @returns {Received}
 */
function readConnected(reader) {
  const [id, session, node] = [reader.varint(), reader.string(), reader.string()];
  reader.varint(); // the node's time
  const pingIntervalMs = reader.varint();
  const hasPublisher = ((reader.rest()[0] ?? 0) & 0x01) === 0;
  return replyOf(id, "connected", { session, node, pingIntervalMs, hasPublisher });
}

/**
 * @param {Reader} reader
 * @returns {Received}
 */
function readSubscribed(reader) {
  const [id, flags, outcome] = [reader.varint(), reader.byte(), reader.byte()];
  reader.string(); // the selector: the id identifies it
  const position = flags & 0x01 ? reader.position() : null;
  const count = flags & 0x02 ? reader.varint() : null;
  return replyOf(id, "subscribed", { position, outcome: OUTCOMES[outcome] ?? null, count });
}

/**
 * @param {Reader} reader
 * @returns {Received}
 */
function readPublished(reader) {
  const [id, flags] = [reader.varint(), reader.byte()];
  const position = flags & 0x01 ? reader.position() : null;
  return replyOf(id, "published", { position, isDuplicate: (flags & 0x02) !== 0 });
}

/**
 * @param {Reader} reader
 * @returns {Received}
 */
function readRefusal(reader) {
  const [id, flags, code] = [reader.varint(), reader.byte(), reader.varint()];
  const [codeName, reason] = [reader.string(), reader.string()];
  return { type: "refusal", id: id || null, code, codeName, reason, retry: (flags & 0x01) !== 0 };
}

/**
 * @param {Reader} reader
 * @returns {Received}
 */
function readGap(reader) {
  const [flags, reason, subject] = [reader.byte(), reader.byte(), reader.string()];
  const after = flags & 0x01 ? reader.position() : null;
  const at = flags & 0x02 ? reader.position() : null;
  const missed = flags & 0x04 ? reader.varint() : null;
  const pattern = flags & 0x08 ? reader.string() : null;
  return new Gap(subject, at, after, REASONS[reason] ?? "unknown", missed, pattern);
}

/**
 * @param {string} name
 * @returns {(reader: Reader) => Received}
 */
const done = (name) => (reader) => replyOf(reader.varint(), name);

/** @type {Map<number, (reader: Reader) => Received>} */
const READ = new Map([
  [0x02, readGap],
  [0x03, (reader) => readCounted(reader)],
  [0x04, (reader) => ({ type: "marked", resumeToken: reader.string(), pattern: reader.string(), node: null })],
  [0x05, (reader) => readInterest(reader)],
  [0x06, (reader) => ({ type: "notice", name: "token_expiring", inMs: reader.varint(), reconnectAfterMs: null })],
  [0x07, (reader) => ({ type: "notice", name: "draining", inMs: null, reconnectAfterMs: reader.varint() })],
  [0x08, (reader) => readEnded(reader)],
  [0x09, (reader) => readEpochs(reader)],
  [0x0a, (reader) => readInterestState(reader)],
  [0x20, readConnected],
  [0x21, readSubscribed],
  [0x22, done("unsubscribed")],
  [0x23, readPublished],
  [0x24, done("pong")],
  [0x25, done("watching")],
  [0x26, done("unwatched")],
  [0x2f, readRefusal],
]);

/** @param {Reader} reader */
function readCounted(reader) {
  const count = reader.varint();
  return new Dropped(reader.string(), count);
}

/**
 * @param {Reader} reader
 * @returns {import("./push.js").InterestState}
 */
function readInterestState(reader) {
  const isComplete = reader.byte() !== 0;
  return { type: "interest_state", selector: reader.string(), isComplete };
}

/** @param {Reader} reader */
function readInterest(reader) {
  const hasSubscribers = reader.byte() !== 0;
  return new Interest(reader.string(), hasSubscribers);
}

/**
 * @param {Reader} reader
 * @returns {Received}
 */
function readEnded(reader) {
  const code = reader.varint();
  return { type: "ended", code, selector: reader.string(), reason: reader.string() };
}

/**
 * @param {Reader} reader
 * @returns {Received}
 */
function readEpochs(reader) {
  const [subject, count] = [reader.string(), reader.varint()];
  /** @type {bigint[]} */
  const order = [];
  while (order.length < count) order.push(reader.big());
  return { type: "epochs", subject, order, pattern: reader.string() || null };
}
