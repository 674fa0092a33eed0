// Content as it travels: what a publisher's value becomes, and how a subscriber reads it.
//
// Three bodies read alike, `json()`, `text()` and `bytes()`: of bytes (binary wire), of text, and of a value that the JSON
// wire has parsed already. Reading is lazy; the text and bytes of JSON content are exactly the publisher's.

/** @typedef {"json" | "text" | "bytes"} Kind */

/**
 * @typedef {object} Body
 * @property {() => any} json the content read as JSON; throws SyntaxError where it is none
 * @property {() => string} text the content read as UTF-8; throws TypeError where it is none
 * @property {() => Uint8Array} bytes the content as it was published
 * @property {number} size about how many bytes it takes here
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @param {string} text */
export const encodeText = (text) => encoder.encode(text);

/**
 * Strict: throws TypeError for what is not UTF-8.
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
 * A value that was parsed together with its frame; `source` finds its text there, when somebody asks.
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

/** JSON that is already written: it travels as it stands, and a number or a blank in it stays as it is. */
export class JsonText {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Content as it is published: bytes are bytes, a string is text, JsonText and anything else is JSON. It is written down at
 * once, so a value may change afterwards. Throws TypeError for what JSON cannot hold, which is never sent as `{}` or null.
 * @param {unknown} content
 * @returns {{ kind: Kind, written: string | Uint8Array }}
 */
export function contentOf(content) {
  if (ArrayBuffer.isView(content)) {
    const bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
    return { kind: "bytes", written: bytes.slice() };
  }
  if (content instanceof JsonText) {
    if (LONE_SURROGATE.test(content.text)) throw new TypeError("content has a lone surrogate, which UTF-8 cannot hold");
    return { kind: "json", written: content.text };
  }
  if (typeof content === "string") {
    if (LONE_SURROGATE.test(content)) throw new TypeError("content has a lone surrogate, which UTF-8 cannot hold");
    return { kind: "text", written: content };
  }
  if (/^\[object (Shared)?ArrayBuffer\]$/.test(tagOf(content))) {
    return { kind: "bytes", written: new Uint8Array(/** @type {ArrayBuffer} */ (content)).slice() }; // also one of another frame
  }
  const written = JSON.stringify(content);
  if (written === undefined) throw new TypeError(`content: JSON cannot hold ${typeof content}`);
  checkPlain(content, "content");
  return { kind: "json", written };
}

const PLAIN = ["[object Object]", "[object Array]", "[object Number]", "[object String]", "[object Boolean]", "[object Null]"];

/**
 * Throws for what JSON would write as something else. It was written once already, so it has no cycle.
 * @param {unknown} value
 * @param {string} path
 */
function checkPlain(value, path) {
  if (value === undefined) return; // left out of an object, as JSON.stringify does
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${path} is ${value}, which JSON cannot hold`);
  if (value !== null && typeof (/** @type {any} */ (value).toJSON) === "function") return;
  const tag = tagOf(value);
  if (!PLAIN.includes(tag)) throw new TypeError(`${path} is ${tag.slice(8, -1)}, which JSON cannot hold: convert it first`);
  if (value === null || typeof value !== "object") return;
  for (const [name, each] of Object.entries(value)) checkPlain(each, `${path}.${name}`);
}

/** @param {unknown} value */
function tagOf(value) {
  return Object.prototype.toString.call(value);
}
