// Reads and saves the resume points of one client's subscriptions in the user's store.

import { NEVER_MS } from "../arguments.js";
import { ClientError, GodwitError, PositionFileHeld, StorageUnavailable } from "../errors.js";
import { callUser } from "../listening.js";
import { ResumePoint } from "../session/resume_point.js";

/** @typedef {import("../connection.js").Log} Log */
/** @typedef {import("../subscription.js").Subscription} Subscription */
/** @typedef {import("./store.js").PositionStore} PositionStore */

const SAVE_MS = 10_000; // for one save of a store

/** Saves changed resume points every `saveMs`; only one save runs at a time. */
export class SavedPositions {
  #store;
  #log;
  #onFailed;
  /** @type {Map<string, Subscription>} */
  #kept = new Map();
  /** @type {Map<string, WeakRef<Subscription>>} the last subscription of each selector; it may have ended */
  #last = new Map();
  /** @type {Set<string>} selectors whose resume point has changed and is not in the store yet */
  #unsaved = new Set();
  /** @type {Set<Promise<{ error: unknown } | null>>} what an asynchronous store has not answered yet; never rejects */
  #writes = new Set();
  /** @type {FinalizationRegistry<string>} */
  #forgotten = new FinalizationRegistry((selector) => {
    if (this.#last.get(selector)?.deref() === undefined) this.#last.delete(selector);
  });
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
   * @param {(error: unknown) => unknown} [onFailed] the user's function
   */
  constructor(store, saveMs, log, onFailed = () => {}) {
    this.#onFailed = onFailed;
    this.#store = store;
    this.#log = log;
    this.#timer = saveMs < NEVER_MS ? setInterval(() => this.save(), saveMs) : undefined;
  }

  /**
   * Opens the store; rejects if it cannot be used.
   * @param {(error: PositionFileHeld) => void} lost ends the client, because another client holds the store now
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

  /** Stop waiting for the store to open, because the client is closed. */
  giveUp() {
    if (this.#isOpening) this.#store.close?.();
  }

  /**
   * The saved resume point of a subscription, of this client or an earlier one; throws PositionInvalid, and TypeError for a promise.
   * @param {string} selector
   */
  resumePoint(selector) {
    const earlier = this.#kept.get(selector); // closed before: the subscription resumes at its position
    if (earlier !== undefined) this.#noteOrReport();
    if (earlier !== undefined && this.#unsaved.has(selector)) return earlier.resumePoint.isSomewhere ? earlier.resumePoint : undefined;
    const saved = this.#store.get(selector);
    if (isThenable(saved)) {
      Promise.resolve(saved).catch(() => {}); // its error would be unhandled
      throw new TypeError("positions.get returned a promise: expected the saved value itself");
    }
    return saved === undefined || saved === null ? undefined : ResumePoint.fromJSON(saved);
  }

  /** @param {Subscription} subscription */
  keep(subscription) {
    const { selector } = subscription;
    const earlier = this.#last.get(selector)?.deref();
    if (earlier !== undefined) earlier.readLate = () => {}; // this one continues from its position
    this.#last.set(selector, new WeakRef(subscription));
    this.#forgotten.register(subscription, selector);
    this.#kept.set(selector, subscription);
    subscription.readLate = (ended) => void this.#kept.set(selector, ended);
  }

  /**
   * Save changed resume points: an asynchronous store's `set` first, then `save`, which is called once at a time. The next save
   * repeats what a failed one could not store. Repeated failures are logged once.
   */
  save() {
    if (this.#saving !== null || !this.#isOpen) return;
    try {
      this.#note();
      const saved = this.#writes.size > 0 ? this.#saveAfter([...this.#writes]) : this.#store.save?.();
      if (!isThenable(saved)) return this.#saved();
      this.#saving = inTime(Promise.resolve(saved))
        .then(
          () => this.#saved(),
          (error) => this.#failed(error),
        )
        .finally(() => (this.#saving = null));
    } catch (error) {
      this.#failed(error); // storage may be full or forbidden
    }
  }

  /** The client has ended by itself. If the program closes it later, `close` rejects with the failure. */
  stop() {
    this.close().catch(() => {});
  }

  /** Save for the last time; rejects with the store's error, unless it is StorageUnavailable, which was reported before. */
  async close() {
    clearInterval(this.#timer);
    await this.#saving;
    this.save();
    await this.#saving;
    if (this.#isOpen) this.#store.close?.();
    this.#isOpen = false;
    if (this.#failure !== null && !(this.#failure.error instanceof StorageUnavailable)) throw this.#failure.error;
  }

  /**
   * Rejects with the first error of the writes, but what was written is saved.
   * @param {Promise<{ error: unknown } | null>[]} writes
   */
  async #saveAfter(writes) {
    const failure = (await Promise.all(writes)).find((outcome) => outcome !== null);
    await this.#store.save?.();
    if (failure) throw failure.error;
  }

  #noteOrReport() {
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

  /** Write changed resume points to the store. An error does not prevent the others; the first is thrown after all of them. */
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
   * A resume point without a position, after a gap of the whole pattern, is deleted: resuming there would only repeat the gap.
   * @param {string} selector
   * @param {ResumePoint} resumePoint
   */
  #put(selector, resumePoint) {
    const given = resumePoint.isSomewhere ? this.#store.set(selector, resumePoint.toJSON()) : this.#store.delete?.(selector);
    if (isThenable(given)) this.#awaitWrite(selector, Promise.resolve(given));
  }

  /**
   * A resume point that could not be written is given again by the next save, also if its subscription has ended.
   * @param {string} selector
   * @param {Promise<unknown>} given
   */
  #awaitWrite(selector, given) {
    const subscription = this.#kept.get(selector);
    const write = given
      .then(
        () => null,
        (error) => {
          this.#unsaved.add(selector);
          if (subscription !== undefined && !this.#kept.has(selector)) this.#kept.set(selector, subscription);
          return { error };
        },
      )
      .finally(() => this.#writes.delete(write));
    this.#writes.add(write);
  }
}

/**
 * A promise, also of another realm or library.
 * @param {unknown} value
 * @returns {value is PromiseLike<unknown>}
 */
function isThenable(value) {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** @param {Promise<unknown>} saved rejects if the store needs longer than SAVE_MS */
function inTime(saved) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new ClientError(`the store of positions did not save within ${SAVE_MS} ms`)), SAVE_MS);
  });
  return Promise.race([saved, late]).finally(() => clearTimeout(timer));
}
