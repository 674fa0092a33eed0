// A resume point: where this client, or a later one, can resume a subscription.

import { PositionInvalid } from "../errors.js";
import { Position } from "../model.js";
import { isPlainObject, shown } from "../shown.js";

/**
 * @typedef {object} SavedResumePoint the saved form
 * @property {Record<string, string>} [after]
 * @property {string} [since]
 * @property {string} [node]
 * @property {number} [recent]
 * @property {boolean} [whole]
 */

const ASKED_MAX = 4_000; // positions in one question; the server takes 10,000
const ASKED_CHARACTERS_MAX = 200_000; // of all their subjects; the server takes a megabyte, however they are written

/** What a client saves for a subscription: positions by subject, and for a pattern the resume token that it has reached. */
export class ResumePoint {
  /**
   * @param {ReadonlyMap<string, Position>} [after]
   * @param {string | null} [since]
   * @param {string | null} [node] the node that issued the resume token
   * @param {number} [recent] how many positions, the last of the map, are after the resume token
   * @param {boolean} [isWhole] false: positions that only the resume token covers were evicted
   */
  constructor(after = new Map(), since = null, node = null, recent = 0, isWhole = true) {
    this.after = after;
    this.since = since;
    this.node = node;
    this.recent = recent;
    this.isWhole = isWhole;
  }

  /** Whether it has a position or a resume token. */
  get isSomewhere() {
    return this.after.size > 0 || this.since !== null;
  }

  /** The positions beyond the resume token. */
  get beyondResumeToken() {
    return this.recent === 0 ? [] : [...this.after].slice(-this.recent);
  }

  /**
   * The resume point to send to this node; null if its name is not known yet, for which the resume token is the best guess. The node that gave
   * the resume token gets the token and the positions after it: without these it would repeat messages, or no longer have them. Another
   * node gets all positions, or the resume token if some were forgotten: its gap then says what is missing. If nobody named the node that
   * gave the token, both are sent.
   * @param {string | null} node
   */
  forNode(node) {
    if (this.since === null) return this;
    const isItsOwn = node === null || this.node === node;
    const places = isItsOwn && this.node !== null ? this.beyondResumeToken : [...this.after];
    if (isTooMuch(places)) return new ResumePoint(new Map(), this.since);
    if (isItsOwn || this.node === null) return new ResumePoint(new Map(places), this.since);
    return this.isWhole && places.length > 0 ? new ResumePoint(new Map(places)) : new ResumePoint(new Map(), this.since);
  }

  /** False if there are more positions than the server accepts at once, and no resume token in their place. */
  get canBeAsked() {
    return this.since !== null || !isTooMuch([...this.after]);
  }

  /**
   * The saved form: `{"after": {"/a/b": "7.42"}, "since": RESUME_TOKEN, "node": NAME, "recent": 1}`, each only when there is one.
   * @returns {SavedResumePoint}
   */
  toJSON() {
    return {
      ...(this.after.size > 0 && { after: Object.fromEntries([...this.after].map(([subject, at]) => [subject, `${at}`])) }),
      ...(this.since !== null && { since: this.since }),
      ...(this.node !== null && { node: this.node }),
      ...(this.recent > 0 && { recent: this.recent }),
      ...(!this.isWhole && { whole: false }),
    };
  }

  /**
   * Read the saved form; throws PositionInvalid if it is not one.
   * @param {unknown} saved
   */
  static fromJSON(saved) {
    if (saved instanceof ResumePoint) return saved;
    if (isPlainObject(saved)) {
      const { after = {}, since = null, node = null, recent = 0, whole = true } = /** @type {Record<string, unknown>} */ (saved);
      const isText = [since, node].every((value) => value === null || typeof value === "string");
      if (isText && after !== null && typeof after === "object" && !Array.isArray(after)) {
        const places = Object.entries(after).map(
          ([subject, text]) => /** @type {const} */ ([subject, Position.parse(String(text))]),
        );
        const beyond = Number.isInteger(recent) ? Math.min(Number(recent), places.length) : 0;
        const [resumeToken, name] = /** @type {(string | null)[]} */ ([since, node]);
        return new ResumePoint(new Map(places), resumeToken, name, Math.max(0, beyond), whole !== false);
      }
    }
    throw new PositionInvalid(isPlainObject(saved) ? (JSON.stringify(saved) ?? shown(saved)) : shown(saved));
  }
}

/** @param {(readonly [string, Position])[]} places */
function isTooMuch(places) {
  const characters = places.reduce((sum, [subject]) => sum + subject.length, 0);
  return places.length > ASKED_MAX || characters > ASKED_CHARACTERS_MAX;
}
