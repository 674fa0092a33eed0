// One subscription as HTTP requests it: what the session wanted, and the position to request it from again. Pure.
//
// It has a position once it can be requested again without loss: the position of a subject, or the resume token of a pattern. Before
// that (during a join without a position) a stream that carries it is not closed to be changed.

import { isPattern } from "../../subject.js";

/**
 * @typedef {object} Subscribe the JSON encoding's command
 * @property {number} id
 * @property {string} subscribe
 * @property {string | Record<string, string>} [after]
 * @property {string} [since]
 * @property {number} [last]
 * @property {boolean} [snapshot]
 * @property {string} [on_gap]
 * @property {number} [conflate_ms]
 */

/** @typedef {{ message?: string, gap?: string, pattern?: string, at?: string, reason?: string, resumeToken?: string }} Push as far as places go */

const BODY_CHARACTERS_MAX = 262_144; // a node accepts 1 MiB by default
const QUERY_CHARACTERS_MAX = 12_000; // of a node's 16,384 for the whole head

export class Wanted {
  isServed = false; // its reply was passed on
  isCut = false; // its resume point was too long to send, so a gap has to be reported
  /** @type {string | null} a position, or a resume token */
  place;

  /** @param {Subscribe} command */
  constructor(command) {
    this.command = command;
    this.id = command.id;
    this.selector = command.subscribe;
    this.isPattern = isPattern(this.selector);
    this.place = this.isPattern ? (command.since ?? null) : typeof command.after === "string" ? command.after : null;
  }

  /** The fields that all subscriptions of one long poll share. */
  get groupKey() {
    return this.command.on_gap ?? "";
  }

  /** About how much of a request it is. */
  get queryLength() {
    return this.selector.length + 80;
  }

  /**
   * Its command for a stream: as it was given, or from its position.
   * @param {boolean} isShort without a map of positions
   */
  commandFor(isShort) {
    const { id, subscribe, on_gap, conflate_ms, after, ...begin } = this.command;
    const place = this.place === null ? {} : this.isPattern ? { since: this.place } : { after: this.place };
    const common = { id, subscribe, on_gap, conflate_ms };
    if (this.isServed) return { ...common, ...place };
    const map = this.isPattern && after !== undefined && !isShort ? { after } : {};
    if (isShort && this.isPattern && after !== undefined) this.isCut = this.place === null;
    return { ...common, ...begin, ...map, ...place };
  }

  /**
   * Its part of a query.
   * @param {boolean} isShort without a map of positions
   */
  parameters(isShort) {
    let text = `subject=${encode(this.selector)}`;
    const { after } = this.command;
    if (this.place !== null) text += this.isPattern ? `&since=${encode(this.place)}` : `&after=${encode(this.place)}`;
    if (this.isServed || after === undefined || !this.isPattern) return text;
    if (isShort) {
      this.isCut = this.place === null;
      return text;
    }
    return `${text}&after=${encode(JSON.stringify(after))}`;
  }

  /**
   * Apply a push.
   * @param {Push} push
   */
  passed(push) {
    if (push.gap !== undefined && this.isPattern && push.gap === this.selector) this.place = null;
    else if (!this.isPattern && push.at !== undefined) this.place = push.at;
  }
}

/**
 * The query for these; those that are not served yet join with the same options.
 * @param {readonly Wanted[]} wanted
 */
export function queryOf(wanted) {
  const long = wanted.map((each) => each.parameters(false)).join("&");
  const query = long.length <= QUERY_CHARACTERS_MAX ? long : wanted.map((each) => each.parameters(true)).join("&");
  const [{ on_gap: onGap } = {}] = wanted.map(({ command }) => command);
  return onGap === undefined ? query : `${query}&on_gap=${encode(onGap)}`;
}

/**
 * The commands that request a stream.
 * @param {readonly Wanted[]} wanted
 * @param {readonly import("./watched.js").Watched[]} watched
 */
export function bodyOf(wanted, watched) {
  const write = (/** @type {boolean} */ isShort) =>
    JSON.stringify([...wanted.map((each) => each.commandFor(isShort)), ...watched.map(({ command }) => command)]);
  const body = write(false);
  return body.length <= BODY_CHARACTERS_MAX ? body : write(true);
}

/** @param {readonly Wanted[]} wanted */
export function isRoomFor(wanted) {
  return wanted.reduce((sum, { queryLength }) => sum + queryLength, 0) < QUERY_CHARACTERS_MAX;
}

/**
 * The resume token of an event's id `RUN.ARRIVAL.TIME.DIGEST`, or null where it is a position.
 * @param {string | null} id
 */
export function resumeTokenOf(id) {
  const parts = id?.split(".") ?? [];
  return parts.length === 4 ? parts.slice(0, 3).join(".") : null;
}

/**
 * A gap of a whole pattern: the missed messages cannot be requested.
 * @param {string} selector
 */
export function gapOf(selector) {
  return JSON.stringify({ gap: selector, reason: "unknown", missed: null, pattern: selector });
}

/** @param {string} text */
function encode(text) {
  return encodeURIComponent(text).replaceAll("%2F", "/").replaceAll("%3A", ":");
}
