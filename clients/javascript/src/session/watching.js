// One watch: the last known interest of each selector, and the changes its reader has not seen.
//
// Interest is a state: for a slow reader only the latest report on each selector is kept. The server sends the state between two
// marks, on each connection and to a client that fell behind: a selector that is not between them has no subscribers any more.

import { Interest } from "../model.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */

/** The pure part of a watch; `wake` is called when there is something new. */
export class Watching {
  isEnded = false;
  isComplete = false; // the server has sent the whole state
  /** @type {GodwitError | null} */
  error = null;
  wake = () => {};
  /** @type {Set<string>} selectors that have subscribers, as far as the reader knows */
  #known = new Set();
  /** @type {Map<string, boolean>} */
  #changes = new Map();
  /** @type {Set<string>} reported before the state that is being sent */
  #unconfirmed = new Set();

  /** @param {string} selector */
  constructor(selector) {
    this.selector = selector;
  }

  /**
   * @param {number} id
   * @returns {import("../codec/command.js").Named}
   */
  ask(id) {
    return { verb: "watch", id, selector: this.selector };
  }

  /**
   * The server begins to send the state, or has sent all of it.
   * @param {boolean} isComplete
   */
  stateReported(isComplete) {
    this.isComplete = isComplete;
    const before = this.#unconfirmed;
    this.#unconfirmed = new Set();
    if (isComplete) {
      for (const selector of before) this.handle(new Interest(selector, false));
      this.wake();
      return;
    }
    this.#unconfirmed = new Set([...this.#known].filter((selector) => this.#changes.get(selector) ?? true));
    for (const [selector, listens] of this.#changes) if (listens) this.#unconfirmed.add(selector);
  }

  /** @param {Interest} interest */
  handle({ subject, hasSubscribers }) {
    if (!meets(this.selector, subject)) return;
    this.#unconfirmed.delete(subject);
    this.#changes.delete(subject);
    if (hasSubscribers !== this.#known.has(subject)) this.#changes.set(subject, hasSubscribers);
    this.wake();
  }

  /**
   * The next change, or null.
   * @returns {Interest | null}
   */
  take() {
    for (const [selector, hasSubscribers] of this.#changes) {
      this.#changes.delete(selector);
      if (hasSubscribers) this.#known.add(selector);
      else this.#known.delete(selector);
      return new Interest(selector, hasSubscribers);
    }
    return null;
  }

  /** @param {GodwitError | null} error */
  end(error) {
    this.isEnded = true;
    this.error = error;
    this.wake();
  }
}

/**
 * Some subject is taken by both; each may be a subject or a pattern.
 * @param {string} one
 * @param {string} other
 */
export function meets(one, other) {
  const [left, right] = [one.split("/").slice(1), other.split("/").slice(1)];
  for (let place = 0; place < Math.max(left.length, right.length); place++) {
    const [first, second] = [left[place], right[place]];
    if (first === "**" || second === "**") return !(place === 0 && isReserved(first === "**" ? second : first));
    if (first === undefined || second === undefined) return false;
    if (first === "*" || second === "*") {
      if (place === 0 && isReserved(first === "*" ? second : first)) return false;
    } else if (first !== second) {
      return false;
    }
  }
  return true;
}

/** @param {string | undefined} segment */
function isReserved(segment) {
  return segment !== undefined && segment.startsWith("$");
}
