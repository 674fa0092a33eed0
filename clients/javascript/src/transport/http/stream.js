// One stream of events: the subscriptions and watches that it carries, and which of them have an answer.

import { bodyOf } from "./wanted.js";

/** @typedef {import("./answer.js").Answer} Answer */
/** @typedef {import("./http_link.js").Host} Host */
/** @typedef {import("./wanted.js").Wanted} Wanted */
/** @typedef {import("./watched.js").Watched} Watched */

export class Stream {
  ending = new AbortController();
  hasBegun = false;
  isOver = false;
  isShort = false; // the node had no room for some of the requested subscriptions
  wanted;
  watched;
  /** @type {Set<Wanted | Watched>} */
  unanswered;

  /**
   * @param {ReadonlyMap<string, Wanted>} wanted
   * @param {ReadonlyMap<string, Watched>} watched
   */
  constructor(wanted, watched) {
    this.wanted = new Map(wanted);
    this.watched = new Map(watched);
    this.unanswered = new Set([...wanted.values(), ...watched.values()]);
  }

  /**
   * Ask for it; throws Refused, or what fetch throws.
   * @param {Host} host
   */
  ask(host) {
    const body = bodyOf([...this.wanted.values()], [...this.watched.values()]);
    const { signal } = this.ending;
    return host.ask(`/v1/stream?frame_bytes_max=${host.frameBytesMax}`, { method: "POST", body, signal });
  }

  /**
   * Whether all that it carries is wanted still.
   * @param {ReadonlyMap<string, Wanted>} wanted
   * @param {ReadonlyMap<string, Watched>} watched
   */
  isWithin(wanted, watched) {
    const isHere = [...this.wanted].every(([selector, each]) => wanted.get(selector) === each);
    return isHere && [...this.watched].every(([selector, each]) => watched.get(selector) === each);
  }

  /**
   * Whether it carries exactly these.
   * @param {ReadonlyMap<string, Wanted>} wanted
   * @param {ReadonlyMap<string, Watched>} watched
   */
  isOf(wanted, watched) {
    return this.wanted.size === wanted.size && this.watched.size === watched.size && this.isWithin(wanted, watched);
  }

  /**
   * The unanswered subscription or watch with this id.
   * @param {number} id
   */
  find(id) {
    return [...this.unanswered].find((each) => each.id === id);
  }
}

/**
 * The events of an answer; throws if it contains none.
 * @param {Answer} answer
 */
export function bodyOfEvents({ headers, body }) {
  const isEvents = headers.get("content-type")?.startsWith("text/event-stream");
  if (!isEvents || body === null) throw new Error("the answer is not a stream of events");
  return body;
}
