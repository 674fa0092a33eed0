// The publishes of one client: waiting, on the wire, answered.
//
// Everything not yet answered is held here, in the order it was given, within two limits. After a loss what was on the wire
// goes first again under its old key, so that the server takes each once; a publish without a key cannot be sent twice, so
// it fails.

import { CODES, Code } from "../codes.js";
import { AnswerLost, ClientClosed, CommandRefused, PublishQueueFull } from "../errors.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("../model.js").Published} Published */
/** @typedef {import("../codec/command.js").Draft} Draft */
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
 */

export const ENTRY_BYTES = 200; // what one waiting publish costs beside its content

/** Publishes in order: first those on the wire, then those waiting. */
export class PublishQueue {
  #countMax;
  #bytesMax;
  #inFlightMax;
  /** @type {Pending[]} */
  #waiting = [];
  #first = 0; // of the waiting: those before it are gone
  #gone = 0; // of the waiting: given up, and taken out together
  /** @type {Map<number, Pending>} */
  #inFlight = new Map();
  #bytes = 0;
  #order = 0;

  /**
   * @param {number} countMax
   * @param {number} bytesMax
   * @param {number} inFlightMax
   */
  constructor(countMax, bytesMax, inFlightMax) {
    this.#countMax = countMax;
    this.#bytesMax = bytesMax;
    this.#inFlightMax = inFlightMax;
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
    return this.#waiting.length - this.#first > this.#gone && this.#inFlight.size < this.#inFlightMax;
  }

  /**
   * Queue a draft; throws PublishQueueFull at a limit, having kept nothing.
   * @param {Draft} draft
   * @param {Settle} settle
   * @returns {Pending}
   */
  add(draft, settle) {
    const size = ENTRY_BYTES + draft.size;
    if (this.size >= this.#countMax) throw new PublishQueueFull("publishQueueMax", this.#countMax);
    if (this.#bytes + size > this.#bytesMax && this.size > 0) {
      throw new PublishQueueFull("publishQueueBytesMax", this.#bytesMax);
    }
    const pending = { draft, size, order: ++this.#order, settle, isGivenUp: false, isSent: false, isFinished: false };
    this.#waiting.push(pending);
    this.#bytes += size;
    return pending;
  }

  /**
   * Nobody waits for this one any more. One that is not sent yet frees its place at once and is never sent.
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
   * Those that may go on the wire now, each with an id.
   * @param {() => number} takeId
   * @returns {Publish[]}
   */
  send(takeId) {
    /** @type {Publish[]} */
    const commands = [];
    while (this.canSend) {
      const pending = /** @type {Pending} */ (this.#waiting[this.#first++]);
      if (pending.isGivenUp) {
        this.#gone--;
        continue;
      }
      const id = takeId();
      pending.isSent = true;
      this.#inFlight.set(id, pending);
      commands.push({ verb: "publish", id, draft: pending.draft });
    }
    this.#waiting.splice(0, this.#first);
    this.#first = 0;
    return commands;
  }

  /**
   * Settle the publish with this id; false when it is none of ours.
   * @param {number} id
   * @param {Published | GodwitError} outcome
   */
  answer(id, outcome) {
    const pending = this.#inFlight.get(id);
    if (pending === undefined) return false;
    this.#inFlight.delete(id);
    this.#finish(pending, outcome);
    return true;
  }

  /**
   * The server did not take this one and will not now: it waits again, in its old place.
   * @param {number} id
   */
  putBack(id) {
    const pending = this.#inFlight.get(id);
    if (pending === undefined) return;
    this.#inFlight.delete(id);
    this.#wait([pending]);
  }

  /**
   * The connection went: what was on the wire waits again, ahead of the rest.
   * @param {boolean} [isTooBig] the server closed because a message was too big: the largest must have been it, and is not
   *   tried again
   */
  lost(isTooBig = false) {
    let again = [...this.#inFlight.values()];
    this.#inFlight.clear();
    if (isTooBig && again.length > 0) {
      const largest = again.reduce((one, other) => (other.size > one.size ? other : one));
      again = again.filter((pending) => pending !== largest);
      this.#finish(largest, tooBig(largest.draft));
    }
    for (const pending of again) {
      if (pending.draft.key === null) this.#finish(pending, new AnswerLost(pending.draft.subject));
    }
    this.#wait(again.filter((pending) => pending.draft.key !== null));
  }

  /**
   * Nothing more will be sent: fail whatever has no answer.
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
    pending.isFinished = true;
    if (!pending.isGivenUp) pending.settle(outcome);
  }
}

/** @param {Draft} draft */
function tooBig(draft) {
  const code = Code.MessageTooBig;
  const sentence = CODES.get(code)?.sentence ?? "";
  return new CommandRefused(code, "MessageTooBig", `${draft.subject}, ${draft.size} bytes: ${sentence}`);
}
