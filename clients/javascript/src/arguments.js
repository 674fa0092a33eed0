// Checks the arguments of the client's public methods at the call, so that a mistake is thrown where it was made.
//
// Each check names the argument, what it was, and what is expected: TypeError for a wrong type, RangeError for a wrong value.

import { utf8Length } from "./content.js";
import { PositionInvalid, SubjectInvalid } from "./errors.js";
import { Position } from "./model.js";
import { ResumePoint } from "./session/resume_point.js";
import { isPlainObject, shown } from "./shown.js";
import { checkSubject } from "./subject.js";

const KEY_BYTES_MAX = 256;
const FIELD_NAME_BYTES_MAX = 256;
const TOKEN_BYTES_MAX = 65_536;
const COUNT_MAX = 0xffff_ffff;
const LISTENERS = ["message", "gap", "dropped", "status", "error"];
const PUBLISH_OPTIONS = ["key", "replyTo", "retain", "merge", "fields", "guaranteed", "ack", "once", "signal"];
const CLIENT_OPTIONS = [
  ...["token", "encoding", "positions", "pauseHiddenMs", "whenHidden", "settings", "log", "transport", "onSaveFailed", "onTransport"],
];
const LONE_SURROGATE = /\p{Surrogate}/u;
const CONTROL = /\p{Control}/u;

export const NEVER_MS = 2 ** 31; // a longer time never ends: timers of JavaScript would fire at once

/**
 * The options of a client, each of which is checked where it is used; a misspelt name would silently change nothing.
 * @template {object} Options
 * @param {Options} options
 */
export function checkClient(options) {
  const { positions, log, onSaveFailed, onTransport, whenHidden, encoding, settings, transport } = checkedOptions(options, CLIENT_OPTIONS);
  if (positions !== undefined && positions !== null) checkFunctions("positions", positions, ["get", "set"]);
  if (log !== undefined) checkFunctions("log", log, ["info", "warn", "error"]);
  for (const [name, value] of Object.entries({ onSaveFailed, onTransport })) {
    if (value !== undefined && typeof value !== "function") throw new TypeError(`${name} is ${shown(value)}: expected a function`);
  }
  if (whenHidden !== undefined) checkChoice("whenHidden", whenHidden, ["poll", "stay"]);
  if (encoding !== undefined && encoding !== null) checkChoice("encoding", encoding, ["json", "binary"]);
  if (settings !== undefined && settings !== null && !isPlainObject(settings)) {
    throw new TypeError(`settings is ${shown(settings)}: expected an object`);
  }
  if (transport !== undefined && transport !== null && typeof transport !== "function") {
    checkChoice("transport", transport, ["auto", "websocket", "sse", "poll"]); // or a function
  }
  return options;
}

/** @param {object} options of a request */
export function checkRequest(options) {
  const { timeoutMs } = checkedOptions(options, ["timeoutMs"]);
  if (timeoutMs !== undefined) checkTime("timeoutMs", timeoutMs);
}

/**
 * The options of a subscribe, apart from where it begins.
 * @param {Record<string, unknown>} options
 */
export function checkSubscribe(options) {
  if (LISTENERS.some((name) => typeof (/** @type {any} */ (options)?.[name]) === "function")) {
    throw new TypeError("options is a listener: expected it as the third argument, subscribe(selector, {}, listener)");
  }
  const { last, snapshot, onGap, conflateMs } = checkedOptions(options, ["after", "last", "snapshot", "onGap", "conflateMs"]);
  if (last !== undefined) checkCount("last", last, 0);
  if (snapshot !== undefined) checkFlag("snapshot", snapshot);
  if (onGap !== undefined) checkChoice("onGap", onGap, ["snapshot", "oldest"]);
  if (conflateMs !== undefined) checkCount("conflateMs", conflateMs, 1);
}

/**
 * @typedef {object} PublishOptions
 * @property {string} [key] an idempotency key; without one the client numbers the publish
 * @property {string} [replyTo] the subject on which answers are expected
 * @property {boolean} [retain] false: the message does not change the snapshot
 * @property {boolean} [merge] true: the members of a JSON object are merged into the snapshot, and null removes one; otherwise the message replaces it
 * @property {Record<string, string | Uint8Array | null>} [fields] named values in addition to the content; null removes one
 * @property {boolean} [guaranteed] false: an at-most-once message, for current subscribers only
 * @property {import("./model.js").Ack} [ack]
 * @property {boolean} [once] false: without number and key; AnswerLost if it is unknown whether it arrived
 * @property {AbortSignal} [signal] aborts the wait; a message that is not sent yet is then never sent
 */

/**
 * The options of a publish; null is "not given" where the message has null too.
 * @param {Record<string, unknown>} options
 */
export function checkPublish(options) {
  const { key, replyTo, retain, merge, fields, guaranteed, ack, once, signal } = checkedOptions(options, PUBLISH_OPTIONS);
  if (key !== undefined && key !== null) checkText("key", key, KEY_BYTES_MAX);
  if (replyTo !== undefined && replyTo !== null) checkNamedSubject("replyTo", replyTo);
  if (retain !== undefined && retain !== null) checkFlag("retain", retain);
  if (merge !== undefined && merge !== null) checkFlag("merge", merge);
  if (fields !== undefined && fields !== null) checkFields(fields);
  if (guaranteed !== undefined) checkFlag("guaranteed", guaranteed);
  if (ack !== undefined && ack !== null) checkChoice("ack", ack, ["cached", "replicated", "disk"]);
  if (once !== undefined) checkFlag("once", once);
  if (signal !== undefined && typeof (/** @type {any} */ (signal)?.addEventListener) !== "function") {
    throw new TypeError(`signal is ${shown(signal)}: expected an AbortSignal`);
  }
}

/** @param {unknown} fields */
function checkFields(fields) {
  if (!isPlainObject(fields)) {
    throw new TypeError(`fields is ${shown(fields)}: expected an object of names to strings, Uint8Arrays or null`);
  }
  for (const [name, value] of Object.entries(/** @type {object} */ (fields))) {
    checkText("a name in fields", name, FIELD_NAME_BYTES_MAX);
    if (CONTROL.test(name)) throw new RangeError(`a name in fields is ${shown(name)}: control characters are not allowed`);
    if (typeof value === "string") checkUtf8(`fields.${name}`, value);
    else if (value !== null && !(value instanceof Uint8Array)) {
      throw new TypeError(`fields.${name} is ${shown(value)}: expected a string, a Uint8Array or null`);
    }
  }
}

/**
 * @param {string} selector
 * @param {import("./client.js").SubscribeOptions["after"]} after
 * @returns {ResumePoint | undefined}
 */
export function standOf(selector, after) {
  if (after === undefined) return undefined;
  if (after instanceof ResumePoint) return checkedPoint(after);
  const places = typeof after === "string" || after instanceof Position ? new Map([[selector, after]]) : after;
  if (!(places instanceof Map) && !isPlainObject(places)) {
    throw new TypeError(`after is ${shown(after)}: expected a ResumePoint, a Position, or an object of subject to Position`);
  }
  return new ResumePoint(positionsOf(places instanceof Map ? places : Object.entries(places)));
}

/**
 * Its class is public, and holds whatever it is made with.
 * @param {ResumePoint} point
 */
function checkedPoint(point) {
  const { after, since, node, recent, isWhole } = point;
  if (!(after instanceof Map)) throw new TypeError(`after.after is ${shown(after)}: expected a Map of subject to Position`);
  for (const [name, value] of Object.entries({ since, node })) if (value !== null) checkText(`after.${name}`, value);
  checkCount("after.recent", recent, 0);
  checkFlag("after.isWhole", isWhole);
  return new ResumePoint(positionsOf(after), since, node, recent, isWhole);
}

/** @param {Iterable<[string, unknown]>} places */
function positionsOf(places) {
  return new Map([...places].map(([subject, at]) => /** @type {const} */ ([checkNamedSubject("after", subject), positionOf(at)])));
}

/**
 * The subject itself; throws SubjectInvalid, which names the argument.
 * @param {string} name
 * @param {unknown} subject
 */
function checkNamedSubject(name, subject) {
  try {
    return checkSubject(/** @type {string} */ (subject));
  } catch (error) {
    if (!(error instanceof SubjectInvalid)) throw error;
    throw new SubjectInvalid(error.subject, `is not a valid subject of ${name}: it ${error.reason}`);
  }
}

/**
 * A time in milliseconds: any number from 0 up.
 * @param {string} name
 * @param {unknown} value
 */
export function checkTime(name, value) {
  if (typeof value !== "number") throw new TypeError(`${name} is ${shown(value)}: expected a number of milliseconds`);
  if (!(value >= 0)) throw new RangeError(`${name} is ${value}: expected a number of milliseconds from 0 up`);
}

/**
 * What is called with what comes: a function, or an object of functions.
 * @param {unknown} listener
 */
export function checkListener(listener) {
  if (listener === undefined || typeof listener === "function") return;
  if (listener === null || typeof listener !== "object") {
    throw new TypeError(`listener is ${shown(listener)}: expected a function, or an object of functions`);
  }
  if (!LISTENERS.some((name) => name in listener)) {
    throw new TypeError(`listener has none of the functions ${LISTENERS.join(", ")}`);
  }
  for (const name of LISTENERS) {
    const value = /** @type {Record<string, unknown>} */ (listener)[name];
    if (value !== undefined && typeof value !== "function") {
      throw new TypeError(`listener.${name} is ${shown(value)}: expected a function`);
    }
  }
}

/**
 * A text that UTF-8 can hold, not empty.
 * @param {string} name
 * @param {unknown} value
 * @param {number} [bytesMax]
 */
export function checkText(name, value, bytesMax = Infinity) {
  if (typeof value !== "string") throw new TypeError(`${name} is ${shown(value)}: expected a string`);
  checkUtf8(name, value);
  const size = utf8Length(value);
  if (size === 0) throw new RangeError(`${name} is empty`);
  if (size > bytesMax) throw new RangeError(`${name} is ${size} bytes long: at most ${bytesMax} are allowed`);
}

/**
 * Printable ASCII without blanks around it, as an Authorization header holds it. The error never shows the value, a secret.
 * @param {unknown} value
 */
export function checkToken(value) {
  if (typeof value !== "string") throw new TypeError(`token is a value of type ${typeof value}: expected a string`);
  if (value === "") throw new RangeError("token is empty");
  if (value.length > TOKEN_BYTES_MAX) throw new RangeError(`token is ${value.length} characters long: at most ${TOKEN_BYTES_MAX} are allowed`);
  if (value !== value.trim() || !/^[ -~]+$/.test(value)) {
    throw new RangeError("token is not what an Authorization header can hold: printable ASCII, without blanks around it");
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
function checkUtf8(name, value) {
  if (LONE_SURROGATE.test(value)) throw new RangeError(`${name} has a lone surrogate, which UTF-8 cannot hold`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {string[]} functions
 */
function checkFunctions(name, value, functions) {
  const missing = functions.find((each) => typeof (/** @type {any} */ (value)?.[each]) !== "function");
  if (missing !== undefined) throw new TypeError(`${name} is ${shown(value)}: expected an object with ${functions.join(", ")}`);
}

/**
 * @param {string} name
 * @param {unknown} value
 */
function checkFlag(name, value) {
  if (typeof value !== "boolean") throw new TypeError(`${name} is ${shown(value)}: expected true or false`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {string[]} choices
 */
function checkChoice(name, value, choices) {
  if (typeof value === "string" && choices.includes(value)) return;
  throw new RangeError(`${name} is ${shown(value)}: expected one of ${choices.join(", ")}`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} least
 */
function checkCount(name, value, least) {
  if (typeof value !== "number") throw new TypeError(`${name} is ${shown(value)}: expected a whole number`);
  if (Number.isInteger(value) && value >= least && value <= COUNT_MAX) return;
  throw new RangeError(`${name} is ${value}: expected a whole number from ${least} to ${COUNT_MAX}`);
}

/**
 * @param {unknown} options
 * @param {string[]} names
 * @returns {Record<string, unknown>}
 */
function checkedOptions(options, names) {
  if (!isPlainObject(options)) throw new TypeError(`options is ${shown(options)}: expected an object`);
  const unknown = Object.keys(/** @type {object} */ (options)).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new TypeError(`${unknown} is not an option: expected ${names.join(", ")}`);
  return /** @type {Record<string, unknown>} */ (options);
}

/** @param {unknown} at */
function positionOf(at) {
  if (typeof at !== "string" && !(at instanceof Position)) throw new PositionInvalid(shown(at));
  return Position.parse(String(at)); // one that was made by hand may hold any numbers
}
