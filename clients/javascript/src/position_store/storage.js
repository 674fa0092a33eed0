// Positions in a browser's localStorage or sessionStorage, one entry per tab and selector.
//
// Each tab keeps its own positions, so that each message reaches each tab. A tab without positions begins from the oldest that
// were saved under its name within the last day: duplicates are possible then, losses are not. Entries unused for 7 days are
// removed.

import { PositionInvalid, StorageUnavailable } from "../errors.js";
import { pageStorage, pageTab } from "../platform/browser.js";

/** @typedef {import("./store.js").SavedResumePoint} SavedResumePoint */
/** @typedef {{ used: number, resumePoint: SavedResumePoint }} Entry */
/** @typedef {{ getItem: (key: string) => string | null, setItem: (key: string, value: string) => void, removeItem: (key: string) => void, length?: number, key?: (index: number) => string | null }} StorageLike */
/** @typedef {{ id: string }} Tab its id changes if another live tab uses the same one */

const DAY_MS = 86_400_000;
const UNUSED_MS = 7 * DAY_MS;

/**
 * Positions in localStorage, written at once, because a page can end at any moment. Two clients of one page with the same selectors
 * need two names. If storage is blocked or full, positions last as long as the page: the client calls `onSaveFailed` and continues.
 */
export class PositionStorage {
  #prefix;
  #storage;
  #tab;
  /** @type {Map<string, SavedResumePoint>} what the storage did not take */
  #unstored = new Map();

  /**
   * @param {string} [name] distinguishes several clients of one origin
   * @param {StorageLike | null} [storage] localStorage unless another is given
   * @param {Tab} [tab] this page's, unless another is given
   */
  constructor(name = "", storage = pageStorage(), tab = pageTab()) {
    this.#prefix = `godwit:${name}:`;
    this.#storage = storage;
    this.#tab = tab;
    const now = Date.now();
    const own = this.#key("");
    for (const key of this.#keys()) {
      const entry = this.#entry(key);
      if (entry === null && key.startsWith(own)) continue; // `get` says that it is no position
      if (now - (entry?.used ?? 0) >= UNUSED_MS) this.#remove(key);
    }
  }

  /**
   * The saved resume point of a selector; throws PositionInvalid if the entry is something else.
   * @param {string} selector
   * @returns {SavedResumePoint | undefined}
   */
  get(selector) {
    const unstored = this.#unstored.get(selector);
    if (unstored !== undefined) return unstored;
    const own = this.#read(this.#key(selector));
    if (own !== null) {
      const entry = entryOf(own);
      if (entry === null) throw new PositionInvalid(own);
      return entry.resumePoint;
    }
    const dayAgo = Date.now() - DAY_MS;
    const others = this.#keys().filter((key) => key.endsWith(`:${selector}`) && key.length === this.#key(selector).length);
    const entries = others.map((key) => this.#entry(key)).filter((entry) => entry !== null && entry.used > dayAgo);
    return /** @type {Entry[]} */ (entries).sort(byPlace)[0]?.resumePoint;
  }

  /**
   * Throws StorageUnavailable, which a client gives to `onSaveFailed`.
   * @param {string} selector
   * @param {SavedResumePoint} saved
   */
  set(selector, saved) {
    this.#unstored.set(selector, saved);
    if (this.#storage === null) throw new StorageUnavailable("this page has no localStorage, or is denied it");
    try {
      this.#storage.setItem(this.#key(selector), JSON.stringify({ used: Date.now(), resumePoint: saved }));
    } catch (error) {
      throw new StorageUnavailable(`the page's storage is full or blocked: ${error}`);
    }
    this.#unstored.delete(selector);
  }

  /** @param {string} selector */
  delete(selector) {
    this.#unstored.delete(selector);
    this.#remove(this.#key(selector));
  }

  /** @param {string} key */
  #read(key) {
    try {
      return this.#storage?.getItem(key) ?? null;
    } catch {
      return null; // blocked: setItem reports it
    }
  }

  /** @param {string} key */
  #remove(key) {
    try {
      this.#storage?.removeItem(key);
    } catch {
      // blocked: setItem reports it
    }
  }

  /** @param {string} selector */
  #key(selector) {
    return `${this.#prefix}${this.#tab.id}:${selector}`;
  }

  /** The entries of all tabs with this name. */
  #keys() {
    try {
      const length = this.#storage?.length ?? 0;
      const keys = Array.from({ length }, (_, index) => this.#storage?.key?.(index) ?? "");
      return keys.filter((key) => key.startsWith(this.#prefix));
    } catch {
      return []; // blocked
    }
  }

  /** @param {string} key */
  #entry(key) {
    return entryOf(this.#read(key) ?? "");
  }
}

/**
 * @param {string} text
 * @returns {Entry | null}
 */
function entryOf(text) {
  try {
    const { used, resumePoint } = JSON.parse(text);
    return typeof used === "number" && resumePoint !== undefined ? { used, resumePoint } : null;
  } catch {
    return null;
  }
}

/**
 * The furthest back first: by the time in their resume tokens, by their only positions, or by when they were used.
 * @param {Entry} one
 * @param {Entry} other
 */
function byPlace(one, other) {
  const [a, b] = [one, other].map(({ resumePoint, used }) => ({ used, resumeToken: Number(resumePoint.since?.split(".")[2]), place: placeOf(resumePoint) }));
  if (a === undefined || b === undefined) return 0;
  if (a.resumeToken - b.resumeToken) return a.resumeToken - b.resumeToken;
  const order = a.place && b.place ? a.place.epoch - b.place.epoch || a.place.sequence - b.place.sequence : 0;
  return order || a.used - b.used;
}

/** @param {SavedResumePoint} resumePoint */
function placeOf({ after = {} }) {
  const [text, ...others] = Object.values(after);
  if (text === undefined || others.length > 0) return null;
  const [epoch = 0, sequence = 0] = text.split(".").map(Number);
  return { epoch, sequence };
}
