// A subscription, as the program uses it: an asynchronous iterable.

import { asyncDispose, Signal } from "./signal.js";
import { ClientClosed } from "./errors.js";
import { newDone } from "./listening.js";

/** @typedef {import("./connection.js").Connection} Connection */
/** @typedef {import("./connection.js").Log} Log */
/** @typedef {import("./model.js").Item} Item */
/** @typedef {import("./model.js").Message} Message */
/** @typedef {import("./session/session.js").Session} Session */
/** @typedef {import("./session/resume_point.js").ResumePoint} ResumePoint */
/** @typedef {import("./session/subscribing.js").Subscribing} Subscribing */

/**
 * Iterate it for messages, or `items()` for messages, gaps, drops and statuses in order. One reader at a time. An item counts as
 * handled when the reader requests the next one; `resumePoint` follows it. The subscription stays open when a loop ends.
 */
export class Subscription {
  /**
   * Settles when the subscription has ended, with a listener after its last call. It rejects with the error that ended the
   * subscription, unless the listener has an `error` function.
   * @type {Promise<void>}
   */
  done;
  #session;
  #connection;
  #core;
  #log;
  #news = new Signal();
  #moves = 0;
  /** @type {() => void} */
  #join = () => {};
  #end;
  /** @type {Promise<void>} */
  #joined;
  // Called as items are read after the end: the position still moves.
  /** @internal @type {(subscription: Subscription) => void} */
  readLate = () => {};

  /**
   * @param {Session} session
   * @param {Connection} connection
   * @param {Subscribing} core
   * @param {Log} log
   */
  constructor(session, connection, core, log) {
    this.#session = session;
    this.#connection = connection;
    this.#core = core;
    this.#log = log;
    this.#joined = new Promise((resolve) => {
      this.#join = resolve;
    });
    [this.done, this.#end] = newDone();
    core.wake = () => this.#woken();
  }

  get selector() {
    return this.#core.selector;
  }

  /** The position of the reader. Pass it to `subscribe` as `after` to continue from here. @returns {ResumePoint} */
  get resumePoint() {
    return this.#core.queue.handled.resumePoint;
  }

  /** Closed, or ended by the server. Items already received can still be read. */
  get isEnded() {
    return this.#core.state === "ended";
  }

  /** Closed by the program: its listener is not called again. */
  get isClosed() {
    return this.isEnded && this.#core.error === null;
  }

  /** Counts of joins, gaps, dropped duplicates, and missing messages without a gap, which are faults of the server. */
  get counts() {
    return { ...this.#core.counts };
  }

  /** Whether the resume point has changed since the last call. */
  hasMoved() {
    const before = this.#moves;
    this.#moves = this.#core.queue.handled.moves;
    return this.#moves !== before;
  }

  /**
   * Wait until the subscription is complete: it receives everything that is published from now on. If it begins with more messages
   * than the queue holds, read them while you wait. Rejects with CommandRefused if the server refuses, and with ClientClosed if the
   * client or the subscription is closed.
   */
  async joined() {
    await this.#joined;
    if (this.#core.error !== null) throw this.#core.error;
    if (this.isEnded) throw this.#session.error ?? new ClientClosed(`the subscription to ${this.selector}`);
  }

  /** Mark the last item as handled, without asking for the next one. */
  handled() {
    this.#core.queue.finish();
    if (this.isEnded) this.readLate(this);
  }

  /** The messages; gaps and drops are logged as warnings. @returns {AsyncIterator<Message, undefined>} */
  [Symbol.asyncIterator]() {
    return { next: () => this.#nextMessage() };
  }

  /** All items in order: messages, gaps, drops, statuses. @returns {AsyncIterableIterator<Item>} */
  items() {
    const next = () => this.#next();
    return {
      next,
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** The next item if one is in the queue, otherwise null. */
  take() {
    const core = this.#core;
    const item = core.queue.take();
    if (this.isEnded) this.readLate(this);
    if (core.isPaused && core.queue.hasRoom) {
      this.#session.takeUp(core, this.#connection.now());
      this.#connection.wake();
    } else if (this.#session.liveness.isHeld) {
      this.#connection.took();
    }
    return item;
  }

  /** Unsubscribe. Items in the queue can still be read. */
  close() {
    this.#session.unsubscribe(this.#core);
    this.#connection.wake();
  }

  async [asyncDispose]() {
    this.close();
  }

  /** @returns {Promise<IteratorResult<Message, undefined>>} */
  async #nextMessage() {
    for (;;) {
      const { value: item, done } = await this.#next();
      if (done) return { value: undefined, done: true };
      if (item.type === "message") return { value: item, done: false };
      if (item.type === "gap") {
        this.#log.warn(`godwit: gap on ${item.subject}: ${item.missed ?? "some"} messages missed (${item.reason})`);
      } else if (item.type === "dropped" && item.count !== null) {
        this.#log.warn(`godwit: ${item.count} standard messages dropped on ${item.selector}`);
      }
    }
  }

  /** @returns {Promise<IteratorResult<Item, undefined>>} */
  async #next() {
    for (;;) {
      const item = this.take();
      if (item !== null) return { value: item, done: false };
      if (this.#core.state === "ended") {
        if (this.#core.error !== null) throw this.#core.error;
        return { value: undefined, done: true };
      }
      await this.#news.wait();
    }
  }

  #woken() {
    this.#news.notify();
    const core = this.#core;
    if (core.isJoined || core.queue.isFull || core.state === "ended") this.#join();
    if (core.state === "ended") this.#end(core.error);
  }
}
