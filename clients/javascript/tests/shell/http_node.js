// A node over HTTP in memory, and a clock that a test moves, so that minutes of waiting pass at once. It shows a client what the
// network can: requests that are swallowed, streams that fall silent, answers that stop in the middle, a node that leaves.

import { mock } from "node:test";

import { Client } from "../../src/client.js";
import { isPattern, matches } from "../../src/subject.js";
import { logOf } from "./opening.js";

const STEP_MS = 50;
const TURNS = 4; // of the event loop, in which everything that can happen at one moment has happened
const PING_MS = 25_000;
const STREAM = "POST /v1/stream";
let addresses = 0; // what worked for one is remembered
const encoder = new TextEncoder();

/** @typedef {"broken" | "swallowed" | "headless" | "torn" | "full"} Harm reset, never answered, answered with a head alone, then broken, or refused */

export class HttpNode {
  asked = []; // "POST /v1/stream", in order
  isDown = false;
  isDraining = false;
  isSocketMute = false; // a WebSocket is taken up and never answered; else it is refused
  keepsResumeTokens = false; // joins of patterns do not come to their end
  /** @type {(request: string) => Harm | undefined} what becomes of a request */
  harm = () => undefined;
  #feed = [];
  #keys = new Map();
  #open = new Set(); // streams, and requests that wait

  append(subject, content) {
    const at = `7.${1 + this.#feed.filter((each) => each.subject === subject).length}`;
    this.#feed.push({ subject, content, at });
    for (const each of [...this.#open]) each.look?.();
    return at;
  }

  /** Open connections carry nothing any more, and no side is notified. */
  silence(isIt = () => true) {
    for (const each of this.#open) if (isIt(each.request)) each.isSilent = true;
  }

  /** All is well for what is asked from now on. */
  heal() {
    this.harm = () => undefined;
    this.isDown = this.isDraining = this.isSocketMute = this.keepsResumeTokens = false;
  }

  /** How many messages a selector has. */
  countOf(selector) {
    return this.#feed.filter(({ subject }) => matches(selector, subject)).length;
  }

  /** What is open now ends. */
  cut() {
    for (const each of [...this.#open]) each.fail(new TypeError("terminated"));
  }

  /** @type {import("../../src/transport/http/answer.js").Ask} */
  ask = (url, { method = "GET", body, signal }) =>
    new Promise((resolve, reject) => {
      const { pathname, searchParams } = new URL(url);
      const request = `${method} ${pathname}`;
      this.asked.push(request);
      const waiting = { request, isSilent: false, look: null, fail: null };
      this.#open.add(waiting);
      waiting.fail = (error) => {
        this.#open.delete(waiting);
        reject(error);
      };
      const answer = (given) => {
        if (waiting.isSilent) return;
        if (request !== STREAM) this.#open.delete(waiting);
        resolve(given);
      };
      signal?.addEventListener("abort", () => waiting.fail(signal.reason));
      const harm = this.harm(request);
      if (signal?.aborted) waiting.fail(signal.reason);
      else if (this.isDown) waiting.fail(new TypeError("fetch failed"));
      else if (harm === "swallowed") return;
      else if (harm === "broken") waiting.fail(new TypeError("fetch failed"));
      else if (this.isDraining && (method === "POST" || pathname === "/v1/stream")) answer(problem(503, 4124, "NodeDraining"));
      else if (harm === "full") answer(problem(429, 4112, "SubscriptionsTooMany"));
      else if (harm === "headless" || harm === "torn") {
        answer(new Response(this.#body(waiting).stream, { status: 200, headers: headersOf(pathname) }));
        if (harm === "torn") setTimeout(() => waiting.fail(new TypeError("terminated")), 10);
      }
      else if (request === STREAM) this.#stream(waiting, commandsOf(body), answer);
      else if (method === "POST") answer(json(this.#publish(JSON.parse(body))));
      else if (method === "HEAD") answer(new Response(null, { status: 200, headers: headersOf(pathname) }));
      else this.#poll(waiting, wishesOf(searchParams), Number(searchParams.get("wait")), answer);
    });

  #publish(commands) {
    return commands.map(({ id, publish, content, key }) => {
      const name = key ?? `${id}`;
      if (!this.#keys.has(name)) this.#keys.set(name, this.append(publish, content));
      return { id, ok: "published", at: this.#keys.get(name) };
    });
  }

  #body(waiting) {
    let to;
    const stream = new ReadableStream({ start: (controller) => (to = controller) });
    const put = (text) => waiting.isSilent || to.enqueue(encoder.encode(text));
    waiting.fail = (error) => {
      this.#open.delete(waiting);
      to.error(error);
    };
    return { stream, put };
  }

  #stream(waiting, wishes, answer) {
    const { stream, put } = this.#body(waiting);
    const isMany = wishes.length > 1 || isPattern(wishes[0].subject);
    let place = Math.min(...wishes.map((wish) => this.#placeOf(wish)));
    for (const wish of wishes) {
      const count = this.#after(wish, this.#placeOf(wish)).length;
      const at = isPattern(wish.subject) ? {} : { at: `7.${this.countOf(wish.subject)}`, count };
      put(`event: subscribed\ndata: ${JSON.stringify({ id: wish.id, ok: "subscribed", subject: wish.subject, outcome: "recovered", ...at })}\n\n`);
    }
    waiting.look = () => {
      for (; place < this.#feed.length; place++) {
        const { subject, content, at } = this.#feed[place];
        for (const wish of wishes) {
          if (!matches(wish.subject, subject) || place < this.#placeOf(wish)) continue;
          const id = isMany ? (this.keepsResumeTokens ? "" : `id: 1.${place + 1}.0.d\n`) : `id: ${at}\n`;
          const pattern = isPattern(wish.subject) ? { pattern: wish.subject } : {};
          put(`${id}data: ${textOf({ message: subject, at, time: 1, content, ...pattern })}\n\n`);
        }
      }
    };
    waiting.look();
    if (isMany && !this.keepsResumeTokens) put(`event: resume_token\nid: 1.${place}.0.d\ndata: {"resume_token":"1.${place}.0"}\n\n`);
    const live = () => this.#open.has(waiting) && (put(":\n\n"), setTimeout(live, PING_MS));
    setTimeout(live, PING_MS);
    answer(new Response(stream, { status: 200, headers: headersOf("/v1/stream") }));
  }

  #poll(waiting, wishes, waitS, answer) {
    const look = (isOver) => {
      const found = wishes.flatMap((wish) => this.#after(wish, this.#placeOf(wish)));
      if (found.length === 0 && !isOver) return;
      const [{ subject }] = wishes;
      const isMany = wishes.length > 1 || isPattern(subject);
      const place = isMany ? `1.${this.#feed.length}.0.d` : `7.${this.countOf(subject)}`;
      answer(json(found, { "godwit-position": place }));
    };
    waiting.look = () => look(false);
    look(waitS === 0);
    setTimeout(() => look(true), waitS * 1000);
  }

  /** The arrival from which on this is wanted. */
  #placeOf({ subject, after, since }) {
    if (since !== undefined) return Number(since.split(".")[1]);
    if (typeof after !== "string") return 0; // of a pattern's positions by subject the client drops what comes again
    return 1 + this.#feed.findIndex((each) => each.subject === subject && each.at === after);
  }

  #after(wish, place) {
    const pattern = isPattern(wish.subject) ? { pattern: wish.subject } : {};
    return this.#feed
      .filter(({ subject }, index) => index >= place && matches(wish.subject, subject))
      .map(({ subject, at, content }) => ({ message: subject, at, time: 1, content, ...pattern }));
  }
}

/** What the commands of a stream ask for. */
const commandsOf = (body) => JSON.parse(body).map(({ id, subscribe, after, since }) => ({ id, subject: subscribe, after, since }));

/** What a query asks for: each subject with its positions. */
function wishesOf(parameters) {
  const wishes = [];
  for (const [name, value] of parameters) {
    if (name === "subject") wishes.push({ subject: value });
    else if (name === "after" || name === "since") wishes.at(-1)[name] = value;
  }
  return wishes;
}

const headersOf = (path) => (path === "/v1/stream" ? { "content-type": "text/event-stream" } : { "godwit-position": "7.0" });
export const POISON = "a message that cannot be read";
const textOf = (value) => JSON.stringify(value).replaceAll(JSON.stringify(POISON), "{");
const json = (value, headers = {}) => new Response(textOf(value), { status: 200, headers });

function problem(status, code, title) {
  const body = JSON.stringify({ title, status, detail: "because", code, retry: true });
  return new Response(body, { status, headers: { "retry-after": "1" } });
}

/** A clock that the test advances; timers depend on it. */
export class Clock {
  now = 0;

  constructor() {
    mock.timers.enable({ apis: ["setTimeout"] });
  }

  /** Let time pass until something is so; false where it is not within `ms`. */
  async until(isSo, ms) {
    const end = this.now + ms;
    for (;;) {
      for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (isSo()) return true;
      if (this.now >= end) return false;
      this.now += STEP_MS;
      mock.timers.tick(STEP_MS);
    }
  }

  stop() {
    mock.timers.reset();
  }
}

/** A client of this node by one of the ways over HTTP. */
export function openOverHttp(node, clock, transport, settings = {}) {
  const platform = {
    open: (url, options, events) => {
      let end = () => {
        end = () => {};
        queueMicrotask(() => events.closed({ code: null, reason: "a WebSocket is nothing here" }));
      };
      if (!node.isSocketMute) end();
      return { send: () => true, close: () => end(), abort: () => end() };
    },
    ask: node.ask,
    now: () => clock.now,
    randomText: () => "0123456789abcdef",
    watchPage: () => () => {},
  };
  return new Client(`ws://n${++addresses}:1`, { transport, settings, log: logOf([]) }, platform);
}
