// One subscription in the session: what the server was asked for, and how its answers are handled.
//
//     idle ──ask──▶ asked ──answer──▶ served        lost: any ──▶ idle        refused or left: any ──▶ ended
//      ▲                                │
//      └──────────pauseNow──────────────┘   (the reader's queue stays full and something else of the client could continue)
//
// Messages count only while it is served: what arrives in the state `asked` belongs to an earlier command.

import { Dropped, Gap, Position, Status } from "../model.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("../model.js").Item} Item */
/** @typedef {import("../model.js").Message} Message */
/** @typedef {import("../codec/command.js").Choice} Choice */
/** @typedef {import("../codec/command.js").Subscribe} Subscribe */
/** @typedef {import("../codec/push.js").Marked} Marked */
/** @typedef {import("../codec/push.js").Epochs} Epochs */
/** @typedef {import("../codec/push.js").Reply} Reply */
/** @typedef {import("./item_queue.js").ItemQueue} ItemQueue */
/** @typedef {import("./position_tracker.js").PositionTracker} PositionTracker */

const PAUSE_MS = 1_000; // at least, between two pauses of one subscription

/** The state above, and counts of gaps and drops. `wake` is called when the queue has a new item. */
export class Subscribing {
  /** @type {"idle" | "asked" | "served" | "ended"} */
  state = "idle";
  isPaused = false; // not requested until its queue has room again
  wasPaused = false; // by its full queue, and not yet reported
  resumedAt = -Infinity; // after a pause
  resumesAt = -Infinity; // not before, so that it is paused once a second at most
  refusals = 0; // since it was served last
  /** @type {GodwitError | null} why it ended, when it did not end by its own wish */
  error = null;
  wake = () => {};
  isJoined = false; // nothing published from now on can be lost: a new pattern waits for its first resume token
  counts = { joins: 0, gaps: 0, duplicates: 0, missing: 0 };
  /** @type {number | null} */
  #askedId = null;
  #hasBegunAnew = false;

  /**
   * @param {string} selector
   * @param {Choice} choice
   * @param {PositionTracker} tracker
   * @param {ItemQueue} queue
   */
  constructor(selector, choice, tracker, queue) {
    this.selector = selector;
    this.choice = choice;
    this.tracker = tracker;
    this.queue = queue;
  }

  /**
   * Ask this node to serve it from its position.
   * @param {number} id
   * @param {string | null} node
   * @returns {Subscribe}
   */
  ask(id, node) {
    this.state = "asked";
    this.#askedId = id;
    this.isPaused = false;
    if (!this.tracker.resumePoint.canBeAsked) this.#beginAnew();
    const resumePoint = this.tracker.resumePoint.forNode(node);
    return { verb: "subscribe", id, selector: this.selector, resumePoint, choice: this.choice };
  }

  /**
   * @param {Reply} reply
   * @param {string | null} [transport]
   */
  reply(reply, transport = null) {
    if (!this.isAskedBy(reply.id)) return;
    this.state = "served";
    this.counts.joins++;
    this.refusals = 0;
    this.isJoined ||= !this.tracker.isPattern || this.tracker.resumePoint.isSomewhere;
    // After a resync the gap has the position to continue from; without a count the first message has it.
    const isPlaced = reply.outcome !== "resync" && reply.count !== null;
    this.tracker.joined(isPlaced ? reply.position : null, reply.count ?? 0);
    this.#put(new Status(this.selector, "subscribed", reply.outcome, reply.position, reply.count, "", transport));
    if (this.wasPaused) this.#put(new Dropped(this.selector, null)); // standard messages may have passed meanwhile
    this.wasPaused = false;
  }

  /** The server was asked for it. */
  get isAsked() {
    return this.state === "asked" || this.state === "served";
  }

  /** @param {number | null} id */
  isAskedBy(id) {
    return this.state === "asked" && id === this.#askedId;
  }

  /** @param {Message} message */
  message(message) {
    if (this.state !== "served") return;
    const resumePoint = this.tracker.position(message.subject);
    const verdict = this.tracker.judge(message);
    if (verdict === "duplicate") {
      this.counts.duplicates++;
      return;
    }
    if (verdict === "missing" && resumePoint !== undefined && message.position !== null) {
      this.counts.missing++;
      this.#put(holeBefore(message, message.position, resumePoint));
    }
    this.#put(message);
  }

  /** @param {Gap} gap */
  gap(gap) {
    const refined = this.tracker.refine(gap);
    if (this.state !== "served" || refined === null) return;
    this.counts.gaps++;
    this.tracker.place(refined);
    this.#put(refined);
  }

  /** @param {Epochs} epochs */
  epochs(epochs) {
    if (this.state === "served") this.tracker.order(epochs.subject, epochs.order);
  }

  /** @param {Marked} marked */
  marked(marked) {
    if (this.state !== "served") return;
    this.isJoined = true;
    this.tracker.resumeToken(marked.resumeToken, marked.node);
    this.#put(marked);
  }

  /** @param {Dropped} dropped */
  dropped(dropped) {
    if (this.state === "served") this.#put(dropped);
  }

  /** False for a first join that was begun again: paused repeatedly, it would never be complete. */
  get canPause() {
    return this.isJoined || !this.#hasBegunAnew;
  }

  /**
   * Its queue stays full: pause it until there is space; true when an unsubscribe has to be sent.
   * @param {number} now
   */
  pause(now) {
    this.wasPaused ||= this.state === "served";
    this.resumesAt = Math.max(now, this.resumedAt + PAUSE_MS);
    return this.pauseNow();
  }

  /**
   * Its reader has caught up, and it was not paused a moment ago.
   * @param {number} now
   */
  mayResume(now) {
    if (!this.isPaused || now < this.resumesAt) return false;
    this.isPaused = false;
    return true;
  }

  /** Pause it; true when an unsubscribe has to be sent. */
  pauseNow() {
    const wasAsked = this.isAsked;
    if (this.state !== "ended") {
      this.state = "idle";
      this.isPaused = true;
    }
    return wasAsked;
  }

  /**
   * The connection went. With a full queue it is not asked for again before there is room.
   * @param {string} reason
   */
  lost(reason) {
    if (this.state === "ended") return;
    if (this.state === "served") this.#put(new Status(this.selector, "disconnected", null, null, 0, reason));
    this.state = "idle";
    this.isPaused ||= this.queue.isFull;
  }

  /** @param {GodwitError | null} error */
  end(error) {
    if (this.state === "ended") return;
    this.state = "ended";
    this.error = error;
    this.isPaused = false; // an ended subscription never resumes, even if something still wakes its reader
    this.queue.letGo();
    this.wake();
  }

  /** Its first join, of very many subjects, was interrupted: the missing messages cannot be requested, so it gets a gap. */
  #beginAnew() {
    this.#hasBegunAnew = true;
    const gap = new Gap(this.selector, null, null, "unknown", null, this.selector);
    this.counts.gaps++;
    this.tracker.place(gap);
    this.#put(gap);
  }

  /** @param {Item | Marked} entry */
  #put(entry) {
    this.queue.put(entry);
    this.wake();
  }
}

/**
 * Messages for which the server sent neither the message nor a gap: always reported.
 * @param {Message} message
 * @param {Position} at
 * @param {Position} resumePoint
 */
function holeBefore(message, at, resumePoint) {
  const upto = message.after ?? new Position(at.epoch, at.sequence - 1n);
  return new Gap(message.subject, upto, resumePoint, "unknown", Number(upto.sequence - resumePoint.sequence), message.pattern);
}
