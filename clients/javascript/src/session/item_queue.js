// The items of one subscription between the connection and the program.
//
// Bounded by items and by bytes: while it is full nothing more is read for it, so that messages wait in the server's log. Resume
// tokens and statuses replace earlier ones, so they cannot pile up. It also knows the reader's position: an item counts as
// handled when the next one is requested.

import { Status } from "../model.js";

/** @typedef {import("../model.js").Item} Item */
/** @typedef {import("../codec/push.js").Marked} Marked */
/** @typedef {import("./position_tracker.js").PositionTracker} PositionTracker */

const COMPACT_AT = 1_024; // taken entries that are released together

/** The bytes that all queues of one client hold, and how many they may. */
export class Budget {
  bytes = 0;
  #bytesMax;

  constructor(bytesMax = Infinity) {
    this.#bytesMax = bytesMax;
  }

  get isUsedUp() {
    return this.bytes >= this.#bytesMax;
  }
}

/** First in, first out; `handled` is the reader's position. */
export class ItemQueue {
  #itemsMax;
  #bytesMax;
  #budget;
  #bytes = 0; // of the messages waiting
  /** @type {(Item | Marked)[]} */
  #entries = [];
  #first = 0; // those before it are taken
  /** @type {Item | Marked | null} */
  #inHand = null;

  /**
   * @param {number} itemsMax
   * @param {PositionTracker} handled
   * @param {number} [bytesMax]
   * @param {Budget} [budget] of all queues of the client
   */
  constructor(itemsMax, handled, bytesMax = Infinity, budget = new Budget()) {
    this.#itemsMax = itemsMax;
    this.#bytesMax = bytesMax;
    this.#budget = budget;
    this.handled = handled;
  }

  get size() {
    return this.#entries.length - this.#first;
  }

  get isFull() {
    if (this.size >= this.#itemsMax || this.#bytes >= this.#bytesMax) return true;
    return this.#bytes > 0 && this.#budget.isUsedUp;
  }

  /** Room enough to begin again: half of it. */
  get hasRoom() {
    return this.size * 2 <= this.#itemsMax && this.#bytes * 2 <= this.#bytesMax && !this.isFull;
  }

  /**
   * Append; the caller looks at `isFull` and stops reading (what one frame brought may exceed the limit).
   * @param {Item | Marked} entry
   */
  put(entry) {
    if (entry.type === "message") {
      this.#entries.push(entry);
      this.#bytes += entry.size;
      this.#budget.bytes += entry.size;
    } else this.#entries.push(this.size > 0 ? this.#folded(entry) : entry);
  }

  /**
   * The next item, or null if the queue is empty. This marks the previous item as handled.
   * @returns {Item | null}
   */
  take() {
    this.finish();
    while (this.size > 0) {
      const entry = /** @type {Item | Marked} */ (this.#entries[this.#first++]);
      if (this.#first >= COMPACT_AT || this.size === 0) {
        this.#entries.splice(0, this.#first);
        this.#first = 0;
      }
      if (entry.type === "message") {
        this.#bytes -= entry.size;
        this.#budget.bytes -= entry.size;
      }
      this.#inHand = entry;
      if (entry.type !== "marked") return entry;
      this.finish();
    }
    return null;
  }

  /** The program has closed it: its items no longer count against the limit of the others. */
  letGo() {
    this.#budget.bytes -= this.#bytes;
    this.#budget = new Budget();
  }

  /** The item in hand has been handled. */
  finish() {
    const entry = this.#inHand;
    this.#inHand = null;
    if (entry === null) return;
    if (entry.type === "message") this.handled.note(entry);
    else if (entry.type === "marked") this.handled.resumeToken(entry.resumeToken, entry.node);
    else if (entry.type === "gap") this.handled.place(entry);
    else if (entry.type === "status") this.handled.joined(isPlaced(entry) ? entry.position : null, entry.count ?? 0);
  }

  /**
   * Removes the last entry if this one contains all its information.
   * @param {Item | Marked} entry
   */
  #folded(entry) {
    const last = this.#entries[this.#entries.length - 1];
    if (entry.type === "marked" && last?.type === "marked") {
      this.#entries.pop();
    } else if (entry.type === "status" && last?.type === "status") {
      this.#entries.pop();
      if (entry.position === null && isPlaced(last)) {
        return new Status(entry.selector, entry.state, entry.outcome, last.position, last.count, entry.reason);
      }
    }
    return entry;
  }
}

/**
 * Whether this status sets the reader's position; after a resync the gap that follows sets it.
 * @param {Status} status
 */
function isPlaced(status) {
  return status.outcome !== "resync" && status.count !== null;
}
