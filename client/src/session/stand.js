// A stand: where a subscription can be taken up again, by this client or by a later one.

import { PositionInvalid } from "../errors.js";
import { Position } from "../model.js";

/** @typedef {{ after?: Record<string, string>, since?: string, node?: string }} SavedStand the form that is saved */

/** Positions by subject, and for a pattern the mark up to which it has seen everything. */
export class Stand {
  /**
   * @param {ReadonlyMap<string, Position>} [after]
   * @param {string | null} [since]
   * @param {string | null} [node] which gave the mark
   */
  constructor(after = new Map(), since = null, node = null) {
    this.after = after;
    this.since = since;
    this.node = node;
  }

  /** Whether it says anything. */
  get isSomewhere() {
    return this.after.size > 0 || this.since !== null;
  }

  /**
   * What to ask of this node: to the one that gave it, a mark says everything; another is told the positions too.
   * @param {string | null} node
   */
  forNode(node) {
    return this.since !== null && this.node === node ? new Stand(new Map(), this.since) : this;
  }

  /**
   * The saved form: `{"after": {"/a/b": "7.42"}, "since": MARK, "node": NAME}`, each only when there is one.
   * @returns {SavedStand}
   */
  toJSON() {
    return {
      ...(this.after.size > 0 && { after: Object.fromEntries([...this.after].map(([subject, at]) => [subject, `${at}`])) }),
      ...(this.since !== null && { since: this.since }),
      ...(this.node !== null && { node: this.node }),
    };
  }

  /**
   * Read the saved form back; throws PositionInvalid when it is none.
   * @param {unknown} saved
   */
  static fromJSON(saved) {
    if (saved instanceof Stand) return saved;
    if (saved !== null && typeof saved === "object" && !Array.isArray(saved)) {
      const { after = {}, since = null, node = null } = /** @type {Record<string, unknown>} */ (saved);
      const isText = [since, node].every((value) => value === null || typeof value === "string");
      if (isText && after !== null && typeof after === "object" && !Array.isArray(after)) {
        const places = Object.entries(after).map(
          ([subject, text]) => /** @type {const} */ ([subject, Position.parse(String(text))]),
        );
        return new Stand(new Map(places), /** @type {string | null} */ (since), /** @type {string | null} */ (node));
      }
    }
    throw new PositionInvalid(JSON.stringify(saved) ?? String(saved));
  }
}
