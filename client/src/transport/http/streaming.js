// Server-Sent Events: one stream for all subscriptions that are served alike. To change what it carries another is opened at the
// last places, so that no node has to remember anything meanwhile. Where something joins, the old one is held until the new
// one is there, unread, so that nothing comes twice: it goes on as if nothing had been when the new one is refused.
//
// A subscription is in the stream with which it was last asked for; what an older stream still says of it counts no more.

import { after } from "../../bell.js";
import { BROKE, SILENT } from "../transport.js";
import { Refused } from "./answer.js";
import { EventReader } from "./events.js";
import { hasRoom, isOfRoom, mayShare, waitForRoom } from "./room.js";
import { gapOf, resumeTokenOf, queryOf } from "./wanted.js";

/** @typedef {import("./events.js").StreamEvent} StreamEvent */
/** @typedef {import("./http_link.js").Host} Host */
/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {{ wanted: Map<string, Wanted>, ending: AbortController, hasBegun: boolean, isOver: boolean }} Stream */

const RESUME_TOKEN_MS = 1_000; // between two resume tokens told, where nothing asks for one sooner
const HOLD_MS_MAX = 1_000; // then the new one is perhaps waiting for the old one's place among a browser's connections

export class Streaming {
  /** @type {Map<string, Wanted>} */
  wanted = new Map();
  #host;
  /** @type {Stream | null} */
  #stream = null;
  /** @type {Stream | null} it waits for what becomes of the one that is being opened */
  #held = null;
  #release = () => {};
  /** @type {Promise<void>} */
  #released = Promise.resolve();
  #isDue = false;
  #isDoubted = false; // nobody knows whether it lives
  #isOneByOne = false; // several were refused: which of them?
  #markedAt = -Infinity;

  /** @param {Host} host */
  constructor(host) {
    this.#host = host;
  }

  /** Subscriptions came or went. */
  change() {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => this.#refresh());
  }

  /** Open it anew, because nobody knows whether it lives. */
  renew() {
    this.#isDoubted = true;
    this.change();
  }

  stop() {
    this.#stream?.ending.abort();
    this.#stream = null;
    this.#letGo();
  }

  #refresh() {
    if (!this.#isDue || this.#host.isEnded) return;
    if (this.#isJoining) return;
    if (this.#stream !== null && !this.#stream.hasBegun && this.#isStillWanted(this.#stream)) return;
    this.#isDue = false;
    const { served, first, others } = this.#sorted();
    if (first.length > 0 && !this.#isDoubted) this.#hold();
    else this.stop();
    this.#isDoubted = false;
    if (others) this.#isDue = true; // when these have joined
    if (served.length + first.length > 0) this.#open([...served, ...first]);
  }

  /** Something was served from no place, and has none yet. */
  get #isJoining() {
    return [...this.wanted.values()].some((each) => each.isServed && each.place === null);
  }

  /** Keep what is read until the next one is there. */
  #hold() {
    const stream = this.#stream;
    this.#stream = null;
    if (!stream?.hasBegun) {
      stream?.ending.abort(); // it was being opened, beside one that is held or alone
      return;
    }
    this.#held = stream;
    this.#released = new Promise((resolve) => (this.#release = resolve));
  }

  /** The one that was held is not needed. */
  #letGo() {
    this.#held?.ending.abort();
    this.#held = null;
    this.#release();
  }

  /** Read on where a stream was held; false: there is none, or not one for what is wanted. */
  #goBack() {
    const held = this.#held;
    this.#held = null;
    this.#stream = held?.isOver ? null : held;
    this.#release();
    return this.#stream !== null && this.#stream.wanted.size === this.wanted.size && this.#isStillWanted(this.#stream);
  }

  /** @param {Stream} stream */
  #isStillWanted({ wanted }) {
    return [...wanted].every(([selector, each]) => this.wanted.get(selector) === each);
  }

  /** Those that go on, those that can join with them now, and whether there are others. */
  #sorted() {
    const all = [...this.wanted.values()];
    const served = all.filter(({ isServed }) => isServed);
    const fresh = all.filter(({ isServed }) => !isServed);
    let first = fresh.filter(({ joinKey }) => joinKey === fresh[0]?.joinKey);
    if (this.#isOneByOne) first = first.slice(0, 1);
    return { served, first, others: first.length < fresh.length };
  }

  /**
   * @param {Wanted[]} wanted
   * @param {number} [tries] how often there was no room
   */
  async #open(wanted, tries = 0) {
    const ending = new AbortController();
    /** @type {Stream} */
    const stream = { wanted: new Map(wanted.map((each) => [each.selector, each])), ending, hasBegun: false, isOver: false };
    this.#stream = stream;
    const timer = after(this.#host.streamTimeoutMs, () => this.#late(stream));
    const patience = setTimeout(() => this.#stream === stream && this.#letGo(), HOLD_MS_MAX);
    try {
      const answer = await this.#host.ask(`/v1/stream?${pathOf(wanted)}&frame_bytes_max=${this.#host.frameBytesMax}`, { signal: ending.signal });
      clearTimeout(patience);
      if (this.#stream !== stream) return;
      this.#letGo();
      const isEvents = answer.headers.get("content-type")?.startsWith("text/event-stream");
      if (!isEvents || answer.body === null) throw new Error("the stream is no stream of events");
      await this.#read(stream, answer.body);
      throw new Error(BROKE);
    } catch (error) {
      stream.isOver = true;
      clearTimeout(timer);
      clearTimeout(patience);
      if (this.#stream !== stream) return;
      if (isOfRoom(error) && (await this.#tryAgain(error, stream, tries))) return;
      if (this.#stream !== stream) return;
      if (error instanceof Refused && error.isOfCommand) this.#refused(error, wanted);
      else this.#host.fail(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * There was no room: perhaps only because the one that is being left still counts. False: there is none.
   * @param {Refused} refusal
   * @param {Stream} stream
   * @param {number} tries
   */
  async #tryAgain(refusal, stream, tries) {
    const wanted = [...stream.wanted.values()];
    if (this.#held !== null) {
      const fresh = wanted.filter(({ isServed }) => !isServed);
      if (refusal.isOfCommand) {
        if (fresh.length > 1) return false; // first which of them
        if (!(await mayShare(this.#host, pathOf(wanted))) || !(await hasRoom(this.#host, pathOf(fresh)))) return false;
      }
      if (this.#stream === stream) this.#letGo();
    } else if (!(await waitForRoom(tries))) return false;
    if (this.#stream === stream) this.#open(wanted, tries + 1);
    return true;
  }

  /**
   * Nothing came: somebody between keeps events back.
   * @param {Stream} stream
   */
  #late(stream) {
    if (this.#stream === stream && !stream.hasBegun) this.#host.fail(new Error("nothing came by the stream in time"), true);
  }

  /**
   * Nothing came for long, though a node says something now and then: it is dead, whatever comes by others.
   * @param {Stream} stream
   */
  #doubt(stream) {
    if (this.#held === stream) stream.ending.abort(); // it is not gone back to
    else if (this.#stream !== stream) return;
    else if (this.#isJoining) this.#host.fail(new Error(SILENT)); // to ask anew, places are needed
    else this.renew();
  }

  /**
   * @param {Refused} refusal
   * @param {Wanted[]} wanted
   */
  #refused(refusal, wanted) {
    const fresh = wanted.filter(({ isServed }) => !isServed);
    const [only] = fresh;
    if (only === undefined) {
      this.#host.fail(refusal);
      return;
    }
    if (fresh.length === 1) {
      this.wanted.delete(only.selector);
      this.#host.forget(only);
      this.#host.tell(refusal.told(only.id));
    } else {
      this.#isOneByOne = true;
    }
    this.#isDue = false; // it may have been due when these have joined, which they never will
    if (!this.#goBack()) this.change();
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
    }
    if (data === null) {
      this.#host.tell("[]"); // it lives
      return;
    }
    const read = JSON.parse(data);
    if (type === "subscribed") this.#subscribed(stream, read, data);
    else if (type === "closed") {
      const afterMs = read.reconnect_after_ms;
      const reason = afterMs === undefined ? String(read.reason ?? "") : JSON.stringify({ reconnect_after_ms: afterMs });
      this.#host.end({ code: typeof read.closed === "number" ? read.closed : null, reason });
      return;
    } else if (type !== "resume_token") {
      const each = stream.wanted.get(read.pattern ?? read.message ?? read.gap ?? read.ended ?? read.dropped);
      if (type === "ended" && each) this.#ended(each);
      if (type !== "notice" && !(each && this.#isCurrent(each))) return;
      this.#host.tell(data);
      if (type !== "ended") each?.passed(read);
    }
    this.#resumeToken(stream, resumeTokenOf(id), type === "resume_token");
    if (this.#isDue) this.#refresh();
  }

  /** @param {Wanted} each */
  #isCurrent(each) {
    return each.isServed && this.wanted.get(each.selector) === each;
  }

  /** @param {Wanted} each */
  #ended(each) {
    if (this.wanted.get(each.selector) !== each) return;
    queueMicrotask(() => this.#host.forget(each));
    queueMicrotask(() => this.wanted.get(each.selector) === each && this.wanted.delete(each.selector));
  }

  /**
   * @param {Stream} stream
   * @param {{ subject: string, at?: string, outcome: string, count?: number }} reply
   * @param {string} data
   */
  #subscribed(stream, { subject, at, outcome, count }, data) {
    const each = stream.wanted.get(subject);
    if (each === undefined || each.isServed || this.wanted.get(subject) !== each) return;
    each.isServed = true;
    if (!each.isPattern && count === 0 && outcome !== "resync") each.place = at ?? null;
    this.#host.tell(`{"id":${each.id},${data.slice(data.indexOf("{") + 1)}`);
    if (each.isCut) this.#host.tell(gapOf(subject));
    each.isCut = false;
    if (![...this.wanted.values()].some(({ isServed }) => !isServed)) {
      this.#isOneByOne = false;
      this.#host.settled();
    }
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

/**
 * The query of a stream: how those begin that join it.
 * @param {Wanted[]} wanted
 */
function pathOf(wanted) {
  const { last, snapshot } = wanted.find(({ isServed }) => !isServed)?.command ?? {};
  const conflateMs = wanted[0]?.command.conflate_ms;
  return [
    queryOf(wanted),
    ...(last === undefined ? [] : [`last=${last}`]),
    ...(snapshot === undefined ? [] : [`snapshot=${snapshot}`]),
    ...(conflateMs === undefined ? [] : [`conflate_ms=${conflateMs}`]),
  ].join("&");
}
