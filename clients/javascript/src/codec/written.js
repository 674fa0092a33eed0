// Commands as frames of the binary encoding (protocol/binary.md, B5).

import { encodeText } from "../content.js";
import { isPattern } from "../subject.js";
import { Writer } from "./values.js";

/** @typedef {import("./command.js").Command} Command */

/** @type {readonly import("./command.js").Kind[]} */
export const KINDS = ["json", "text", "bytes"];
const ACKS = { cached: 0, replicated: 4, disk: 8 };
const TYPES = { connect: 0x40, subscribe: 0x41, unsubscribe: 0x42, publish: 0x43, ping: 0x44, watch: 0x45, unwatch: 0x46 };

/** @param {Command} command */
export function writeCommand(command) {
  const writer = new Writer(TYPES[command.verb]);
  writer.varint(command.id);
  switch (command.verb) {
    case "connect":
      writeConnect(writer, command);
      break;
    case "subscribe":
      writeSubscribe(writer, command);
      break;
    case "publish":
      writePublish(writer, command);
      break;
    case "ping":
      break;
    default:
      writer.string(command.selector);
  }
  return writer.done();
}

/**
 * @param {Writer} writer
 * @param {import("./command.js").Connect} command
 */
function writeConnect(writer, { token, client, frameBytesMax, publisher, number }) {
  writer.byte(
    0x02 |
      (token === null ? 0 : 0x01) |
      (frameBytesMax === undefined ? 0 : 0x04) |
      (publisher === undefined ? 0 : 0x08) |
      (number === undefined ? 0 : 0x10),
  );
  if (token !== null) writer.string(token);
  writer.string(client);
  if (frameBytesMax !== undefined) writer.varint(frameBytesMax);
  if (publisher !== undefined) writer.string(publisher);
  if (number !== undefined) writer.varint(number);
}

/**
 * @param {Writer} writer
 * @param {import("./command.js").Subscribe} command
 */
function writeSubscribe(writer, { selector, resumePoint, choice }) {
  const one = isPattern(selector) ? undefined : resumePoint.after.get(selector);
  const each = isPattern(selector) ? [...resumePoint.after] : [];
  const last = resumePoint.isSomewhere ? undefined : choice.last;
  writer.byte(
    (one ? 0x01 : 0) |
      (each.length > 0 ? 0x02 : 0) |
      (resumePoint.since !== null ? 0x04 : 0) |
      (last !== undefined ? 0x08 : 0) |
      (choice.snapshot === false ? 0x10 : 0) |
      (choice.onGap === "oldest" ? 0x20 : 0) |
      (choice.conflateMs !== undefined ? 0x40 : 0),
  );
  writer.string(selector);
  if (one) writer.position(one);
  if (each.length > 0) writer.varint(each.length);
  for (const [subject, position] of each) {
    writer.string(subject);
    writer.position(position);
  }
  if (resumePoint.since !== null) writer.string(resumePoint.since);
  if (last !== undefined) writer.varint(last);
  if (choice.conflateMs !== undefined) writer.varint(choice.conflateMs);
}

/**
 * @param {Writer} writer
 * @param {import("./command.js").Publish} command
 */
function writePublish(writer, { draft, numbered = null }) {
  const retain = draft.retain === null ? 0 : draft.retain ? 1 : 2;
  const kind = KINDS.indexOf(draft.kind);
  const fields = Object.entries(draft.fields);
  const merge = draft.merge === null ? 0 : draft.merge ? 0x04 : 0x20;
  const more = merge | (draft.isRemoval ? 0x08 : 0) | (fields.length > 0 ? 0x10 : 0);
  writer.byte(
    (more === 0 ? kind : 0x03) |
      (draft.key !== null ? 0x04 : 0) |
      (draft.replyTo !== null ? 0x08 : 0) |
      (draft.guaranteed ? 0 : 0x10) |
      (numbered === null ? 0 : 0x20) |
      (numbered?.isAgain === true ? 0x40 : 0),
  );
  writer.byte(retain | (draft.ack === null ? 0 : ACKS[draft.ack]));
  writer.string(draft.subject);
  if (draft.key !== null) writer.string(draft.key);
  if (draft.replyTo !== null) writer.string(draft.replyTo);
  if (numbered !== null) writer.varint(numbered.number);
  if (numbered !== null) writer.varint(numbered.floor);
  if (more !== 0) writer.byte(kind | more);
  if (fields.length > 0) writeFields(writer, fields);
  writer.rest(typeof draft.content === "string" ? encodeText(draft.content) : draft.content);
}

/**
 * @param {Writer} writer
 * @param {[string, string | Uint8Array | null][]} fields
 */
function writeFields(writer, fields) {
  writer.varint(fields.length);
  for (const [name, value] of fields) {
    writer.string(name);
    writer.byte(value === null ? 2 : typeof value === "string" ? 0 : 1);
    if (typeof value === "string") writer.string(value);
    else if (value !== null) writer.sized(value);
  }
}
