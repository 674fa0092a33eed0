// The subscriptions of one session: by selector, those whose readers are behind, and those whose next try is delayed.
//
// It passes what the server sends to the right subscription; the session decides what to ask the server for, and when.

import { CODES, Code } from "../codes.js";
import { CommandRefused } from "../errors.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("../model.js").Dropped} Dropped */
/** @typedef {import("../model.js").Gap} Gap */
/** @typedef {import("../model.js").Message} Message */
/** @typedef {import("../codec/push.js").Ended} Ended */
/** @typedef {import("../codec/push.js").Marked} Marked */
/** @typedef {import("../codec/push.js").Epochs} Epochs */
/** @typedef {import("../codec/push.js").Refusal} Refusal */
/** @typedef {import("./subscribing.js").Subscribing} Subscribing */

const PUT_OFF_MS = 5_000; // before a refused subscription is requested again; doubles with each refusal
const PUT_OFF_MS_MAX = 60_000;

/** One per selector. */
export class Subscriptions {
  /** @type {Map<string, Subscribing>} */
  #table = new Map();
  /** @type {Set<Subscribing>} */
  #behind = new Set();
  /** @type {{ at: number, subscribing: Subscribing }[]} */
  #putOff = [];
  /** @type {Set<Subscribing>} */
  paused = new Set();

  /** @param {string} selector */
  has(selector) {
    return this.#table.has(selector);
  }

  /** @param {Subscribing} subscribing */
  add(subscribing) {
    this.#table.set(subscribing.selector, subscribing);
  }

  /**
   * False when it is not there any more, or another has its selector.
   * @param {Subscribing} subscribing
   */
  remove(subscribing) {
    if (this.#table.get(subscribing.selector) !== subscribing) return false;
    this.#table.delete(subscribing.selector);
    return true;
  }

  /** @param {Message} message */
  message(message) {
    const subscribing = this.#table.get(message.pattern ?? message.subject);
    if (subscribing === undefined) return;
    subscribing.message(message);
    if (subscribing.queue.isFull) this.#behind.add(subscribing);
  }

  /**
   * Handle what is not a message; does nothing if the subscription ended meanwhile.
   * @param {Gap | Marked | Epochs | Dropped | Ended} push
   * @param {string | null} node
   * @param {number} now
   */
  handle(push, node, now) {
    switch (push.type) {
      case "marked":
        this.#table.get(push.pattern)?.marked({ ...push, node });
        break;
      case "epochs":
        this.#table.get(push.pattern ?? push.subject)?.epochs(push);
        break;
      case "gap":
        this.#table.get(push.pattern ?? push.subject)?.gap(push);
        break;
      case "dropped":
        this.#table.get(push.selector)?.dropped(push);
        break;
      case "ended": {
        const subscribing = this.#table.get(push.selector);
        const facts = CODES.get(push.code);
        const codeName = facts?.name ?? "Unknown";
        const { code, reason } = push;
        const retry = facts?.retry ?? false;
        if (subscribing) this.refuse(subscribing, { type: "refusal", id: null, code, codeName, reason, retry }, now);
      }
    }
  }

  /**
   * It ends; but one that was served before, and may be again, is only put off.
   * @param {Subscribing} subscribing
   * @param {Refusal} refusal
   * @param {number} now
   */
  refuse(subscribing, { code, codeName, reason, retry }, now) {
    const isDraining = code === Code.NodeDraining;
    if (isDraining || (retry && subscribing.counts.joins > 0)) {
      subscribing.lost(`${codeName}: ${reason}`);
      if (isDraining) return; // the next connection requests them
      const againMs = Math.min(PUT_OFF_MS * 2 ** subscribing.refusals++, PUT_OFF_MS_MAX);
      this.#putOff.push({ at: now + againMs, subscribing });
    } else {
      this.remove(subscribing);
      subscribing.end(new CommandRefused(code, codeName, reason, retry));
    }
  }

  /**
   * Those that were paused and have room again.
   * @param {number} now
   */
  toResume(now) {
    for (const each of this.paused) if (!each.isPaused) this.paused.delete(each);
    return [...this.paused].filter((each) => each.queue.hasRoom && now >= each.resumesAt);
  }

  /** The subscriptions whose queues are full. */
  behind() {
    for (const each of this.#behind) if (!each.isAsked || !each.queue.isFull) this.#behind.delete(each);
    return this.#behind;
  }

  get hasOneWithRoom() {
    return [...this.#table.values()].some((each) => each.isAsked && !each.queue.isFull);
  }

  /** Those that a new connection is to be asked for. */
  toAsk() {
    return [...this.#table.values()].filter((each) => !each.isPaused);
  }

  /**
   * Those that were put off for long enough.
   * @param {number} now
   */
  toAskAgain(now) {
    const due = this.#putOff.filter(({ at }) => at <= now).map(({ subscribing }) => subscribing);
    this.#putOff = this.#putOff.filter(({ at }) => at > now);
    return due.filter((each) => each.state === "idle" && !each.isPaused);
  }

  /** @param {string} reason */
  lost(reason) {
    this.#behind.clear();
    this.#putOff = [];
    for (const subscribing of this.#table.values()) {
      subscribing.lost(reason);
      if (subscribing.isPaused) this.paused.add(subscribing);
    }
  }

  /** @param {GodwitError | null} error */
  end(error) {
    for (const subscribing of this.#table.values()) subscribing.end(error);
  }
}
