// Stands kept in a browser's localStorage or sessionStorage, one entry per selector.

import { PositionInvalid } from "../errors.js";
import { pageStorage } from "../platform/browser.js";

/** @typedef {import("./store.js").SavedResumePoint} SavedResumePoint */
/** @typedef {{ getItem: (key: string) => string | null, setItem: (key: string, value: string) => void, removeItem: (key: string) => void }} StorageLike */

/** Writes at once: a page may be gone the next moment. Two clients that read the same selectors need two names. */
export class PositionStorage {
  #prefix;
  #storage;

  /**
   * @param {string} [name] tells apart what several clients of one origin keep
   * @param {StorageLike | null} [storage] localStorage unless another is given
   */
  constructor(name = "", storage = pageStorage()) {
    if (storage === null) throw new TypeError("this page has no localStorage; give another storage, or a Map");
    this.#prefix = `godwit:${name}:`;
    this.#storage = storage;
  }

  /**
   * Throws PositionInvalid where something else stands there.
   * @param {string} selector
   * @returns {SavedResumePoint | undefined}
   */
  get(selector) {
    const text = this.#storage.getItem(this.#prefix + selector);
    if (text === null) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      throw new PositionInvalid(text);
    }
  }

  /**
   * @param {string} selector
   * @param {SavedResumePoint} saved
   */
  set(selector, saved) {
    this.#storage.setItem(this.#prefix + selector, JSON.stringify(saved));
  }

  /** @param {string} selector */
  delete(selector) {
    this.#storage.removeItem(this.#prefix + selector);
  }
}
