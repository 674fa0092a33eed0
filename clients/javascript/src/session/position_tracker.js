// The position of one subscription, and how it classifies the next message.
//
// A message at or before the position is a duplicate; one whose `after` lies beyond it reveals missing messages; any other
// advances the position. Snapshots and gaps set it. A pattern also keeps the server's last resume token: resuming needs positions
// only for what came after it; the others are kept (within a limit) for resuming exactly at another node.

import { Gap, Position } from "../model.js";
import { ResumePoint } from "./resume_point.js";

/** @typedef {import("../model.js").Message} Message */
/** @typedef {"new" | "duplicate" | "missing"} Verdict what to do with a message; a missing one is new, but something before it never came */

/** The position of one subscription while it is served. */
export class PositionTracker {
  /** How often it moved. */
  moves = 0;
  #subjectsMax;
  /** @type {Map<string, Position>} oldest touched first */
  #positions;
  #resumeToken;
  #node;
  #isWhole; // no position was forgotten for the limit
  /** @type {Set<string>} touched after the last resume token, the last of the positions: never forgotten */
  #sinceResumeToken = new Set();
  /** @type {Set<string>} a gap set these; the snapshot after it is not a duplicate */
  #snapshotDue = new Set();
  /** @type {Map<string, bigint[]>} the order of epochs, of subjects that the join under way has earlier ones of */
  #orders = new Map();
  /** @type {{ at: Position, left: number } | null} where a join ends, and how many messages it has left */
  #join = null;

  /**
   * @param {string} selector
   * @param {boolean} isPattern
   * @param {number} subjectsMax
   * @param {ResumePoint | null} [resumePoint]
   */
  constructor(selector, isPattern, subjectsMax, resumePoint = null) {
    this.selector = selector;
    this.isPattern = isPattern;
    this.#subjectsMax = subjectsMax;
    this.#positions = new Map(resumePoint?.after);
    this.#resumeToken = resumePoint?.since ?? null;
    this.#node = resumePoint?.node ?? null;
    this.#isWhole = resumePoint?.isWhole ?? true;
    for (const [subject] of resumePoint?.beyondResumeToken ?? []) this.#sinceResumeToken.add(subject);
  }

  /** @param {string} subject */
  position(subject) {
    return this.#positions.get(subject);
  }

  /**
   * The resume point to send. A map without evicted subjects would hide what was missed on them: then only the resume token, and
   * the positions after it.
   */
  get resumePoint() {
    const recent = this.#sinceResumeToken.size;
    const whole = new ResumePoint(new Map(this.#positions), this.#resumeToken, this.#node, recent);
    if (!this.isPattern || this.#isWhole || this.#resumeToken === null) return whole;
    return new ResumePoint(new Map(whole.beyondResumeToken), this.#resumeToken, this.#node, recent, false);
  }

  /**
   * A join was answered: `count` messages follow up to `at`, on one subject; a pattern's join ends with its resume token. The previous
   * join ends, even if messages of it are missing; `at` is null if a gap will report where this one begins.
   * @param {Position | null} at
   * @param {number} count
   */
  joined(at, count) {
    this.#orders.clear();
    this.#join = at !== null && !this.isPattern ? { at, left: count } : null;
    this.#endJoin();
  }

  /**
   * The server names the order of a subject's epochs, before it sends something of an earlier one than the present.
   * @param {string} subject
   * @param {bigint[]} epochs
   */
  order(subject, epochs) {
    this.#orders.set(subject, epochs);
  }

  /**
   * Whether it lies at or before the position, in the same epoch or in an earlier one.
   * @param {string} subject
   * @param {Position} at
   * @param {Position} resumePoint
   */
  #isPassed(subject, at, resumePoint) {
    if (at.epoch === resumePoint.epoch) return at.isAtOrBefore(resumePoint);
    const order = this.#orders.get(subject);
    if (order === undefined) return false;
    const index = order.indexOf(at.epoch);
    return index >= 0 && index < order.indexOf(resumePoint.epoch);
  }

  /**
   * Classify a message, and advance to it unless it is a duplicate.
   * @param {Message} message
   * @returns {Verdict}
   */
  judge(message) {
    const at = message.position;
    if (at === null) return "new";
    const subject = message.subject;
    const resumePoint = this.#positions.get(subject);
    /** @type {Verdict} */
    let verdict = "new";
    if (resumePoint !== undefined && !(message.isSnapshot && this.#snapshotDue.has(subject))) {
      if (this.#isPassed(subject, at, resumePoint)) verdict = "duplicate";
      else if (!message.isSnapshot && isBeyond(message, at, resumePoint)) verdict = "missing";
    }
    if (verdict !== "duplicate") {
      this.#snapshotDue.delete(subject);
      this.#place(subject, at);
    }
    this.#countJoin();
    return verdict;
  }

  /**
   * Advance to a message that was classified elsewhere.
   * @param {Message} message
   */
  note(message) {
    if (message.position !== null) {
      this.#place(message.subject, message.position);
      this.#countJoin();
    }
  }

  /**
   * The part of a gap that this client missed; null when it has seen all of it (2.2). A server that was given a resume token knows
   * the position at the resume token only, and this client may have received more since.
   * @param {Gap} gap
   * @returns {Gap | null}
   */
  refine(gap) {
    const resumePoint = this.#positions.get(gap.subject);
    if (resumePoint === undefined || gap.position === null || gap.reason === "ahead") return gap;
    if (gap.position.epoch !== resumePoint.epoch && this.#isPassed(gap.subject, gap.position, resumePoint)) return null;
    const isOtherEpoch = gap.after !== null && gap.after.epoch !== resumePoint.epoch;
    // After a join the client is already at its end: a gap that leads there from an earlier epoch is still new.
    const isJoinsEnd = isOtherEpoch && resumePoint.isAtOrBefore(gap.position);
    if (gap.position.isAtOrBefore(resumePoint) && !isJoinsEnd) return null;
    if (gap.after === null || isOtherEpoch) return gap;
    const further = resumePoint.sequence - gap.after.sequence;
    if (further <= 0n) return gap;
    const missed = gap.missed === null ? null : Math.max(0, gap.missed - Number(further));
    return new Gap(gap.subject, gap.position, resumePoint, gap.reason, missed, gap.pattern);
  }

  /**
   * A gap sets the position. A gap of a whole pattern clears every subject: what follows it begins without positions.
   * @param {Gap} gap
   */
  place(gap) {
    this.moves++;
    if (this.isPattern && gap.subject === this.selector) {
      this.#positions.clear();
      this.#sinceResumeToken.clear();
      this.#snapshotDue.clear();
      this.#resumeToken = null;
      this.#isWhole = true;
      return;
    }
    if (gap.position !== null) this.#place(gap.subject, gap.position);
    else {
      this.#positions.delete(gap.subject);
      this.#sinceResumeToken.delete(gap.subject);
    }
    if (gap.missed !== 0) this.#snapshotDue.add(gap.subject);
  }

  /**
   * @param {string} text
   * @param {string | null} node
   */
  resumeToken(text, node) {
    this.moves++;
    this.#resumeToken = text;
    this.#node = node;
    this.#orders.clear();
    this.#sinceResumeToken.clear();
    this.#snapshotDue.clear();
  }

  #countJoin() {
    if (this.#join === null) return;
    this.#join.left--;
    this.#endJoin();
  }

  #endJoin() {
    if (this.#join === null || this.#join.left > 0) return;
    const { at } = this.#join;
    this.#join = null;
    const resumePoint = this.#positions.get(this.selector);
    if (resumePoint === undefined || !at.isAtOrBefore(resumePoint)) this.#place(this.selector, at);
  }

  /**
   * @param {string} subject
   * @param {Position} at
   */
  #place(subject, at) {
    this.moves++;
    const positions = this.#positions;
    if (!this.isPattern) {
      positions.set(subject, at);
      return;
    }
    positions.delete(subject);
    positions.set(subject, at);
    this.#sinceResumeToken.add(subject);
    if (positions.size <= this.#subjectsMax) return;
    const [oldest] = positions.keys();
    if (oldest !== undefined && !this.#sinceResumeToken.has(oldest)) {
      positions.delete(oldest);
      this.#isWhole = false;
    }
  }
}

/**
 * Whether messages between the position and this message are missing.
 * @param {Message} message
 * @param {Position} at
 * @param {Position} resumePoint
 */
function isBeyond(message, at, resumePoint) {
  const epoch = message.after?.epoch ?? at.epoch;
  const sequence = message.after?.sequence ?? at.sequence - 1n;
  return epoch === resumePoint.epoch && sequence > resumePoint.sequence;
}
