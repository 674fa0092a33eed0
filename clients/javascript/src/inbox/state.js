// The known state of one inbox: items in their latest state, counts, and the age of the oldest item in each list.
//
// Pure: from the node's messages and dispatch's answers it decides what is new, what is old, and whether something is missing. protocol/vectors/inbox.json has its cases. Invariants: everything up to `known` has been taken; a list has every item of
// its filter that arrived at or after its horizon, each once, the newest first; the counts are those of `known`.

import { Position } from "../model.js";

/**
 * @typedef {object} InboxItem
 * @property {string} at the position of its latest change
 * @property {string} first the position at which it arrived; it never changes and orders the lists
 * @property {string} id of its notification
 * @property {number} time when it arrived, in milliseconds since 1970
 * @property {string[]} flags "seen", "read", "archived", "confirmed", "recalled"
 * @property {any} content
 * @property {number} unread of the whole inbox, after this change
 * @property {number} unseen of the whole inbox, after this change
 */

/** @typedef {{ head: string, unread: number, unseen: number }} InboxHead */
/** @typedef {InboxHead & { complete: boolean, items: InboxItem[] }} InboxPage what dispatch answers to a fetch */
/** @typedef {"active" | "unread" | "archived"} InboxFilter "active": neither archived nor recalled */
/** @typedef {"new" | "old" | "behind" | "restart"} Verdict "behind": something is missing; "restart": the inbox was created again */

/** @type {Record<InboxFilter, (flags: string[]) => boolean>} */
const SHOWS = {
  active: (flags) => !flags.includes("archived") && !flags.includes("recalled"),
  unread: (flags) => !flags.includes("archived") && !flags.includes("recalled") && !flags.includes("read"),
  archived: (flags) => flags.includes("archived") && !flags.includes("recalled"),
};

/** @type {ReadonlySet<string>} */
export const FILTERS = new Set(Object.keys(SHOWS));

/** One inbox, as far as it is known. `known` is null before the first page, and again after a restart. */
export class InboxState {
  /** @type {Map<string, { item: InboxItem, at: bigint, first: bigint }>} */
  #kept = new Map();
  /** @type {Map<InboxFilter, bigint>} the SEQ of the oldest item of a list; 0 if it is complete */
  #horizons = new Map();
  #itemsMax;
  /** how many are kept now: more than `#itemsMax` after older pages were loaded */
  #bound;
  /** @type {Position | null} */
  known = null;
  unread = 0;
  unseen = 0;

  /** @param {number} itemsMax how many items are kept besides the loaded pages; the oldest are evicted, and can be loaded again */
  constructor(itemsMax) {
    this.#itemsMax = this.#bound = itemsMax;
  }

  /**
   * An item or change that came over the node.
   * @param {InboxItem} item
   * @returns {Verdict}
   */
  takeLive(item) {
    const at = Position.parse(item.at);
    const verdict = this.#judge(at);
    if (verdict !== "behind" || this.known === null || at.sequence !== this.known.sequence + 1n) return verdict;
    this.#keep(item);
    this.#takeCounts(at, item);
    return "new";
  }

  /**
   * How far the inbox is. The counts may change without a change of items: those that are too old are removed.
   * @param {InboxHead} head
   * @returns {Verdict}
   */
  takeHead(head) {
    const at = Position.parse(head.head);
    const verdict = this.#judge(at);
    if (verdict !== "old" || at.sequence !== this.known?.sequence || at.epoch !== this.known.epoch) return verdict;
    if (head.unread === this.unread && head.unseen === this.unseen) return "old";
    this.#takeCounts(at, head);
    return "new";
  }

  /**
   * Apply dispatch's answer: what changed after `known`.
   * @param {InboxPage} page
   * @returns {Verdict} "behind": more follows, fetch again
   */
  takeChanges(page) {
    const head = Position.parse(page.head);
    if (this.known === null || head.epoch !== this.known.epoch) return this.#restart();
    for (const item of page.items) this.#keep(item);
    const last = page.items[page.items.length - 1];
    if (page.complete) {
      if (head.sequence >= this.known.sequence) this.#takeCounts(head, page);
    } else if (last !== undefined) {
      const at = Position.parse(last.at);
      if (at.sequence > this.known.sequence) this.known = at; // the counts are those of the head, which is not reached yet
    }
    return page.complete ? "new" : "behind";
  }

  /**
   * A page of a list, requested with `before` at its horizon. If the horizon has moved since, the page is dropped: between
   * it and the items that are kept now, some may be missing.
   * @param {InboxPage} page
   * @param {InboxFilter} filter
   * @param {string} before with which it was asked for
   * @returns {Verdict}
   */
  takeOlder(page, filter, before) {
    const head = Position.parse(page.head);
    if (before !== (this.before(filter) ?? "")) return this.#judge(head);
    if (this.known === null) this.#takeCounts(head, page);
    else if (head.epoch !== this.known.epoch) return this.#restart();
    const oldest = page.items[page.items.length - 1];
    if (page.complete) this.#horizons.set(filter, 0n);
    else if (oldest !== undefined) this.#horizons.set(filter, Position.parse(oldest.first).sequence);
    for (const item of page.items) this.#put(item);
    this.#bound = Math.max(this.#bound, this.#kept.size); // else a page would be forgotten while it is loaded
    return this.known !== null && head.sequence > this.known.sequence ? "behind" : "new";
  }

  /**
   * Items of a filter, the newest first, as far back as they are loaded.
   * @param {InboxFilter} filter
   */
  list(filter) {
    const horizon = this.#horizon(filter);
    if (horizon === null) return [];
    return this.#sorted()
      .filter(({ item, first }) => SHOWS[filter](item.flags) && first >= horizon)
      .map(({ item }) => item);
  }

  /**
   * The position before which the next page of a list ends, or null if there are no older items.
   * @param {InboxFilter} filter
   * @returns {string | null}
   */
  before(filter) {
    const horizon = this.#horizon(filter);
    if (horizon === 0n) return null;
    return horizon === null ? "0.999999999999999999" : `${this.known?.epoch ?? 0}.${horizon}`;
  }

  /** @param {Position} at @returns {Verdict} "behind" where it is not known yet */
  #judge(at) {
    if (this.known === null) return "behind";
    if (at.epoch !== this.known.epoch) return at.epoch < this.known.epoch ? "old" : this.#restart();
    return at.sequence <= this.known.sequence ? "old" : "behind";
  }

  /** Another epoch: the receiver was created again, and all known state is void. @returns {Verdict} */
  #restart() {
    this.#kept.clear();
    this.#horizons.clear();
    this.#bound = this.#itemsMax;
    this.known = null;
    this.unread = this.unseen = 0;
    return "restart";
  }

  /** @param {InboxItem} item */
  #keep(item) {
    this.#put(item);
    if (this.#kept.size > this.#bound) this.#forgetOldest();
  }

  /** @param {InboxItem} item */
  #put(item) {
    const at = sequenceOf(item.at);
    const known = this.#kept.get(item.id);
    if (known !== undefined && known.at >= at) return;
    this.#kept.set(item.id, { item, at, first: sequenceOf(item.first) });
  }

  #forgetOldest() {
    const kept = this.#sorted().slice(0, this.#bound);
    const oldest = kept[kept.length - 1]?.first ?? 0n;
    this.#kept = new Map(kept.map((entry) => [entry.item.id, entry]));
    for (const [filter, horizon] of this.#horizons) if (horizon < oldest) this.#horizons.set(filter, oldest);
  }

  /** @param {InboxFilter} filter a list of unread items has all that the active one has */
  #horizon(filter) {
    const own = this.#horizons.get(filter) ?? null;
    const active = filter === "unread" ? (this.#horizons.get("active") ?? null) : null;
    if (own === null || active === null) return own ?? active;
    return own < active ? own : active;
  }

  #sorted() {
    return [...this.#kept.values()].sort((a, b) => (a.first < b.first ? 1 : -1));
  }

  /**
   * @param {Position} at
   * @param {{ unread: number, unseen: number }} counts
   */
  #takeCounts(at, { unread, unseen }) {
    this.known = at;
    this.unread = unread;
    this.unseen = unseen;
  }
}

/** @param {string} position */
const sequenceOf = (position) => Position.parse(position).sequence;
