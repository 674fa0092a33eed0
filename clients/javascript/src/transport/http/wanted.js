// One subscription as HTTP asks for it: what the session wanted, and from where it is asked for again. Pure.
//
// It has a place from when nothing after it could be lost by asking anew: a position of a subject, a resume token of a pattern. Before
// that (a join under way that began nowhere) a stream that carries it is not closed to be changed.

import { isPattern } from "../../subject.js";

/**
 * @typedef {object} Subscribe the JSON wire's command
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

const BODY_CHARACTERS_MAX = 262_144; // a node takes 1 MiB, unless it was told otherwise
const QUERY_CHARACTERS_MAX = 12_000; // of a node's 16,384 for the whole head

export class Wanted {
  isServed = false; // its reply has been told
  isCut = false; // its place was too long to be asked for, and has to be told as a gap
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

  /** What all subscriptions of one long poll have in common. */
  get groupKey() {
    return this.command.on_gap ?? "";
  }

  /** About how much of a request it is. */
  get queryLength() {
    return this.selector.length + 80;
  }

  /**
   * Its command as a stream is asked with it: as it was given, or from its place.
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
   * It was told this.
   * @param {Push} push
   */
  passed(push) {
    if (push.gap !== undefined && this.isPattern && push.gap === this.selector) this.place = null;
    else if (!this.isPattern && push.at !== undefined) this.place = push.at;
  }
}

/**
 * The query for these, of which those not served yet join alike.
 * @param {readonly Wanted[]} wanted
 */
export function queryOf(wanted) {
  const long = wanted.map((each) => each.parameters(false)).join("&");
  const query = long.length <= QUERY_CHARACTERS_MAX ? long : wanted.map((each) => each.parameters(true)).join("&");
  const [{ on_gap: onGap } = {}] = wanted.map(({ command }) => command);
  return onGap === undefined ? query : `${query}&on_gap=${encode(onGap)}`;
}

/**
 * The commands that a stream is asked with.
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
 * A whole pattern's gap: what was missed cannot be asked for.
 * @param {string} selector
 */
export function gapOf(selector) {
  return JSON.stringify({ gap: selector, reason: "unknown", missed: null, pattern: selector });
}

/** @param {string} text */
function encode(text) {
  return encodeURIComponent(text).replaceAll("%2F", "/").replaceAll("%3A", ":");
}
