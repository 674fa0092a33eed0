// The publishes of one client: waiting, sent, answered.
//
// Unanswered publishes are held here in their order, within two limits. After a lost connection those that were sent are sent
// first again with their old number, or key, so that the server accepts each once; a publish without either cannot be sent twice,
// so it fails. Numbers are assigned when a publish is first sent.

import { Draft } from "../codec/command.js";
import { CODES, Code } from "../codes.js";
import { AnswerLost, ClientClosed, CommandRefused, PublishQueueFull } from "../errors.js";
import { Numbering } from "./numbering.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("../model.js").Published} Published */
/** @typedef {import("../codec/command.js").Publish} Publish */
/** @typedef {(outcome: Published | GodwitError) => void} Settle */

/**
 * @typedef {object} Pending one publish until it is answered; `settle` is called exactly once, unless it was given up
 * @property {Draft} draft
 * @property {number} size
 * @property {number} order
 * @property {Settle} settle
 * @property {boolean} isGivenUp
 * @property {boolean} isSent
 * @property {boolean} isFinished
 * @property {boolean} isAlone goes in a frame of its own from now on
 * @property {boolean} isNumbered it is sent under a number, where the server takes one
 * @property {number} number 0: not numbered
 * @property {number} sends under this number, without an answer
 */

/**
 * @typedef {object} Frame one as it was sent
 * @property {number} size in bytes
 * @property {number[]} ids of its publishes
 * @property {boolean} isMixed it held more than one command
 */

/** @type {number[]} the server cannot know whether it took this one before */
const UNKNOWN = [Code.RepeatUnknown, Code.NumberTooOld];
export const ENTRY_BYTES = 200; // memory of one waiting publish besides its content

/** Publishes in order: first those on the wire, then those waiting. */
export class PublishQueue {
  #countMax;
  #bytesMax;
  #inFlightMax;
  #numbering;
  #sendsUnknown;
  /** @type {Pending[]} */
  #waiting = [];
  #first = 0; // of the waiting: those before it are gone
  #gone = 0; // of the waiting: given up, and taken out together
  /** @type {Map<number, Pending>} */
  #inFlight = new Map();
  /** @type {Set<number>} ids of those in flight that went in a frame of their own: nothing else is sent until they are answered */
  #alone = new Set();
  #bytes = 0;
  #order = 0;
  #heldFrom = Infinity; // those given from here on are not sent yet

  /**
   * @param {Pick<import("./settings.js").Settings, "publishQueueMax" | "publishQueueBytesMax" | "publishInFlightMax" | "onUnknownPublish">} settings
   * @param {Numbering} [numbering]
   */
  constructor({ publishQueueMax, publishQueueBytesMax, publishInFlightMax, onUnknownPublish }, numbering = new Numbering()) {
    this.#numbering = numbering;
    this.#sendsUnknown = onUnknownPublish === "resend";
    this.#countMax = publishQueueMax;
    this.#bytesMax = publishQueueBytesMax;
    this.#inFlightMax = publishInFlightMax;
  }

  get size() {
    return this.#waiting.length - this.#first - this.#gone + this.#inFlight.size;
  }

  get bytes() {
    return this.#bytes;
  }

  get inFlight() {
    return this.#inFlight.size;
  }

  get canSend() {
    if (this.#inFlight.size >= this.#inFlightMax || this.#waiting.length - this.#first <= this.#gone) return false;
    if (this.#alone.size > 0 && !this.#waiting[this.#first]?.isAlone) return false;
    return this.#heldFrom === Infinity || this.#earlier.length > 0;
  }

  /**
   * Queue a draft; throws PublishQueueFull at a limit, having kept nothing.
   * @param {Draft} draft
   * @param {Settle} settle
   * @param {boolean} [isNumbered]
   * @returns {Pending}
   */
  add(draft, settle, isNumbered = false) {
    const size = ENTRY_BYTES + draft.size;
    if (this.size >= this.#countMax) throw new PublishQueueFull("publishQueueMax", this.#countMax);
    if (this.#bytes + size > this.#bytesMax && this.size > 0) {
      throw new PublishQueueFull("publishQueueBytesMax", this.#bytesMax);
    }
    const flags = { isGivenUp: false, isSent: false, isFinished: false, isAlone: false, isNumbered, number: 0, sends: 0 };
    const pending = { draft, size, order: ++this.#order, settle, ...flags };
    this.#waiting.push(pending);
    this.#bytes += size;
    return pending;
  }

  /**
   * The caller no longer waits for this publish. If it was not sent yet, it frees its space at once and is never sent.
   * @param {Pending} pending
   */
  giveUp(pending) {
    if (pending.isGivenUp || pending.isFinished) return;
    pending.isGivenUp = true;
    if (pending.isSent) return; // its answer, or the loss of the connection, frees its place
    this.#finish(pending, new ClientClosed());
    this.#gone++;
    if (this.#gone * 2 > this.#waiting.length - this.#first) this.#wait([]);
  }

  /**
   * Those that can be sent now, each with an id.
   * @param {() => number} takeId
   * @returns {Publish[]}
   */
  send(takeId) {
    /** @type {Publish[]} */
    const commands = [];
    while (this.canSend) {
      const pending = /** @type {Pending} */ (this.#waiting[this.#first]);
      if (pending.order >= this.#heldFrom) break;
      this.#first++;
      if (pending.isGivenUp) {
        this.#gone--;
        continue;
      }
      if (pending.isNumbered && !this.#canIdentify(pending)) continue;
      const id = takeId();
      pending.isSent = true;
      this.#inFlight.set(id, pending);
      if (pending.isAlone) this.#alone.add(id);
      const { draft, isAlone, number } = pending;
      const numbered = number === 0 ? null : { number, floor: this.#numbering.floor, isAgain: pending.sends > 0 };
      commands.push({ verb: "publish", id, draft, isAlone, numbered });
      pending.sends++;
    }
    this.#waiting.splice(0, this.#first);
    this.#first = 0;
    return commands;
  }

  /**
   * Give it a number, or a key where the server has no room for numbers. False: it failed.
   * @param {Pending} pending
   */
  #canIdentify(pending) {
    if (this.#numbering.isKnown) {
      pending.number ||= this.#numbering.take();
      return true;
    }
    const { draft, sends } = pending;
    if (sends > 0 && !this.#sendsUnknown) {
      this.#finish(pending, new AnswerLost(draft.subject));
      return false;
    }
    this.#forgetNumber(pending);
    const { subject, kind, content } = draft;
    pending.draft = new Draft(subject, kind, content, { ...draft, key: this.#numbering.key() });
    pending.isNumbered = false;
    return true;
  }

  /** @param {Pending} pending */
  #forgetNumber(pending) {
    this.#numbering.settle(pending.number);
    pending.number = pending.sends = 0;
  }

  /**
   * The server refused this publish. If it may have accepted it before, the publish is sent under a new number, or fails.
   * @param {number} id
   * @param {CommandRefused} error
   */
  refuse(id, error) {
    const pending = this.#inFlight.get(id);
    if (!pending?.number || !UNKNOWN.includes(error.code)) this.answer(id, error);
    else if (this.#sendsUnknown) {
      this.#forgetNumber(pending);
      this.putBack(id);
    } else this.answer(id, new AnswerLost(pending.draft.subject));
  }

  /**
   * Settle the publish with this id; false for an id that is not known.
   * @param {number} id
   * @param {Published | GodwitError} outcome
   */
  answer(id, outcome) {
    const pending = this.#inFlight.get(id);
    if (pending === undefined) return false;
    this.#inFlight.delete(id);
    this.#alone.delete(id);
    this.#finish(pending, outcome);
    return true;
  }

  /**
   * The server did not accept this publish for now: it waits again, in its old order.
   * @param {number} id
   */
  putBack(id) {
    const pending = this.#inFlight.get(id);
    if (pending === undefined) return;
    this.#inFlight.delete(id);
    this.#alone.delete(id);
    pending.sends = Math.max(0, pending.sends - 1);
    if (pending.sends === 0) this.#forgetNumber(pending); // one that no server has seen may be below those of the next connection
    this.#wait([pending]);
  }

  /**
   * The server refused a frame for its size. If it held a single publish, that fails; several are sent one by one next.
   * @param {Frame} frame
   */
  refuseTooBig({ size, ids, isMixed }) {
    const [first = 0] = ids;
    const only = this.#inFlight.get(first);
    if (ids.length === 1 && !isMixed && only) this.answer(first, tooBig(only.draft, size));
    for (const id of ids) {
      const pending = this.#inFlight.get(id);
      if (pending) pending.isAlone = true;
    }
  }

  /**
   * Refuse a publish whose frame is too large, as the client has learned. False: the server may have accepted it before, so it
   * is sent, and the server answers.
   * @param {number} id
   * @param {number} size
   */
  refuseUnsent(id, size) {
    const isFirst = this.#inFlight.get(id)?.sends === 1;
    if (isFirst) this.refuseTooBig({ size, ids: [id], isMixed: false });
    return isFirst;
  }

  /**
   * The server could not read a frame, and did not say which: each unanswered publish is sent in its own frame next.
   * False: each was in a frame of its own already, so none of them caused it.
   */
  sendAlone() {
    const mixed = [...this.#inFlight.values()].filter(({ isAlone }) => !isAlone);
    for (const pending of mixed) pending.isAlone = true;
    return mixed.length > 0;
  }

  /** The connection is lost: publishes that were sent wait again, before the others. */
  lost() {
    const again = [...this.#inFlight.values()];
    this.#inFlight.clear();
    this.#alone.clear();
    for (const pending of again) {
      if (!isIdentified(pending)) this.#finish(pending, new AnswerLost(pending.draft.subject));
    }
    this.#wait(again.filter(isIdentified));
  }

  /** Only publishes that were made until now are sent, until `releaseLater`. */
  holdLater() {
    this.#heldFrom = this.#order + 1;
  }

  releaseLater() {
    this.#heldFrom = Infinity;
  }

  /** Something that was given before `holdLater` has no answer. */
  get hasEarlier() {
    return this.#earlier.length > 0 || [...this.#inFlight.values()].some(({ order }) => order < this.#heldFrom);
  }

  /** Publishes made before `holdLater` are not sent any more. */
  failEarlier() {
    for (const [id, { order, draft }] of this.#inFlight) if (order < this.#heldFrom) this.answer(id, new AnswerLost(draft.subject));
    for (const pending of this.#earlier) {
      this.#finish(pending, new AnswerLost(pending.draft.subject));
      pending.isGivenUp = true;
    }
    this.#wait([]);
  }

  /** Of the waiting. */
  get #earlier() {
    return this.#waiting.slice(this.#first).filter(({ isGivenUp, order }) => !isGivenUp && order < this.#heldFrom);
  }

  /**
   * Nothing more will be sent: fail every publish without an answer.
   * @param {GodwitError} error
   */
  close(error) {
    const remaining = [...this.#inFlight.values(), ...this.#waiting.slice(this.#first)];
    this.#inFlight.clear();
    this.#waiting = [];
    this.#first = 0;
    this.#gone = 0;
    for (const pending of remaining) if (!pending.isFinished) this.#finish(pending, error);
  }

  /** @param {Pending[]} again */
  #wait(again) {
    for (const pending of again) {
      pending.isSent = false;
      if (pending.isGivenUp) this.#finish(pending, new ClientClosed());
    }
    const all = [...again, ...this.#waiting.slice(this.#first)].filter(({ isGivenUp }) => !isGivenUp);
    this.#waiting = all.sort((one, other) => one.order - other.order);
    this.#first = this.#gone = 0;
  }

  /**
   * @param {Pending} pending
   * @param {Published | GodwitError} outcome
   */
  #finish(pending, outcome) {
    this.#bytes -= pending.size;
    this.#numbering.settle(pending.number);
    pending.isFinished = true;
    if (!pending.isGivenUp) pending.settle(outcome);
  }
}

/**
 * Whether the server can recognize this publish if it is sent again.
 * @param {Pending} pending
 */
function isIdentified({ draft, number }) {
  return draft.key !== null || number > 0;
}

/**
 * @param {Draft} draft
 * @param {number} size
 */
function tooBig(draft, size) {
  const code = Code.MessageTooBig;
  const sentence = CODES.get(code)?.sentence ?? "";
  return new CommandRefused(code, "MessageTooBig", `${draft.subject}, ${size} bytes as sent: ${sentence}`);
}
