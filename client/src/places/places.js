// The stands of one client's subscriptions, on their way to the user's store and back.

import { Stand } from "../session/stand.js";

/** @typedef {import("../connection.js").Log} Log */
/** @typedef {import("../subscription.js").Subscription} Subscription */
/** @typedef {import("./store.js").PositionStore} PositionStore */

/** Saves what has moved, every so often; one save at a time where the store needs time for it. */
export class Places {
  #store;
  #log;
  /** @type {Map<string, Subscription>} */
  #kept = new Map();
  #timer;
  /** @type {Promise<void> | null} */
  #saving = null;

  /**
   * @param {PositionStore} store
   * @param {number} saveMs
   * @param {Log} log
   */
  constructor(store, saveMs, log) {
    this.#store = store;
    this.#log = log;
    this.#timer = setInterval(() => this.save(), saveMs);
  }

  /**
   * Where a subscription was left, by this client or an earlier one; throws PositionInvalid.
   * @param {string} selector
   */
  stand(selector) {
    if (this.#kept.has(selector)) this.#note(); // an earlier one, that was closed: it is gone on from where it stood
    const saved = this.#store.get(selector);
    return saved === undefined || saved === null ? undefined : Stand.fromJSON(saved);
  }

  /** @param {Subscription} subscription */
  keep(subscription) {
    this.#kept.set(subscription.selector, subscription);
  }

  /** Save what has moved; a store that fails is told of, and tried again with the next change. */
  save() {
    try {
      this.#note();
      const saved = this.#store.save?.();
      if (!(saved instanceof Promise)) return;
      this.#saving = saved.then(
        () => {
          this.#saving = null;
        },
        (error) => {
          this.#saving = null;
          this.#log.error("godwit: positions were not saved", error);
        },
      );
    } catch (error) {
      this.#log.error("godwit: positions were not saved", error); // storage may be full or forbidden
    }
  }

  async close() {
    clearInterval(this.#timer);
    await this.#saving;
    this.save();
    await this.#saving;
  }

  #note() {
    for (const [selector, subscription] of this.#kept) {
      if (subscription.hasMoved()) this.#put(selector, subscription.stand);
      if (subscription.isEnded) this.#kept.delete(selector);
    }
  }

  /**
   * What leads nowhere, after a gap of the whole pattern, is forgotten: started from, it would only be told again.
   * @param {string} selector
   * @param {Stand} stand
   */
  #put(selector, stand) {
    if (stand.isSomewhere) this.#store.set(selector, stand.toJSON());
    else this.#store.delete?.(selector);
  }
}
