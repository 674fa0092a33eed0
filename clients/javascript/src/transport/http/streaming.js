// Server-Sent Events: one stream for all subscriptions and watches of a client. To change them another stream is opened from the
// last positions, so that the node keeps no state meanwhile. If something joins, the old stream is kept, unread, until the new one
// is open, so that nothing arrives twice: if the new one is refused, the old one continues.
//
// A subscription belongs to the stream with which it was last requested; what an older stream still sends for it is ignored. If
// connections are scarce, a stream is closed after a while and opened again, so that other pages get a connection.

import { after } from "../../signal.js";
import { BROKE, SILENT } from "../transport.js";
import { Refused } from "./answer.js";
import { EventReader } from "./events.js";
import { Lease } from "./lease.js";
import { isCodeOfRoom, isOfRoom, isRoomPossible, waitForRoom } from "./room.js";
import { Stream, bodyOfEvents } from "./stream.js";
import { gapOf, resumeTokenOf } from "./wanted.js";

/** @typedef {import("./events.js").StreamEvent} StreamEvent */
/** @typedef {import("./http_link.js").Host} Host */
/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {import("./watched.js").Watched} Watched */

const RESUME_TOKEN_MS = 1_000; // between two resume tokens that are passed on, unless one is needed sooner
const PATIENCE_MS_MAX = 1_000; // then the new one perhaps waits for the old one's browser connection
const TOGETHER_MS = 50; // changes within it are one

export class Streaming {
  /** @type {Map<string, Wanted>} */
  wanted = new Map();
  /** @type {Map<string, Watched>} */
  watched = new Map();
  #host;
  /** @type {Stream | null} */
  #stream = null;
  /** @type {Stream | null} it waits for what becomes of the one that is being opened */
  #held = null;
  #release = () => {};
  /** @type {Promise<void>} */
  #released = Promise.resolve();
  #isDue = false;
  #dueAt = -Infinity; // not before
  #isDoubted = false; // it may be dead
  #isAlone = false; // the node had no space while the old one was kept
  #tries = 0; // how often there was no room
  #isYielding = false; // a publish needs its connection
  #markedAt = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} until the next look at what is due */
  #timer;
  #lease;

  /** @param {Host} host */
  constructor(host) {
    this.#host = host;
    const isBusy = () => this.#isJoining || host.isPaused || (this.#stream?.unanswered.size ?? 0) > 0;
    this.#lease = new Lease(host, isBusy, (restMs) => {
      this.stop();
      this.change(this.#isDue ? 0 : restMs);
    });
  }

  /**
   * Subscriptions or watches came or went.
   * @param {number} [afterMs]
   */
  change(afterMs = 0) {
    if (this.#isDue && afterMs > 0) return;
    const waitMs = Math.max(this.#dueAt - this.#host.now(), afterMs);
    if (waitMs > 0) this.#lookIn(waitMs);
    else queueMicrotask(() => this.#refresh());
    this.#isDue = true;
  }

  /** Open it again, because it may be dead. */
  renew() {
    this.#isDoubted = true;
    this.change();
  }

  /** Connections are scarce now, or no more. */
  paced() {
    this.#lease.stop();
    if (this.#stream?.hasBegun) this.#lease.begin();
    else if (this.#stream === null) this.change();
  }

  /** A publish gets no answer: perhaps it waits for this stream's browser connection. */
  letGo() {
    if (this.#isJoining || this.#stream === null) return;
    this.#isYielding = true;
    this.stop();
  }

  takeUp() {
    if (this.#isYielding) this.change(); // it is looked at once this has returned
    this.#isYielding = false;
  }

  stop() {
    clearTimeout(this.#timer);
    this.#lease.stop();
    this.#stream?.ending.abort();
    this.#stream = null;
    this.#letHeldGo();
  }

  /** @param {number} waitMs */
  #lookIn(waitMs) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#refresh(), waitMs);
  }

  #refresh() {
    if (!this.#isDue || this.#host.isEnded || this.#isYielding) return;
    if (this.#host.now() < this.#dueAt) return this.#lookIn(this.#dueAt - this.#host.now());
    if (this.#isJoining) return;
    const stream = this.#stream;
    if (stream !== null && !stream.hasBegun && !this.#isDoubted && stream.isWithin(this.wanted, this.watched)) return;
    this.#isDue = false;
    this.#dueAt = this.#host.now() + TOGETHER_MS;
    const isNew = [...this.wanted.values(), ...this.watched.values()].some(({ isServed }) => !isServed);
    if (isNew && !this.#isDoubted && !this.#isAlone) this.#hold();
    else this.stop();
    this.#isDoubted = false;
    if (this.wanted.size + this.watched.size > 0) this.#open();
  }

  /** Whether a subscription began without a position and does not have one yet. */
  get #isJoining() {
    return [...this.wanted.values()].some((each) => each.isServed && each.place === null);
  }

  /** Keep the old stream until the next one is open. */
  #hold() {
    this.#lease.stop();
    const stream = this.#stream;
    this.#stream = null;
    if (!stream?.hasBegun) {
      stream?.ending.abort(); // it was being opened, with or without an old one
      return;
    }
    this.#held = stream;
    this.#released = new Promise((resolve) => (this.#release = resolve));
  }

  /** The one that was held is not needed. */
  #letHeldGo() {
    this.#held?.ending.abort();
    this.#held = null;
    this.#release();
  }

  /** Continue to read the old stream; false without one, or if it does not carry what is wanted. */
  #goBack() {
    const held = this.#held;
    this.#held = null;
    this.#stream = held?.isOver ? null : held;
    this.#release();
    return this.#stream !== null && this.#stream.isOf(this.wanted, this.watched);
  }

  async #open() {
    const host = this.#host;
    const stream = (this.#stream = new Stream(this.wanted, this.watched));
    const timer = after(host.streamTimeoutMs, () => this.#late(stream));
    const patience = setTimeout(() => this.#stream === stream && this.#letHeldGo(), PATIENCE_MS_MAX);
    try {
      const answer = await stream.ask(host);
      clearTimeout(patience);
      if (this.#stream !== stream) return;
      this.#letHeldGo();
      await this.#read(stream, bodyOfEvents(answer));
      throw new Error(BROKE);
    } catch (error) {
      stream.isOver = true;
      clearTimeout(timer);
      clearTimeout(patience);
      if (this.#stream !== stream) return;
      if (isOfRoom(error) && (await this.#awaitRoom(stream))) return;
      if (this.#stream !== stream) return;
      if (error instanceof Refused && error.isOfCommand) this.#refusedWhole(error, stream);
      else host.fail(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The node had no space for the stream: perhaps only because the one that is being closed still counts. False: it is full.
   * @param {Stream} stream
   */
  async #awaitRoom(stream) {
    this.#letHeldGo();
    if (!(await waitForRoom(this.#tries++))) return false;
    if (this.#stream === stream) this.#open();
    return true;
  }

  /**
   * No event arrived: a proxy buffers events, or other pages use all the connections.
   * @param {Stream} stream
   */
  #late(stream) {
    if (this.#stream !== stream || stream.hasBegun) return;
    if (this.#host.pace !== null) this.renew();
    else this.#host.fail(new Error("nothing came by the stream in time"), true);
  }

  /**
   * No event arrived for long, though a node sends one regularly: it is dead, even if other requests work.
   * @param {Stream} stream
   */
  #doubt(stream) {
    if (this.#held === stream) stream.ending.abort(); // it is not gone back to
    else if (this.#stream !== stream) return;
    else if (this.#isJoining) this.#host.fail(new Error(SILENT)); // to open it again, positions are needed
    else this.renew();
  }

  /**
   * Refuse the commands of the refused request.
   * @param {Refused} refusal
   * @param {Stream} stream
   */
  #refusedWhole(refusal, stream) {
    const fresh = [...stream.unanswered].filter(({ isServed }) => !isServed);
    if (fresh.length === 0) return this.#host.fail(refusal);
    for (const each of fresh) {
      this.#forget(each);
      this.#host.tell(refusal.toPush(each.id));
    }
    if (!this.#goBack()) this.change();
  }

  /**
   * False: it is not wanted any more.
   * @param {Wanted | Watched} each
   */
  #forget(each) {
    const table = this.wanted.get(each.selector) === each ? this.wanted : this.watched;
    if (table.get(each.selector) !== each) return false;
    this.#host.forget(each);
    return table.delete(each.selector);
  }

  /**
   * @param {Stream} stream
   * @param {ReadableStream<Uint8Array>} body
   */
  async #read(stream, body) {
    const events = new EventReader(this.#host.frameBytesMax);
    const chunks = body.getReader();
    for (;;) {
      const { value, done } = await this.#host.soon(chunks.read(), () => this.#doubt(stream));
      if (done || (this.#stream !== stream && this.#held !== stream)) return;
      events.push(value);
      for (;;) {
        while (this.#host.isPaused) await this.#host.resumed();
        while (this.#held === stream) await this.#released;
        if (this.#stream !== stream) return;
        const event = events.next();
        if (event === null) break;
        this.#take(stream, event);
      }
    }
  }

  /**
   * @param {Stream} stream
   * @param {StreamEvent} event
   */
  #take(stream, { type, id, data }) {
    if (!stream.hasBegun) {
      stream.hasBegun = true;
      this.#host.worked();
      if (this.#stream === stream) this.#lease.begin();
    }
    if (data === null) return this.#host.tell("[]"); // the stream is alive
    const read = JSON.parse(data);
    if (type === "closed") {
      const afterMs = read.reconnect_after_ms;
      const reason = afterMs === undefined ? String(read.reason ?? "") : JSON.stringify({ reconnect_after_ms: afterMs });
      return this.#host.end({ code: read.closed ?? null, reason });
    }
    if (type === "subscribed") this.#subscribed(stream, read, data);
    else if (type === "watching") this.#watching(stream, read, data);
    else if (type === "refused") this.#refused(stream, read, data);
    else if (type === "interest" || type === "interest_state" || type === "notice") this.#host.tell(data);
    else if (type !== "resume_token") this.#handle(stream, type, read, data);
    this.#resumeToken(stream, resumeTokenOf(id), type === "resume_token");
    if (stream.isShort && stream.unanswered.size === 0 && !this.#isJoining) this.#makeRoom();
    else if (this.#isDue) this.#refresh();
  }

  /**
   * Handle a message, or another event of a subscription.
   * @param {Stream} stream
   * @param {string} type
   * @param {Record<string, string>} read
   * @param {string} data
   */
  #handle(stream, type, read, data) {
    const each = stream.wanted.get(read.pattern ?? read.message ?? read.gap ?? read.epochs ?? read.ended ?? read.dropped ?? "");
    if (each === undefined || !this.#isCurrent(each)) return;
    if (type === "ended") queueMicrotask(() => this.#forget(each));
    this.#host.tell(data);
    if (type !== "ended") each.passed(read);
  }

  /** @param {Wanted} each */
  #isCurrent(each) {
    return each.isServed && this.wanted.get(each.selector) === each;
  }

  /**
   * @param {Stream} stream
   * @param {{ subject: string, at?: string, outcome: string, count?: number }} reply
   * @param {string} data
   */
  #subscribed(stream, { subject, at, outcome, count }, data) {
    const each = stream.wanted.get(subject);
    if (each === undefined || this.wanted.get(subject) !== each) return;
    const wasServed = each.isServed;
    each.isServed = true;
    this.#answered(stream, each);
    if (wasServed) return;
    if (!each.isPattern && count === 0 && outcome !== "resync") each.place = at ?? null;
    this.#host.tell(data);
    if (each.isCut) this.#host.tell(gapOf(subject));
    each.isCut = false;
    if (![...this.wanted.values()].some(({ isServed }) => !isServed)) this.#host.settled();
  }

  /**
   * @param {Stream} stream
   * @param {{ subject: string }} reply
   * @param {string} data
   */
  #watching(stream, { subject }, data) {
    const each = stream.watched.get(subject);
    if (each === undefined || this.watched.get(subject) !== each) return;
    if (!each.isServed) this.#host.tell(data);
    each.isServed = true;
    this.#answered(stream, each);
  }

  /**
   * One subscription or watch is refused; the others continue.
   * @param {Stream} stream
   * @param {{ id: number, error: number }} read
   * @param {string} data
   */
  #refused(stream, read, data) {
    const each = stream.find(read.id);
    if (each === undefined) return;
    const isOfStreams = isCodeOfRoom(read.error) && isRoomPossible(this.#tries);
    if (isOfStreams) stream.isShort = true; // the one that was left may have been counted still
    else if (this.#forget(each)) {
      const { id: _, ...error } = JSON.parse(data);
      this.#host.tell(each.isServed ? JSON.stringify({ ended: each.selector, ...error }) : data);
    }
    this.#answered(stream, each);
  }

  /**
   * @param {Stream} stream
   * @param {Wanted | Watched} each
   */
  #answered(stream, each) {
    stream.unanswered.delete(each);
    if (stream.unanswered.size > 0 || stream.isShort) return;
    [this.#isAlone, this.#tries] = [false, 0];
  }

  /** Request all again, without an old stream. */
  async #makeRoom() {
    this.#isAlone = true;
    this.stop();
    if (await waitForRoom(this.#tries++)) this.change();
  }

  /**
   * Everything up to a resume token has come.
   * @param {Stream} stream
   * @param {string | null} resumeToken
   * @param {boolean} isAsked
   */
  #resumeToken(stream, resumeToken, isAsked) {
    if (resumeToken === null) return;
    const now = this.#host.now();
    const isTold = isAsked || now - this.#markedAt >= RESUME_TOKEN_MS;
    if (isTold) this.#markedAt = now;
    for (const each of stream.wanted.values()) {
      if (!each.isPattern || !this.#isCurrent(each)) continue;
      if (isTold || each.place === null) this.#host.tell(JSON.stringify({ resume_token: resumeToken, pattern: each.selector }));
      each.place = resumeToken;
    }
  }
}
