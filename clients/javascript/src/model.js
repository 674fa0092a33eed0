// The values of the public API: positions, messages, gaps, and the other items that a subscription yields.
//
// Pure and small. Each item has a `type` for a switch. Both numbers of a position are bigints, because the protocol allows 64
// bits.

import { PositionInvalid } from "./errors.js";

/** @typedef {import("./content.js").Kind} Kind */
/** @typedef {import("./content.js").Body} Body */
/** @typedef {"cached" | "replicated" | "disk"} Ack the level a publisher waits for */
/** @typedef {"snapshot" | "recovered" | "history" | "live" | "resync"} Outcome how a subscription began */
/** @typedef {"expired" | "overrun" | "epoch" | "ahead" | "unknown" | "too_large"} GapReason why messages cannot be given */

const POSITION = /^(0|[1-9][0-9]{0,19})\.(0|[1-9][0-9]{0,19})$/;
const NUMBER_END = 1n << 64n;
const SAFE_DIGITS = 15; // a whole number of so many is exact as a double
const DOT = 0x2e;
const ZERO = 0x30;

/** A message's position in its subject: epoch and sequence, from 1. Only positions of one epoch can be compared. */
export class Position {
  /**
   * @param {bigint | number} epoch
   * @param {bigint | number} sequence
   */
  constructor(epoch, sequence) {
    /** @readonly */
    this.epoch = BigInt(epoch);
    /** @readonly */
    this.sequence = BigInt(sequence);
  }

  /**
   * Reads `EPOCH.SEQUENCE`; throws PositionInvalid.
   * @param {string} text
   */
  static parse(text) {
    const alike = lastRead.next(String(text));
    if (alike !== null) return alike;
    const found = POSITION.exec(text);
    if (found === null) throw new PositionInvalid(String(text));
    const position = new Position(BigInt(found[1] ?? 0), BigInt(found[2] ?? 0));
    if (position.epoch >= NUMBER_END || position.sequence >= NUMBER_END) throw new PositionInvalid(text);
    lastRead = new EpochRead(String(found[1]), position.epoch);
    return position;
  }

  /**
   * Whether `other` is in the same epoch and not before this position.
   * @param {Position} other
   */
  isAtOrBefore(other) {
    return this.epoch === other.epoch && this.sequence <= other.sequence;
  }

  toString() {
    return `${this.epoch}.${this.sequence}`;
  }

  toJSON() {
    return this.toString();
  }
}

/** The epoch that was read last. Messages share it, so it is not read again; this takes a third of the time of the expression. */
class EpochRead {
  #text;
  #epoch;

  /** @param {string} text @param {bigint} epoch */
  constructor(text, epoch) {
    this.#text = text;
    this.#epoch = epoch;
  }

  /**
   * A position of this epoch whose sequence is exact as a double; null: read it with the expression.
   * @param {string} text
   */
  next(text) {
    const first = this.#text.length + 1;
    const end = text.length;
    if (end <= first || end - first > SAFE_DIGITS || text.charCodeAt(first - 1) !== DOT || !text.startsWith(this.#text)) return null;
    if (text.charCodeAt(first) === ZERO) return null;
    let sequence = 0;
    for (let place = first; place < end; place++) {
      const digit = text.charCodeAt(place) - ZERO;
      if (!(digit >= 0 && digit <= 9)) return null;
      sequence = sequence * 10 + digit;
    }
    return new Position(this.#epoch, sequence);
  }
}

let lastRead = new EpochRead("0", 0n);

/**
 * @typedef {object} MessageFields what a message may have besides its subject and content
 * @property {Position | null} [position] null: a standard message
 * @property {Position | null} [after] the position that a subscriber must have reached to have missed nothing, if it is not the one before
 * @property {number} [timeMs] when the node accepted it, since 1970
 * @property {string | null} [replyTo] the subject for replies
 * @property {string | null} [pattern] on a wildcard subscription: its pattern
 * @property {number} [conflated] the number of messages merged into this one
 * @property {boolean} [isSnapshot] it is the snapshot of the subject at `position`
 * @property {boolean} [isPatch] its members go into the subject's state, and null removes one; otherwise the content replaces it
 * @property {boolean} [isRemoval] the subject's snapshot was removed
 * @property {Fields} [fields]
 */

/** @typedef {Readonly<Record<string, string | Uint8Array | null>>} Fields put over those of the subject's state, patch or not; null removes one */

/** @type {Fields} */
export const NO_FIELDS = Object.freeze(Object.create(null));

/**
 * About how many bytes they take in memory.
 * @param {Fields} fields
 */
export function sizeOfFields(fields) {
  if (fields === NO_FIELDS) return 0;
  return Object.entries(fields).reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0), 0);
}

/** A message as a subscriber receives it. `json()`, `text()` and `bytes()` read its content. */
export class Message {
  /** @type {"message"} @readonly */
  type = "message";
  #body;

  /**
   * @param {string} subject
   * @param {Kind} kind
   * @param {Body} body
   * @param {MessageFields} [fields]
   */
  constructor(subject, kind, body, fields = {}) {
    this.#body = body;
    /** @readonly */
    this.subject = subject;
    /** @readonly */
    this.kind = kind;
    /** @readonly */
    this.position = fields.position ?? null;
    /** @readonly */
    this.after = fields.after ?? null;
    /** @readonly */
    this.timeMs = fields.timeMs ?? 0;
    /** @readonly */
    this.replyTo = fields.replyTo ?? null;
    /** @readonly */
    this.pattern = fields.pattern ?? null;
    /** @readonly */
    this.conflated = fields.conflated ?? 0;
    /** @readonly */
    this.isSnapshot = fields.isSnapshot ?? false;
    /** @readonly */
    this.isPatch = fields.isPatch ?? false;
    /** @readonly */
    this.isRemoval = fields.isRemoval ?? false;
    /** @readonly */
    this.fields = fields.fields ?? NO_FIELDS;
  }

  /** Approximate bytes of its content and fields in memory. */
  get size() {
    return this.#body.size + sizeOfFields(this.fields);
  }

  /** The content as JSON; throws SyntaxError if it is not JSON. */
  json() {
    return this.#body.json();
  }

  /** The content as text; throws TypeError if it is not UTF-8. */
  text() {
    return this.#body.text();
  }

  /** The content as it was published. */
  bytes() {
    return this.#body.bytes();
  }
}

/**
 * Messages of one subject (or, after an unknown resume token, of a pattern) that are no longer available. `position` is the
 * subscriber's new position. A snapshot follows unless `missed` is 0. `missed` is null if the number is not known.
 */
export class Gap {
  /** @type {"gap"} @readonly */
  type = "gap";

  /**
   * @param {string} subject
   * @param {Position | null} position
   * @param {Position | null} after
   * @param {GapReason} reason
   * @param {number | null} missed
   * @param {string | null} pattern
   */
  constructor(subject, position, after, reason, missed, pattern = null) {
    this.subject = subject;
    this.position = position;
    this.after = after;
    this.reason = reason;
    this.missed = missed;
    this.pattern = pattern;
  }
}

/** At-most-once messages that the server could not send in time. They are lost. */
export class Dropped {
  /** @type {"dropped"} @readonly */
  type = "dropped";

  /**
   * @param {string} selector
   * @param {number | null} count null: the number is unknown, and may be 0 (after a pause)
   */
  constructor(selector, count) {
    this.selector = selector;
    this.count = count;
  }
}

/** The subscription started (with its outcome), or stopped because the connection was lost. */
export class Status {
  /** @type {"status"} @readonly */
  type = "status";

  /**
   * @param {string} selector
   * @param {"subscribed" | "disconnected"} state
   * @param {Outcome | null} [outcome]
   * @param {Position | null} [position] the end of the join, on a single subject
   * @param {number | null} [count] messages of the join, on a single subject; null: not known beforehand
   * @param {string} [reason]
   * @param {string | null} [transport] its transport: "websocket", "sse", "poll"
   */
  constructor(selector, state, outcome = null, position = null, count = 0, reason = "", transport = null) {
    this.selector = selector;
    this.state = state;
    this.outcome = outcome;
    this.position = position;
    this.count = count;
    this.reason = reason;
    this.transport = transport;
  }
}

/** @typedef {Message | Gap | Dropped | Status} Item what a subscription yields */

/** An accepted publish. `ack` is the level reached, if it is not the requested one. */
export class Published {
  /**
   * @param {Position | null} position null for a standard message
   * @param {boolean} [isDuplicate] its idempotency key was known already
   * @param {Ack | null} [ack]
   */
  constructor(position, isDuplicate = false, ack = null) {
    this.position = position;
    this.isDuplicate = isDuplicate;
    this.ack = ack;
  }
}

/** Whether a subject or pattern has subscribers. */
export class Interest {
  /** @type {"interest"} @readonly */
  type = "interest";

  /**
   * @param {string} subject
   * @param {boolean} hasSubscribers
   */
  constructor(subject, hasSubscribers) {
    this.subject = subject;
    this.hasSubscribers = hasSubscribers;
  }
}
