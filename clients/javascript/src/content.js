// Content: how a publisher's value is encoded, and how a subscriber reads it.
//
// Three bodies read alike, `json()`, `text()` and `bytes()`: of bytes (binary encoding), of text, and of a value that the JSON
// encoding has parsed already. Reading is lazy; the text and bytes of JSON content are exactly the publisher's.

import { shown } from "./shown.js";

/** @typedef {"json" | "text" | "bytes"} Kind */

/**
 * @typedef {object} Body
 * @property {() => any} json the content read as JSON; throws SyntaxError if it is not JSON
 * @property {() => string} text the content read as UTF-8; throws TypeError if it is not UTF-8
 * @property {() => Uint8Array} bytes the content as it was published
 * @property {number} size its approximate size in memory (bytes)
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @param {string} text */
export const encodeText = (text) => encoder.encode(text);

/**
 * Strict: throws TypeError if the bytes are not UTF-8.
 * @param {Uint8Array} bytes
 */
export const decodeText = (bytes) => decoder.decode(bytes);

/**
 * How many bytes a text takes in UTF-8.
 * @param {string} text
 */
export function utf8Length(text) {
  let size = text.length;
  for (let place = 0; place < text.length; place++) {
    const unit = text.charCodeAt(place);
    if (unit >= 0x80) size += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return size;
}

/** @implements {Body} */
export class BytesBody {
  /** @type {{ value: any } | undefined} */
  #parsed;
  #bytes;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
  }

  get size() {
    return this.#bytes.byteLength;
  }

  json() {
    this.#parsed ??= { value: JSON.parse(this.text()) };
    return this.#parsed.value;
  }

  text() {
    return decodeText(this.#bytes);
  }

  bytes() {
    return this.#bytes;
  }
}

/** @implements {Body} */
export class TextBody {
  #text;

  /** @param {string} text */
  constructor(text) {
    this.#text = text;
  }

  get size() {
    return this.#text.length;
  }

  json() {
    return JSON.parse(this.#text);
  }

  text() {
    return this.#text;
  }

  bytes() {
    return encodeText(this.#text);
  }
}

/**
 * A value that was parsed together with its frame; `source` finds its text there on demand.
 * @implements {Body}
 */
export class ParsedBody {
  #value;
  #source;

  /**
   * @param {any} value
   * @param {() => string} source
   * @param {number} size its part of the frame, which it holds
   */
  constructor(value, source, size) {
    this.size = size;
    this.#value = value;
    this.#source = source;
  }

  json() {
    return this.#value;
  }

  text() {
    return this.#source();
  }

  bytes() {
    return encodeText(this.#source());
  }
}

/** JSON that is already written. It is sent unchanged, whitespace and digits included. */
export class JsonText {
  /** @param {string} text checked by `publish`: text that is not JSON would break or change other commands of its frame */
  constructor(text) {
    this.text = text;
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;
const NO_UTF8 = "has a lone surrogate, which UTF-8 cannot hold";

/** What is wrong with content, in a sentence that names the argument. */
class ContentInvalid extends TypeError {}

/**
 * Content as it is published: bytes are bytes, a string is text, JsonText and anything else is JSON. It is written down at
 * once, so a value may change afterwards. Throws TypeError for what JSON cannot hold, which is never sent as `{}` or null.
 * @param {unknown} content
 * @returns {{ kind: Kind, written: string | Uint8Array }}
 */
export const contentOf = (content) => readable(() => writtenOf(content));

/**
 * @param {unknown} content
 * @returns {{ kind: Kind, written: string | Uint8Array }}
 */
function writtenOf(content) {
  if (ArrayBuffer.isView(content)) {
    const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
    return { kind: "bytes", written: bytes.slice() };
  }
  if (content instanceof JsonText) return { kind: "json", written: checkedJson(content.text) };
  if (typeof content === "string") {
    if (LONE_SURROGATE.test(content)) throw new ContentInvalid(`content ${NO_UTF8}`);
    return { kind: "text", written: content };
  }
  if (/^\[object (Shared)?ArrayBuffer\]$/.test(tagOf(content))) {
    return { kind: "bytes", written: new Uint8Array(/** @type {ArrayBuffer} */ (content)).slice() }; // also one of another frame
  }
  const written = JSON.stringify(content);
  if (written === undefined) throw new ContentInvalid(`content is ${shown(content)}, which JSON cannot hold: convert it first`);
  const mayBeLone = written.includes("\\ud"); // as JSON.stringify writes a lone surrogate, or a text that looks like it
  checkPlain(content, "content", "", mayBeLone);
  return { kind: "json", written };
}

/** @param {unknown} text */
function checkedJson(text) {
  if (typeof text !== "string") throw new ContentInvalid(`content is a JsonText of ${typeof text}: expected a string`);
  if (LONE_SURROGATE.test(text)) throw new ContentInvalid(`content ${NO_UTF8}`);
  JSON.parse(text);
  return text;
}

/**
 * Names what failed while JSON was written or read: a BigInt, a cycle, text that is not JSON, or an error of the user's code.
 * @template T
 * @param {() => T} step
 */
function readable(step) {
  try {
    return step();
  } catch (error) {
    if (error instanceof ContentInvalid) throw error;
    const message = error instanceof Error ? error.message : shown(error);
    const isDeep = error instanceof Error && /call stack|recursion/.test(message); // a RangeError may be the user's own
    const named = new ContentInvalid(isDeep ? "content is nested too deeply to be written as JSON" : `content: ${message}`);
    named.cause = error;
    throw named;
  }
}

const PLAIN = ["[object Object]", "[object Array]", "[object Number]", "[object String]", "[object Boolean]", "[object Null]"];

/**
 * Throws for what JSON would write as something else. It was written once already, so it has no cycle.
 * @param {unknown} given
 * @param {string} path
 * @param {string} name by which its holder has it, as `toJSON` is given it
 * @param {boolean} mayBeLone some text in it may hold a lone surrogate
 */
function checkPlain(given, path, name, mayBeLone) {
  const isOwn = given !== null && typeof (/** @type {any} */ (given)?.toJSON) === "function";
  const value = isOwn ? /** @type {any} */ (given).toJSON(name) : given;
  if (value === undefined) return; // as JSON.stringify does: left out of an object, null in a list
  const tag = tagOf(value);
  if (tag === "[object Number]" && !Number.isFinite(Number(value))) throw new ContentInvalid(`${path} is ${value}, which JSON cannot hold`);
  if (isOwn && value === null && tagOf(given) === "[object Date]") throw new ContentInvalid(`${path} is an invalid Date, which JSON cannot hold`);
  if (!PLAIN.includes(tag)) throw new ContentInvalid(`${path} is ${tag.slice(8, -1)}, which JSON cannot hold: convert it first`);
  if (mayBeLone && tag === "[object String]" && LONE_SURROGATE.test(String(value))) throw new ContentInvalid(`${path} ${NO_UTF8}`);
  if (value === null || typeof value !== "object") return;
  checkNames(value, path, mayBeLone);
  for (const [each, inner] of Object.entries(value)) checkPlain(inner, `${path}.${each}`, each, mayBeLone);
}

/**
 * @param {object} value
 * @param {string} path
 * @param {boolean} mayBeLone
 */
function checkNames(value, path, mayBeLone) {
  for (const name of Object.getOwnPropertySymbols(value)) {
    if (!Object.prototype.propertyIsEnumerable.call(value, name)) continue;
    throw new ContentInvalid(`${path} has the name ${String(name)}, which JSON cannot hold: use a string`);
  }
  if (mayBeLone && Object.keys(value).some((name) => LONE_SURROGATE.test(name))) throw new ContentInvalid(`${path} has a name that ${NO_UTF8}`);
}

/** @param {unknown} value */
function tagOf(value) {
  return Object.prototype.toString.call(value);
}
