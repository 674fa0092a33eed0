// The JSON encoding, `godwit.v1.json`: commands to text frames, text frames to the server's pushes.
//
// A frame is one object or an array of them. Unknown keys and unknown objects are ignored, so that an older client can
// talk to a newer server; a known one with a wrong type throws FrameInvalid. The text of JSON content is kept unchanged.

import { BytesBody, ParsedBody, TextBody } from "../content.js";
import { FrameInvalid } from "../errors.js";
import { Dropped, Gap, Interest, Message, NO_FIELDS, Position } from "../model.js";
import { isPattern } from "../subject.js";
import { fromBase64, toBase64 } from "./base64.js";
import { ACKS, OUTCOMES, REASONS, replyOf, wordOf } from "./push.js";
import { sourceOf } from "./source.js";

/** @typedef {import("./command.js").Command} Command */
/** @typedef {import("./push.js").Received} Received */
/** @typedef {Record<string, unknown>} Read */

/** Stateless: frames do not depend on each other. */
export class JsonEncoding {
  subprotocol = "godwit.v1.json";

  /**
   * Several commands as one frame, handled in order.
   * @param {Command[]} commands
   * @returns {string}
   */
  encode(commands) {
    const written = commands.map(writeCommand);
    return written.length === 1 ? String(written[0]) : `[${written.join(",")}]`;
  }

  /**
   * Decode one frame; throws FrameInvalid.
   * @param {string | Uint8Array} frame
   * @returns {Received[]}
   */
  decode(frame) {
    if (typeof frame !== "string") throw new FrameInvalid("a binary frame on a JSON connection");
    try {
      const read = JSON.parse(frame);
      if (Array.isArray(read)) {
        return read.map((entry, place) => readObject(entry, frame, place, frame.length / read.length)).filter((each) => each !== null);
      }
      const received = readObject(read, frame, null, frame.length);
      return received === null ? [] : [received];
    } catch (error) {
      throw new FrameInvalid(`cannot read ${JSON.stringify(frame.slice(0, 120))}: ${error}`);
    }
  }
}

/** @param {Command} command */
function writeCommand(command) {
  switch (command.verb) {
    case "publish":
      return writePublish(command);
    case "subscribe":
      return JSON.stringify(subscribeObject(command));
    case "connect": {
      const { token, client, frameBytesMax, publisher, number } = command;
      const fields = { client, token: token ?? undefined, frame_bytes_max: frameBytesMax, publisher, number };
      return JSON.stringify({ id: command.id, connect: fields });
    }
    case "ping":
      return JSON.stringify({ id: command.id, ping: true });
    default:
      return JSON.stringify({ id: command.id, [command.verb]: command.selector });
  }
}

/** @param {import("./command.js").Subscribe} command */
function subscribeObject({ id, selector, resumePoint, choice }) {
  /** @type {Read} */
  const written = { id, subscribe: selector };
  if (isPattern(selector)) {
    if (resumePoint.after.size > 0) {
      written["after"] = Object.fromEntries([...resumePoint.after].map(([subject, at]) => [subject, String(at)]));
    }
    if (resumePoint.since !== null) written["since"] = resumePoint.since;
  } else if (resumePoint.after.has(selector)) {
    written["after"] = String(resumePoint.after.get(selector));
  }
  if (choice.last !== undefined && !resumePoint.isSomewhere) written["last"] = choice.last;
  if (choice.snapshot === false) written["snapshot"] = false;
  if (choice.onGap === "oldest") written["on_gap"] = "oldest";
  if (choice.conflateMs !== undefined) written["conflate_ms"] = choice.conflateMs;
  return written;
}

/** @param {import("./command.js").Publish} command */
function writePublish({ id, draft, numbered = null }) {
  /** @type {Read} */
  const written = { id, publish: draft.subject };
  if (draft.isRemoval) written["removed"] = true;
  else if (draft.kind === "text") written["text"] = draft.content;
  else if (typeof draft.content !== "string") written["bytes"] = toBase64(draft.content);
  if (draft.retain !== null) written["retain"] = draft.retain;
  if (draft.merge !== null) written["merge"] = draft.merge;
  if (draft.fields !== NO_FIELDS) writeFields(written, Object.entries(draft.fields));
  if (!draft.guaranteed) written["guaranteed"] = false;
  if (numbered !== null) {
    written["number"] = numbered.number;
    if (numbered.floor > 0) written["floor"] = numbered.floor;
    if (numbered.isAgain) written["again"] = true;
  }
  if (draft.key !== null) written["key"] = draft.key;
  if (draft.replyTo !== null) written["reply_to"] = draft.replyTo;
  if (draft.ack !== null) written["ack"] = draft.ack;
  const text = JSON.stringify(written);
  return draft.kind === "json" ? `${text.slice(0, -1)},"content":${draft.content}}` : text; // it is JSON already
}

/**
 * @param {Read} written
 * @param {[string, string | Uint8Array | null][]} fields
 */
function writeFields(written, fields) {
  const texts = fields.filter(([, value]) => !(value instanceof Uint8Array));
  const bytes = fields.flatMap(([name, value]) => (value instanceof Uint8Array ? [[name, toBase64(value)]] : []));
  if (texts.length > 0) written["fields"] = Object.fromEntries(texts);
  if (bytes.length > 0) written["fields_bytes"] = Object.fromEntries(bytes);
}

/**
 * The verbs, most frequent first.
 * @param {unknown} value
 * @param {string} frame
 * @param {number | null} place
 * @returns {Received | null}
 * @param {number} size its part of the frame
 */
function readObject(value, frame, place, size) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new TypeError("no object");
  const read = /** @type {Read} */ (value);
  const subject = textOf(read["message"], "message");
  if (subject !== null) return readMessage(read, subject, frame, place, size);
  const ok = textIn(read, "ok");
  if (ok !== null) return readReply(read, ok);
  const resumeToken = textIn(read, "resume_token");
  if (resumeToken !== null) return { type: "marked", resumeToken, pattern: textIn(read, "pattern") ?? "", node: null };
  return readRarer(read);
}

/**
 * @param {Read} read
 * @returns {Received | null}
 */
function readRarer(read) {
  const reason = textIn(read, "reason") ?? "";
  const code = numberIn(read, "error");
  if (code !== null) {
    const selector = textIn(read, "ended");
    if (selector !== null) return { type: "ended", selector, code, reason };
    const codeName = textIn(read, "name") ?? "";
    return { type: "refusal", id: idIn(read), code, codeName, reason, retry: flagIn(read, "retry") };
  }
  const gap = textIn(read, "gap");
  if (gap !== null) {
    const [at, after, missed] = [positionIn(read, "at"), positionIn(read, "after"), numberIn(read, "missed")];
    return new Gap(gap, at, after, wordOf(REASONS, reason) ?? "unknown", missed, textIn(read, "pattern"));
  }
  const ordered = textIn(read, "epochs");
  if (ordered !== null) {
    return { type: "epochs", subject: ordered, order: epochsIn(read), pattern: textIn(read, "pattern") };
  }
  const dropped = textIn(read, "dropped");
  if (dropped !== null) return new Dropped(dropped, numberIn(read, "count") ?? 0);
  const interest = textIn(read, "interest");
  if (interest !== null) return new Interest(interest, flagIn(read, "subscribers"));
  const selector = textIn(read, "interest_state");
  if (selector !== null) return { type: "interest_state", selector, isComplete: flagIn(read, "complete") };
  const name = textIn(read, "notice");
  if (name === null) return null;
  return { type: "notice", name, inMs: numberIn(read, "in_ms"), reconnectAfterMs: numberIn(read, "reconnect_after_ms") };
}

/**
 * @param {Read} read
 * @param {string} ok
 * @returns {Received}
 */
function readReply(read, ok) {
  return replyOf(idIn(read), ok, {
    position: positionIn(read, "at"),
    outcome: wordOf(OUTCOMES, textIn(read, "outcome")),
    count: numberIn(read, "count"),
    isDuplicate: flagIn(read, "duplicate"),
    ack: wordOf(ACKS, textIn(read, "ack")),
    session: textIn(read, "session"),
    node: textIn(read, "node"),
    pingIntervalMs: numberIn(read, "ping_interval_ms"),
    hasPublisher: read["publisher"] !== false,
  });
}

/**
 * This runs once per message: each member is read by its name in place, which is several times faster than by a variable.
 * @param {Read} read
 * @param {string} subject
 * @param {string} frame
 * @param {number | null} place
 * @param {number} size its part of the frame
 */
function readMessage(read, subject, frame, place, size) {
  const { at, after, time, reply_to: replyTo, pattern, conflated, snapshot, merge, removed, content, text, bytes } = read;
  const fields = {
    position: positionOf(at, "at"),
    after: positionOf(after, "after"),
    timeMs: numberOf(time, "time") ?? 0,
    replyTo: textOf(replyTo, "reply_to"),
    pattern: textOf(pattern, "pattern"),
    conflated: numberOf(conflated, "conflated") ?? 0,
    isSnapshot: flagOf(snapshot, "snapshot"),
    isPatch: flagOf(merge, "merge"),
    isRemoval: flagOf(removed, "removed"),
    fields: fieldsOf(read["fields"] ?? null, read["fields_bytes"] ?? null),
  };
  if (content !== undefined) {
    const body = new ParsedBody(content, () => sourceOf(frame, place, "content"), size);
    return new Message(subject, "json", body, fields);
  }
  const words = textOf(text, "text");
  if (words !== null) return new Message(subject, "text", new TextBody(words), fields);
  const written = textOf(bytes, "bytes");
  if (written !== null) return new Message(subject, "bytes", new BytesBody(fromBase64(written)), fields);
  throw new TypeError("a message without content");
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {string | null}
 */
function textOf(value, name) {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return null;
  throw new TypeError(`${name} is not a string`);
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {number | null}
 */
function numberOf(value, name) {
  if (value === undefined || value === null) return null;
  if (typeof value === "number" && Number.isInteger(value)) return value;
  throw new TypeError(`${name} is not a whole number`);
}

/**
 * @param {unknown} value
 * @param {string} name
 * @returns {boolean}
 */
function flagOf(value, name) {
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  throw new TypeError(`${name} is neither true nor false`);
}

/**
 * @param {unknown} value
 * @param {string} name
 */
function positionOf(value, name) {
  const text = textOf(value, name);
  return text === null ? null : Position.parse(text);
}

/** @param {Read} read @param {string} key */
const textIn = (read, key) => textOf(read[key], key);

/** @param {Read} read @param {string} key */
const numberIn = (read, key) => numberOf(read[key], key);

/** @param {Read} read @param {string} key */
const flagIn = (read, key) => flagOf(read[key], key);

/** @param {Read} read @param {string} key */
const positionIn = (read, key) => positionOf(read[key], key);

/** @param {unknown} texts @param {unknown} bytes */
function fieldsOf(texts, bytes) {
  if (texts === null && bytes === null) return NO_FIELDS;
  /** @type {Record<string, string | Uint8Array | null>} */
  const fields = Object.create(null);
  for (const name of namesIn(texts)) fields[name] = textIn(/** @type {Read} */ (texts), name);
  for (const name of namesIn(bytes)) fields[name] = fromBase64(textIn(/** @type {Read} */ (bytes), name) ?? "");
  return fields;
}

/** @param {unknown} value */
function namesIn(value) {
  if (value !== null && (typeof value !== "object" || Array.isArray(value))) throw new TypeError("fields is not an object");
  return Object.keys(value ?? {});
}

/** @param {Read} read */
function epochsIn(read) {
  const order = read["order"];
  if (!Array.isArray(order) || !order.every((epoch) => typeof epoch === "string")) throw new TypeError("order is not a list");
  return order.map((epoch) => Position.parse(`${epoch}.0`).epoch);
}

/**
 * This client's ids are numbers; any other is not its own.
 * @param {Read} read
 */
function idIn(read) {
  const id = read["id"];
  return typeof id === "number" ? id : null;
}
