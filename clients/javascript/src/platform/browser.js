// The browser: its WebSocket as a transport, its fetch, and the page's life. The only file that touches a browser's globals.
//
// A browser's WebSocket cannot stop reading, so this link has no `pause`: the session unsubscribes a slow subscription instead
// and resumes it from its position. Works in workers too, where there is no document.

import { BROKE, CLOSE_TIMEOUT_MS, SEND_BUFFER_BYTES_MAX } from "../transport/transport.js";
import { hexadecimal } from "./platform.js";

/** @typedef {import("../transport/transport.js").Link} Link */
/** @typedef {import("../transport/transport.js").LinkEvents} LinkEvents */
/** @typedef {import("../transport/transport.js").LinkOptions} LinkOptions */

const DRAIN_LOOK_MS = 20; // a browser does not say when its buffer has emptied
const NO_CODE = 1005;
const BROKEN = 1006;
const REASON_CHARACTERS_MAX = 40; // 123 bytes however they are encoded
const TAB_KEY = "godwit-tab";
const CLOSE_CODES = [1000, 3000]; // a page may close with these and above 3000 only

/** @implements {Link} */
class BrowserLink {
  #socket;
  #events;
  #isEnded = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {string} url
   * @param {LinkOptions} options
   * @param {LinkEvents} events
   */
  constructor(url, options, events) {
    this.#events = events;
    const socket = new WebSocket(url, options.subprotocol);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#isEnded || events.opened();
    socket.onmessage = ({ data }) => {
      if (!this.#isEnded) events.frame(typeof data === "string" ? data : new Uint8Array(data));
    };
    socket.onclose = ({ code, reason }) => {
      this.#end({ code: code === NO_CODE || code === BROKEN ? null : code, reason: reason || BROKE });
    };
  }

  /** @param {string | Uint8Array} frame */
  send(frame) {
    if (this.#socket.readyState !== WebSocket.OPEN) return true;
    this.#socket.send(/** @type {string | Uint8Array<ArrayBuffer>} */ (frame));
    if (this.#socket.bufferedAmount < SEND_BUFFER_BYTES_MAX) return true;
    this.#awaitDrain();
    return false;
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  close(code, reason) {
    const allowed = CLOSE_CODES.includes(code) || code > 3000 ? code : 1000;
    this.#socket.close(allowed, reason.slice(0, REASON_CHARACTERS_MAX));
    setTimeout(() => this.abort(), CLOSE_TIMEOUT_MS);
  }

  abort() {
    if (this.#isEnded) return;
    this.#socket.close();
    this.#end({ code: null, reason: "aborted" });
  }

  #awaitDrain() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#isEnded) return;
      if (this.#socket.bufferedAmount < SEND_BUFFER_BYTES_MAX) this.#events.drained();
      else this.#awaitDrain();
    }, DRAIN_LOOK_MS);
  }

  /** @param {import("../transport/transport.js").LinkEnd} end */
  #end(end) {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#timer);
    queueMicrotask(() => this.#events.closed(end));
  }
}

/** @type {import("./platform.js").Platform["watchPage"]} */
function watchPage(events) {
  const page = globalThis.document;
  const ending = new AbortController();
  const { signal } = ending;
  globalThis.addEventListener?.("online", events.online, { signal });
  globalThis.addEventListener?.("pagehide", events.leaving, { signal });
  page?.addEventListener("freeze", events.leaving, { signal }); // a hidden page may never run again
  page?.addEventListener("resume", events.online, { signal }); // or runs again, hidden still, its connection perhaps gone
  page?.addEventListener(
    "visibilitychange",
    () => (page.visibilityState === "hidden" ? events.hidden() : events.visible()),
    { signal },
  );
  if (page?.visibilityState === "hidden") events.hidden(); // opened in the background
  return () => ending.abort();
}

const MULTIPLEXED = ["h2", "h3"]; // names of the protocols in a browser's resource timing
/** @type {Map<string, string>} by origin, the protocol of the last request; absent if the browser does not report it */
const protocols = new Map();

/** The browser records the timing of requests only if an observer exists, so it is created before the first request. */
function observeRequests() {
  if (typeof PerformanceObserver === "undefined") return;
  const observer = new PerformanceObserver((list) => {
    for (const entry of /** @type {PerformanceResourceTiming[]} */ (list.getEntries())) {
      if (entry.nextHopProtocol) protocols.set(new URL(entry.name).origin, entry.nextHopProtocol);
    }
  });
  observer.observe({ type: "resource", buffered: true });
}

/**
 * The channel between the pages of this origin; null if the browser denies it, as it may deny storage.
 * @param {string} name
 */
function channelOf(name) {
  try {
    return new BroadcastChannel(name);
  } catch {
    return null;
  }
}

/** @type {import("../transport/http/tab_pacing.js").Page["join"]} */
function join(name, heard) {
  const channel = channelOf(name);
  if (channel === null) return { say: () => {}, close: () => {} }; // without it each page counts only itself
  channel.onmessage = ({ data }) => heard(data);
  return { say: (word) => channel.postMessage(word), close: () => channel.close() };
}

/** @returns {import("../transport/http/tab_pacing.js").Page} */
function newPage() {
  const page = globalThis.document;
  return {
    id: browser.randomText(8),
    join,
    watch: (changed) => {
      page?.addEventListener("visibilitychange", changed);
      return () => page?.removeEventListener("visibilitychange", changed);
    },
    isHidden: () => page?.visibilityState === "hidden",
    isMultiplexed: (base) => MULTIPLEXED.includes(protocols.get(new URL(base).origin) ?? ""),
  };
}

observeRequests();

/** @type {import("./platform.js").Platform} */
export const browser = {
  open: (url, options, events) => new BrowserLink(url, options, events),
  ask: (url, request) => fetch(url, { ...request, cache: "no-store", credentials: "omit", redirect: "manual" }),
  now: () => performance.now(),
  randomText: (bytes) => hexadecimal(crypto.getRandomValues(new Uint8Array(bytes))),
  watchPage,
  newPage,
};

/** The page's own storage, or null where it is forbidden or absent. */
export function pageStorage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null; // a page may be denied it
  }
}

/** @type {{ id: string } | undefined} */
let thisTab;

/**
 * This tab's name among those of its origin. It survives a reload. A tab that was duplicated has the name of the first one until
 * that one answers, and then draws its own.
 */
export function pageTab() {
  if (thisTab !== undefined) return thisTab;
  const draw = () => hexadecimal(crypto.getRandomValues(new Uint8Array(8)));
  const keep = (/** @type {string} */ id) => {
    try {
      globalThis.sessionStorage?.setItem(TAB_KEY, id);
    } catch {
      // a page may be denied it: the name lives as long as the page
    }
    return id;
  };
  let known = null;
  try {
    known = globalThis.sessionStorage?.getItem(TAB_KEY) ?? null;
  } catch {
    known = null;
  }
  const tab = { id: known ?? keep(draw()) };
  thisTab = tab;
  const channel = globalThis.document === undefined ? null : channelOf(TAB_KEY);
  if (channel === null) return tab;
  let mine = ""; // what was asked for with this word was asked by this tab
  channel.onmessage = ({ data }) => {
    if (data?.ask === tab.id && data.word !== mine) channel.postMessage({ taken: tab.id, word: data.word });
    else if (data?.taken === tab.id && data.word === mine) tab.id = keep(draw());
  };
  mine = draw();
  channel.postMessage({ ask: tab.id, word: mine });
  return tab;
}
