// A watch, as the program uses it: the current interest, then its changes.

import { asyncDispose, Signal } from "./signal.js";
import { ClientClosed } from "./errors.js";
import { newDone } from "./listening.js";

/** @typedef {import("./connection.js").Connection} Connection */
/** @typedef {import("./model.js").Interest} Interest */
/** @typedef {import("./session/session.js").Session} Session */
/** @typedef {import("./session/watching.js").Watching} Watching */

/** Iterate it for the current interest and its changes. A slow reader receives the latest of each selector. */
export class Watch {
  /**
   * Settles when the watch has ended, with a listener after its last call. It rejects with the error that ended the watch.
   * @type {Promise<void>}
   */
  done;
  #session;
  #connection;
  #core;
  #news = new Signal();
  #resolveComplete = () => {};
  /** @type {Promise<void>} */
  #complete = new Promise((resolve) => {
    this.#resolveComplete = resolve;
  });

  /**
   * @param {Session} session
   * @param {Connection} connection
   * @param {Watching} core
   */
  constructor(session, connection, core) {
    this.#session = session;
    this.#connection = connection;
    this.#core = core;
    const [done, end] = newDone();
    this.done = done;
    core.wake = () => {
      this.#news.notify();
      if (!core.isEnded) return;
      this.#resolveComplete();
      end(core.error);
    };
  }

  /** @returns {AsyncIterator<Interest, undefined>} */
  [Symbol.asyncIterator]() {
    return { next: () => this.#next() };
  }

  /** Closed by the program: its listener is not called again. */
  get isClosed() {
    return this.#core.isEnded && this.#core.error === null;
  }

  /**
   * Wait until the iteration or the listener has received every selector that has subscribers now, and is ready for the next
   * change. Rejects with CommandRefused if the server refuses, and with ClientClosed if the client or the watch is closed.
   */
  async complete() {
    await this.#complete;
    if (this.#core.error !== null) throw this.#core.error;
    if (this.#core.isEnded) throw this.#session.error ?? new ClientClosed(`the watch of ${this.#core.selector}`);
  }

  /** Stop watching. */
  close() {
    this.#session.unwatch(this.#core);
    this.#connection.wake();
  }

  async [asyncDispose]() {
    this.close();
  }

  /** @returns {Promise<IteratorResult<Interest, undefined>>} */
  async #next() {
    for (;;) {
      const change = this.#core.take();
      if (change !== null) return { value: change, done: false };
      if (this.#core.isComplete) this.#resolveComplete();
      if (this.#core.isEnded) {
        if (this.#core.error !== null) throw this.#core.error;
        return { value: undefined, done: true };
      }
      await this.#news.wait();
    }
  }
}
