// A link over HTTP: takes and gives frames of the JSON encoding, as a WebSocket does. Publishes are sent by POST; messages arrive
// by Server-Sent Events or by long poll, which is the only difference between the two transports.
//
// It knows the session's subscriptions, because each request names them all. Any request that fails, or that stays silent for too
// long, ends the link: the session knows all positions, and resumes. Other requests that are answered do not prove that this one
// is alive: each may have its own connection, and one of them may be dead.

import { after } from "../../signal.js";
import { CODES, Code } from "../../codes.js";
import { elementsOf } from "../../codec/source.js";
import { SEND_BUFFER_BYTES_MAX, SILENT } from "../transport.js";
import { httpAddress, reasonOf } from "./address.js";
import { Refused, refusedOf } from "./answer.js";
import { EventTooBig } from "./events.js";
import { Polling } from "./polling.js";
import { PollSize } from "./poll_size.js";
import { Poster } from "./poster.js";
import { TabPacing } from "./tab_pacing.js";
import { Streaming } from "./streaming.js";
import { Watched } from "./watched.js";
import { Wanted, isRoomFor } from "./wanted.js";

/** @typedef {import("../transport.js").Link} Link */
/** @typedef {import("../transport.js").LinkEnd} LinkEnd */
/** @typedef {import("../transport.js").LinkEvents} LinkEvents */
/** @typedef {import("../transport.js").LinkOptions} LinkOptions */
/** @typedef {import("./answer.js").Answer} Answer */
/** @typedef {import("./answer.js").Ask} Ask */
/** @typedef {import("./answer.js").Request} Request */
/** @typedef {HttpLink} Host what the parts of a link see of it */
/** @typedef {import("./tab_pacing.js").Page} Page */
/** @typedef {{ ask: Ask, now: () => number, newPage?: () => Page, whenHidden?: "poll" | "stay" | undefined }} HttpMeans */

const BY_POLL = "and this client is connected by long poll";
const POLLS_MAX = 2; // a browser allows six connections to one place

/**
 * @param {"sse" | "poll"} way
 * @param {HttpMeans} means
 * @returns {import("../transport.js").Transport}
 */
export function httpTransport(way, means) {
  const pollSize = new PollSize();
  return (url, options, events) => new HttpLink(httpAddress(url) ?? "", way, options, events, means, pollSize);
}

/** @implements {Link} */
export class HttpLink {
  isEnded = false;
  isPaused = false;
  frameBytesMax;
  streamTimeoutMs;
  pingIntervalMs;
  now;
  pollSize;
  #base;
  #way;
  #silenceMs;
  #events;
  #ask;
  /** @type {string | null} */
  #token = null;
  /** @type {Map<string, Wanted>} */
  #wanted = new Map();
  /** @type {Map<string, Watched>} */
  #watched = new Map();
  /** @type {(Streaming | Polling)[]} */
  #streams = [];
  #pacing;
  #poster = new Poster(this);
  #ending = new AbortController();
  #hasWorked = false; // something has come by a stream or poll
  /** @type {Set<ReturnType<typeof after>>} of what is awaited */
  #timers = new Set();
  #resume = () => {};
  /** @type {Promise<void>} */
  #resumed = Promise.resolve();

  /**
   * @param {string} base
   * @param {"sse" | "poll"} way
   * @param {LinkOptions} options
   * @param {LinkEvents} events
   * @param {HttpMeans} means
   * @param {PollSize} pollSize
   */
  constructor(base, way, options, events, { ask, now, newPage, whenHidden = "poll" }, pollSize) {
    const { frameBytesMax, streamTimeoutMs = 5_000, pingIntervalMs = 25_000, silenceMs = 40_000 } = options;
    this.frameBytesMax = frameBytesMax;
    this.streamTimeoutMs = streamTimeoutMs;
    this.pingIntervalMs = pingIntervalMs;
    this.#silenceMs = silenceMs;
    this.now = now;
    this.pollSize = pollSize;
    this.#base = base;
    this.#way = way;
    this.#events = events;
    this.#ask = ask;
    this.#pacing = new TabPacing(base, newPage?.(), whenHidden, () => this.#streams.forEach((stream) => stream.paced()));
    this.#poster.isHeld = () => [...this.#wanted.values()].some(({ isServed }) => !isServed);
    queueMicrotask(() => this.isEnded || events.opened()); // there is nothing to open
  }

  /** @param {string | Uint8Array} frame */
  send(frame) {
    for (const text of elementsOf(String(frame))) this.#take(text);
    return this.#poster.characters < SEND_BUFFER_BYTES_MAX;
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  close(code, reason) {
    this.end({ code, reason });
  }

  abort() {
    this.end({ code: null, reason: "aborted" });
  }

  pause() {
    if (this.isPaused) return;
    this.isPaused = true;
    this.#resumed = new Promise((resolve) => (this.#resume = resolve));
  }

  resume() {
    this.isPaused = false;
    this.#resume();
  }

  // What its parts use

  /**
   * Ask with this client's token; throws Refused, or what fetch throws.
   * @param {string} path
   * @param {Request} [request]
   * @returns {Promise<Answer>}
   */
  async ask(path, request = {}) {
    /** @type {Record<string, string>} */
    const headers = {};
    if (request.body !== undefined) headers["Content-Type"] = "application/json";
    if (this.#token !== null) headers["Authorization"] = `Bearer ${this.#token}`;
    const answer = await this.soon(this.#ask(this.#base + path, { signal: this.#ending.signal, ...request, headers }));
    if (answer.status !== 200) throw refusedOf(answer, await this.read(answer));
    return answer;
  }

  /**
   * The whole body of an answer, however long it takes, as long as it comes.
   * @param {Answer} answer
   */
  async read({ body }) {
    const decoder = new TextDecoder();
    const chunks = body?.getReader();
    let text = "";
    while (chunks !== undefined) {
      const { value, done } = await this.soon(chunks.read());
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    return text + decoder.decode();
  }

  /**
   * Wait for the network, but not forever: fails after a long silence.
   * @template T
   * @param {Promise<T>} awaited
   * @param {() => void} [silent] called instead of failing; then it waits again
   * @returns {Promise<T>}
   */
  soon(awaited, silent) {
    return new Promise((resolve, reject) => {
      const timer = after(this.#silenceMs, silent ?? (() => reject(new Error(SILENT))));
      this.#timers.add(timer);
      const settled = () => {
        clearTimeout(timer);
        this.#timers.delete(timer);
      };
      awaited.then(resolve, reject).then(settled);
    });
  }

  /** @param {string} frame */
  tell(frame) {
    if (!this.isEnded) this.#events.frame(frame);
  }

  /** How long a connection may be had at a time; null: for as long as it lasts. */
  get pace() {
    return this.#pacing.pace;
  }

  /** A publish gets no answer: this client's stream may occupy the browser connection that it needs. */
  letGo() {
    for (const stream of this.#streams) stream.letGo();
  }

  takeUp() {
    for (const stream of this.#streams) stream.takeUp();
  }

  /** Publishes were answered. */
  sent() {
    if (!this.isEnded && this.#poster.characters < SEND_BUFFER_BYTES_MAX) this.#events.drained();
  }

  /** Every subscription has its answer. */
  settled() {
    this.#poster.stir();
  }

  worked() {
    this.#hasWorked = true;
  }

  resumed() {
    return this.#resumed;
  }

  /**
   * A subscription or a watch was refused, or ended by the node.
   * @param {Wanted | Watched} gone
   */
  forget(gone) {
    if (this.#wanted.get(gone.selector) === gone) this.#wanted.delete(gone.selector);
    if (this.#watched.get(gone.selector) === gone) this.#watched.delete(gone.selector);
    this.settled();
  }

  /**
   * @param {unknown} error
   * @param {boolean} [isLate] nothing came where something was due
   */
  fail(error, isLate = false) {
    if (error instanceof Refused) this.end(error.end);
    else if (error instanceof EventTooBig) this.end({ code: null, reason: reasonOf(error), isTooLarge: true });
    else if (this.#hasWorked && error instanceof SyntaxError) this.end({ code: null, reason: reasonOf(error), isInvalid: true });
    else this.end({ code: null, reason: reasonOf(error), isUnusable: isLate && !this.#hasWorked });
  }

  /** @param {LinkEnd} end */
  end(end) {
    if (this.isEnded) return;
    this.isEnded = true;
    for (const stream of this.#streams) stream.stop();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#pacing.leave();
    this.#poster.stop();
    this.#ending.abort();
    this.resume();
    queueMicrotask(() => this.#events.closed(end));
  }

  // Commands

  /** @param {string} text */
  #take(text) {
    const command = JSON.parse(text);
    const { id } = command;
    if ("publish" in command) this.#poster.push(id, text);
    else if ("subscribe" in command) this.#subscribe(new Wanted(command));
    else if ("unsubscribe" in command) this.#unsubscribe(id, command.unsubscribe);
    else if ("connect" in command) {
      this.#token = command.connect.token ?? null;
      this.#prove({ id, ok: "connected", publisher: false, ping_interval_ms: this.#silenceMs });
    } else if ("ping" in command) this.#prove({ id, ok: "pong" });
    else if ("unwatch" in command) this.#unwatch(id, command.unwatch);
    else if ("watch" in command && this.#way === "sse") this.#watch(new Watched(command));
    else this.#refuse(id, Code.CommandUnknown, `${"watch" in command ? "watch" : "this"} needs a WebSocket or events, ${BY_POLL}`);
  }

  /**
   * @param {number} id
   * @param {number} error
   * @param {string} reason
   */
  #refuse(id, error, reason) {
    const name = CODES.get(error)?.name;
    queueMicrotask(() => this.tell(JSON.stringify({ id, error, name, reason, retry: false })));
  }

  /** @param {Watched} watched */
  #watch(watched) {
    const stream = /** @type {Streaming} */ (this.#theStream());
    this.#watched.set(watched.selector, watched);
    stream.watched.set(watched.selector, watched);
    stream.change();
  }

  /**
   * @param {number} id
   * @param {string} selector
   */
  #unwatch(id, selector) {
    this.#withdraw(this.#watched.get(selector), "unwatched");
    this.#watched.delete(selector);
    for (const stream of this.#streams) if (stream instanceof Streaming && stream.watched.delete(selector)) stream.change();
    this.#confirm(id, "unwatched", selector);
  }

  /** The one stream of events that carries everything. */
  #theStream() {
    if (this.#streams.length === 0) this.#streams.push(new Streaming(this));
    return this.#streams[0];
  }

  /**
   * The transport of a subscription; undefined without one.
   * @param {Wanted} wanted
   */
  #streamFor(wanted) {
    if (this.#way === "sse") return this.#theStream();
    const found = this.#streams.find(({ wanted: others }) => {
      const [first = wanted] = others.values();
      return first.groupKey === wanted.groupKey && isRoomFor([...others.values(), wanted]);
    });
    if (found === undefined && this.#streams.length < POLLS_MAX) this.#streams.push(new Polling(this));
    return found ?? this.#streams.find(({ wanted: others }) => others.size === 0);
  }

  /**
   * Show that the node takes publishes of this token, and, where there are streams, that they live.
   * @param {{ id: number } & Record<string, unknown>} reply
   */
  async #prove(reply) {
    try {
      const answer = await this.ask("/v1/messages", { method: "POST", body: "[]" });
      if ((await this.read(answer)).trim() !== "[]") throw new Error("the server is not a Godwit node");
      this.tell(JSON.stringify(reply));
      for (const stream of this.#streams) stream.renew();
    } catch (error) {
      if (error instanceof Refused && error.isOfHead) this.tell(error.toPush(reply.id)); // as a WebSocket refuses the command
      else this.fail(error);
    }
  }

  /** @param {Wanted} wanted */
  #subscribe(wanted) {
    this.#leave(wanted.selector);
    if (this.#way === "poll" && wanted.command.conflate_ms) {
      this.#refuse(wanted.id, Code.FieldInvalid, `conflation needs a WebSocket or events, ${BY_POLL}`);
      return;
    }
    const stream = this.#streamFor(wanted);
    if (stream === undefined) {
      this.#refuse(wanted.id, Code.SubscriptionsTooMany, "the two requests of a long poll have no room for one more subscription: close another");
      return;
    }
    this.#wanted.set(wanted.selector, wanted);
    stream.wanted.set(wanted.selector, wanted);
    stream.change();
  }

  /**
   * @param {number} id
   * @param {string} selector
   */
  #unsubscribe(id, selector) {
    this.#leave(selector);
    this.#confirm(id, "unsubscribed", selector);
    this.settled();
  }

  /**
   * Answer the command of a subscription or watch that is closed before the node answered it: the session keeps each until then.
   * @param {Wanted | Watched | undefined} left
   * @param {string} ok
   */
  #withdraw(left, ok) {
    if (left !== undefined && !left.isServed) this.#confirm(left.id, ok, left.selector);
  }

  /**
   * @param {number} id
   * @param {string} ok
   * @param {string} subject
   */
  #confirm(id, ok, subject) {
    queueMicrotask(() => this.tell(JSON.stringify({ id, ok, subject })));
  }

  /** @param {string} selector */
  #leave(selector) {
    this.#withdraw(this.#wanted.get(selector), "unsubscribed");
    if (!this.#wanted.delete(selector)) return;
    for (const stream of this.#streams) if (stream.wanted.delete(selector)) stream.change();
  }
}
