// Long poll: one request after the other, each from the positions where the one before ended. For clients behind a proxy that
// buffers events.
//
// A subscription joins by its own request, in parallel with the one that waits: its answer has the position. From then on one
// request waits for all of them. Standard messages arrive only while a request waits.

import { Refused } from "./answer.js";
import { isOfRoom, mayShare, waitForRoom } from "./room.js";
import { gapOf, resumeTokenOf, queryOf } from "./wanted.js";

/** @typedef {import("./http_link.js").Host} Host */
/** @typedef {import("./wanted.js").Push} Push */
/** @typedef {import("./wanted.js").Wanted} Wanted */

const WAIT_S_MAX = 25; // below what those between commonly allow
const PATIENCE_MS_MAX = 1_000; // then a join perhaps waits for the connection of the request that waits

export class Polling {
  /** @type {Map<string, Wanted>} */
  wanted = new Map();
  #host;
  #isRunning = false;
  #isJoining = false;
  #isStopped = false;
  #tries = 0; // how often there was no room
  /** @type {Set<Wanted>} served, and not yet by a request for all */
  #joined = new Set();
  /** @type {AbortController | null} of the request that waits */
  #waiting = null;
  /** @type {Wanted[]} the subscriptions that it serves */
  #polled = [];
  #rested = () => {};
  /** @type {Promise<void> | null} it waits for no message now */
  #resting = null;

  /** @param {Host} host */
  constructor(host) {
    this.#host = host;
  }

  /** Subscriptions came or went. */
  change() {
    if (this.#polled.some((each) => this.wanted.get(each.selector) !== each)) this.#waiting?.abort();
    if (this.#fresh() !== undefined && !this.#isJoining) this.#joinAll();
  }

  renew() {} // each request is waited for so long only

  /** Connections are scarce now, or no more. */
  paced() {
    this.takeUp();
  }

  /** A publish gets no answer: perhaps it waits for this request's browser connection. */
  letGo() {
    this.#rest();
    this.#waiting?.abort();
  }

  takeUp() {
    this.#rested();
    this.#resting = null;
  }

  stop() {
    this.#isStopped = true;
    this.#waiting?.abort();
    this.takeUp();
  }

  /** @param {number} [restMs] not for ever */
  #rest(restMs) {
    if (this.#resting !== null) return;
    this.#resting = new Promise((resolve) => (this.#rested = resolve));
    if (restMs === undefined) return;
    const timer = setTimeout(() => this.takeUp(), restMs);
    this.#resting.then(() => clearTimeout(timer));
  }

  #fresh() {
    return [...this.wanted.values()].find(({ isServed }) => !isServed);
  }

  #served() {
    return [...this.wanted.values()].filter(({ isServed }) => isServed);
  }

  async #joinAll() {
    this.#isJoining = true;
    await Promise.resolve();
    const patience = setInterval(() => this.#waiting?.abort(), PATIENCE_MS_MAX);
    try {
      for (let each = this.#fresh(); each && !this.#isStopped && !this.#host.isEnded; each = this.#fresh()) {
        while (this.#host.isPaused) await this.#host.resumed();
        await this.#join(each);
      }
    } catch (error) {
      this.#host.fail(error);
    }
    clearInterval(patience);
    this.#isJoining = false;
    if (this.#joined.size > 0) this.#waiting?.abort();
    if (!this.#isRunning) this.#run();
  }

  async #run() {
    this.#isRunning = true;
    try {
      while (this.#served().length > 0 && !this.#isStopped && !this.#host.isEnded) {
        if (this.#host.isPaused) await this.#host.resumed();
        else if (this.#resting !== null) await this.#resting;
        else await this.#poll(this.#served());
      }
    } catch (error) {
      this.#host.fail(error);
    }
    this.#isRunning = false;
  }

  /** @param {Wanted} each */
  async #join(each) {
    const { last, snapshot } = each.command;
    const begin = last !== undefined ? `last=${last}` : snapshot === false ? "snapshot=false&last=0" : "snapshot=true";
    try {
      const { text, place } = await this.#ask(`${queryOf([each])}&${begin}&wait=0`);
      if (this.wanted.get(each.selector) !== each) return; // left meanwhile
      /** @type {Push[]} */
      const pushes = JSON.parse(text);
      const hadPlace = each.place !== null || each.command.after !== undefined;
      each.isServed = true;
      this.#joined.add(each);
      this.#tries = 0;
      each.place = resumeTokenOf(place) ?? place;
      this.#host.tell(JSON.stringify(replyOf(each, pushes, hadPlace)));
      if (each.isCut) this.#host.tell(gapOf(each.selector));
      each.isCut = false;
      this.#host.tell(text);
      if (each.isPattern) this.#host.tell(JSON.stringify({ resume_token: each.place, pattern: each.selector }));
    } catch (error) {
      if (!(error instanceof Refused && error.isOfCommand)) {
        if (isOfRoom(error) && (await waitForRoom(this.#tries++))) return; // it is the next one still
        throw error;
      }
      if (this.wanted.get(each.selector) !== each) return;
      this.wanted.delete(each.selector);
      this.#host.forget(each);
      this.#host.tell(error.toPush(each.id));
    }
    if (this.#fresh() === undefined) this.#host.settled();
  }

  /** @param {Wanted[]} wanted */
  async #poll(wanted) {
    const ending = (this.#waiting = new AbortController());
    this.#polled = wanted;
    const { pace } = this.#host;
    const waitS = pace === null ? Math.min(WAIT_S_MAX, Math.ceil(this.#host.pingIntervalMs / 1000)) : pace.waitS;
    try {
      const { text, place } = await this.#ask(`${queryOf(wanted)}&snapshot=true&wait=${waitS}`, ending.signal);
      if (ending.signal.aborted) return; // asked again from the same places
      this.#tries = 0;
      if (pace !== null && pace.restMs > 0) this.#rest(pace.restMs);
      for (const each of wanted) this.#joined.delete(each);
      const byName = new Map(wanted.map((each) => [each.selector, each]));
      for (const push of /** @type {Push[]} */ (JSON.parse(text))) {
        byName.get(push.pattern ?? push.message ?? push.gap ?? "")?.passed(push);
      }
      this.#host.tell(text);
      const resumeToken = resumeTokenOf(place);
      if (resumeToken === null) return;
      for (const each of wanted.filter(({ isPattern }) => isPattern)) {
        each.place = resumeToken;
        this.#host.tell(JSON.stringify({ resume_token: resumeToken, pattern: each.selector }));
      }
    } catch (error) {
      if (!ending.signal.aborted) await this.#refused(error, wanted);
    } finally {
      this.#waiting = null;
    }
  }

  /**
   * The node has no space for all subscriptions: perhaps only because the request before this one still counts, else the last one is refused.
   * @param {unknown} error
   * @param {Wanted[]} wanted
   */
  async #refused(error, wanted) {
    if (!isOfRoom(error)) throw error;
    const last = wanted.filter((each) => this.#joined.has(each)).pop();
    const isShared = last === undefined || !error.isOfCommand || (await mayShare(this.#host, queryOf(wanted)));
    if (isShared && (await waitForRoom(this.#tries++))) return;
    if (last === undefined) throw error;
    this.#tries = 0;
    this.#joined.delete(last);
    if (this.wanted.get(last.selector) !== last) return;
    this.wanted.delete(last.selector);
    this.#host.forget(last);
    this.#host.tell(error.ended(last.selector));
  }

  /**
   * @param {string} query
   * @param {AbortSignal} [signal]
   */
  async #ask(query, signal) {
    const { pollSize } = this.#host;
    try {
      const answer = await this.#host.ask(`/v1/messages?${query}&limit=${pollSize.limit}&frame_bytes_max=${this.#host.frameBytesMax}`, signal ? { signal } : {});
      const place = answer.headers.get("godwit-position");
      if (place === null) throw new Error("an answer without a place");
      this.#host.worked();
      const text = await this.#host.read(answer);
      pollSize.arrived();
      return { text, place };
    } catch (error) {
      const isOurs = signal?.aborted || this.#host.isEnded;
      if (!isOurs && !(error instanceof Refused)) pollSize.broke(); // also before its head: a proxy may wait for the whole answer
      throw error;
    }
  }
}

/**
 * The reply that a stream would have begun with.
 * @param {Wanted} each
 * @param {Push[]} pushes
 * @param {boolean} hadPlace
 */
function replyOf(each, pushes, hadPlace) {
  const isTooLarge = (/** @type {Push} */ { gap, reason }) => gap !== undefined && reason === "too_large";
  const hasGap = pushes.some((push) => push.gap !== undefined && !isTooLarge(push));
  const count = pushes.filter((push) => (push.message !== undefined && push.at !== undefined) || isTooLarge(push)).length;
  const begun = each.command.last !== undefined ? "history" : "snapshot";
  const outcome = hasGap ? "resync" : hadPlace ? "recovered" : count > 0 ? begun : "live";
  const reply = { id: each.id, ok: "subscribed", subject: each.selector, outcome };
  return each.isPattern || hasGap ? reply : { ...reply, at: each.place, count };
}
