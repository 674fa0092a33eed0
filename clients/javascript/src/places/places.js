// The stands of one client's subscriptions, on their way to the user's store and back.

import { NEVER_MS } from "../arguments.js";
import { ClientError, GodwitError, PositionFileHeld, StorageUnavailable } from "../errors.js";
import { callUser } from "../listening.js";
import { ResumePoint } from "../session/resume_point.js";

/** @typedef {import("../connection.js").Log} Log */
/** @typedef {import("../subscription.js").Subscription} Subscription */
/** @typedef {import("./store.js").PositionStore} PositionStore */

const SAVE_MS = 10_000; // for one save of a store

/** Saves what has moved, every so often; one save at a time where the store needs time for it. */
export class Places {
  #store;
  #log;
  #onFailed;
  /** @type {Map<string, Subscription>} */
  #kept = new Map();
  /** @type {Set<string>} moved, and not given to the store yet */
  #unsaved = new Set();
  #timer;
  /** @type {{ error: unknown } | null} why the last save failed */
  #failure = null;
  /** @type {Promise<void> | null} */
  #saving = null;
  #isOpen = false;
  #isOpening = false;
  /** @type {(error: PositionFileHeld) => void} */
  #lost = () => {};

  /**
   * @param {PositionStore} store
   * @param {number} saveMs
   * @param {Log} log
   * @param {(error: unknown) => unknown} [onFailed] the user's own
   */
  constructor(store, saveMs, log, onFailed = () => {}) {
    this.#onFailed = onFailed;
    this.#store = store;
    this.#log = log;
    this.#timer = saveMs < NEVER_MS ? setInterval(() => this.save(), saveMs) : undefined;
  }

  /**
   * Rejects where the store may not be used.
   * @param {(error: PositionFileHeld) => void} lost ends the client, because the store is another's now
   */
  async open(lost) {
    this.#lost = lost;
    this.#isOpen = this.#isOpening = true;
    try {
      await this.#store.open?.(lost, this.#log);
      this.#isOpening = false;
    } catch (error) {
      this.#isOpen = this.#isOpening = false;
      this.#failure = { error };
      throw error instanceof GodwitError ? error : new ClientError(`the store of positions cannot be opened: ${error}`);
    }
  }

  /** The client is closed while the store is being opened: wait for it no longer. */
  giveUp() {
    if (this.#isOpening) this.#store.close?.();
  }

  /**
   * Where a subscription was left, by this client or an earlier one; throws PositionInvalid.
   * @param {string} selector
   */
  resumePoint(selector) {
    const earlier = this.#kept.get(selector); // closed before: the subscription resumes at its position
    if (earlier !== undefined) this.#noteOrTell();
    if (earlier !== undefined && this.#unsaved.has(selector)) return earlier.resumePoint.isSomewhere ? earlier.resumePoint : undefined;
    const saved = this.#store.get(selector);
    return saved === undefined || saved === null ? undefined : ResumePoint.fromJSON(saved);
  }

  /** @param {Subscription} subscription */
  keep(subscription) {
    this.#kept.set(subscription.selector, subscription);
  }

  /**
   * Save what has moved. One call of the store's `save` at a time; a failure is logged, and the next save has what this one
   * had not. A store that keeps failing is logged once.
   */
  save() {
    if (this.#saving !== null || !this.#isOpen) return;
    try {
      this.#note();
      const saved = this.#store.save?.();
      if (!(saved instanceof Promise)) return this.#saved();
      this.#saving = inTime(saved)
        .then(
          () => this.#saved(),
          (error) => this.#failed(error),
        )
        .finally(() => (this.#saving = null));
    } catch (error) {
      this.#failed(error); // storage may be full or forbidden
    }
  }

  /** The client has ended by itself; its user may close it later, and is told then what failed. */
  stop() {
    this.close().catch(() => {});
  }

  /** Save for the last time; rejects with what the store failed with, save for a page's storage, which has been told of. */
  async close() {
    clearInterval(this.#timer);
    await this.#saving;
    this.save();
    await this.#saving;
    if (this.#isOpen) this.#store.close?.();
    this.#isOpen = false;
    if (this.#failure !== null && !(this.#failure.error instanceof StorageUnavailable)) throw this.#failure.error;
  }

  #noteOrTell() {
    try {
      this.#note();
    } catch (error) {
      this.#failed(error);
    }
  }

  #saved() {
    this.#failure = null;
  }

  /** @param {unknown} error */
  #failed(error) {
    const isFirst = this.#failure === null;
    this.#failure = { error };
    if (isFirst) {
      this.#log.error("godwit: could not save positions, retrying", error);
      callUser("onSaveFailed", () => this.#onFailed(error), this.#log);
    }
    if (error instanceof PositionFileHeld) this.#lost(error);
  }

  /** Give the store what has moved. One that it does not take holds up no other; throws the first error, after all of them. */
  #note() {
    for (const [selector, subscription] of this.#kept) if (subscription.hasMoved()) this.#unsaved.add(selector);
    /** @type {{ error: unknown } | null} */
    let failure = null;
    for (const [selector, subscription] of this.#kept) {
      try {
        if (this.#unsaved.has(selector)) this.#put(selector, subscription.resumePoint);
        this.#unsaved.delete(selector);
        if (subscription.isEnded) this.#kept.delete(selector);
      } catch (error) {
        failure ??= { error };
      }
    }
    if (failure !== null) throw failure.error;
  }

  /**
   * What leads nowhere, after a gap of the whole pattern, is forgotten: started from, it would only be told again.
   * @param {string} selector
   * @param {ResumePoint} resumePoint
   */
  #put(selector, resumePoint) {
    const given = resumePoint.isSomewhere ? this.#store.set(selector, resumePoint.toJSON()) : this.#store.delete?.(selector);
    if (given instanceof Promise) given.catch((error) => this.#failed(error));
  }
}

/** @param {Promise<unknown>} saved rejects where a store needs too long */
function inTime(saved) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new ClientError(`the store of positions did not save within ${SAVE_MS} ms`)), SAVE_MS);
  });
  return Promise.race([saved, late]).finally(() => clearTimeout(timer));
}
