// The client reads and writes frames as in protocol/vectors/codec.json, in both encodings.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Message, Position } from "../../src/model.js";
import { ResumePoint } from "../../src/session/resume_point.js";
import { BinaryEncoding } from "../../src/codec/binary.js";
import { Draft } from "../../src/codec/command.js";
import { JsonEncoding } from "../../src/codec/json.js";
import { fromBase64 } from "../../src/codec/base64.js";
import { sourceOf } from "../../src/codec/source.js";
import { Writer } from "../../src/codec/values.js";
import { bytesOf, hexOf, vectors } from "../vectors.js";

const BEYOND_THIS_CLIENT = [
  // it gives each command a number that JavaScript holds exactly, and always sends its name
  ...["a large id is returned", "a text id is returned", "a text id", "a large binary id", "connect without anything"],
  ...["subscribe without an id", "publish a retained message without an id"],
];
const CASES = vectors("codec").cases.filter(({ name }) => !BEYOND_THIS_CLIENT.includes(name));
const of = (...ways) => CASES.filter(({ way }) => ways.includes(way));

/** The subject that the node announced for the number. */
function announcement({ json, number, base_time }) {
  const read = JSON.parse(json);
  const writer = new Writer(0x01);
  writer.varint(number);
  writer.varint(read.at ? Position.parse(read.at).epoch : 7);
  writer.varint(base_time);
  writer.string(read.message);
  writer.string(read.pattern ?? "");
  return writer.done();
}

/** All fields of a message, its content byte for byte. */
function plain(push) {
  if (!(push instanceof Message)) return push;
  return { ...push, bytes: hexOf(push.bytes()), text: push.kind === "bytes" ? null : push.text() };
}

for (const each of of("push", "reply")) {
  test(`both wires say the same: ${each.name}`, () => {
    const [byJson, ...more] = new JsonEncoding().decode(each.json);
    assert.equal(more.length, 0);
    assert.ok(byJson);
    assert.deepEqual(new JsonEncoding().decode(`[${each.json}, ${each.json} ]`).map(plain), [plain(byJson), plain(byJson)]);
    if (each.binary === null) return;
    const encoding = new BinaryEncoding();
    if ("number" in each) encoding.decode(announcement(each));
    const [byBinary] = encoding.decode(bytesOf(each.binary));
    if (byJson.type === "reply" && byJson.id === null) byJson.id = 0; // 0 is no id
    assert.deepEqual(plain(byBinary), plain(byJson));
  });
}

for (const each of of("announcement")) {
  test(`an announcement is no message: ${each.name}`, () => {
    assert.deepEqual(new BinaryEncoding().decode(bytesOf(each.binary)), []);
  });
}

for (const each of of("command", "batch")) {
  test(`a command is written so: ${each.name}`, () => {
    const read = [JSON.parse(each.json)].flat();
    const commands = read.map((one, place) => commandOf(one, each.json, each.way === "batch" ? place : null));
    assert.deepEqual(JSON.parse(new JsonEncoding().encode(commands)), JSON.parse(each.json));
    assert.equal(hexOf(new BinaryEncoding().encode(commands)), each.binary);
  });
}

function commandOf(read, text, place) {
  const { id } = read;
  if ("connect" in read) {
    const { token = null, client, frame_bytes_max: frameBytesMax, publisher, number } = read.connect;
    return { verb: "connect", id, token, client, frameBytesMax, publisher, number };
  }
  if ("subscribe" in read) {
    const after = typeof read.after === "string" ? { [read.subscribe]: read.after } : (read.after ?? {});
    const places = Object.entries(after).map(([subject, at]) => [subject, Position.parse(at)]);
    const choice = { last: read.last, snapshot: read.snapshot, onGap: read.on_gap, conflateMs: read.conflate_ms };
    return { verb: "subscribe", id, selector: read.subscribe, resumePoint: new ResumePoint(new Map(places), read.since), choice };
  }
  if ("publish" in read) {
    const { key, reply_to: replyTo, retain, merge, guaranteed, ack } = read;
    const bytes = Object.entries(read.fields_bytes ?? {}).map(([name, value]) => [name, fromBase64(value)]);
    const own = "fields" in read ? { ...read.fields, ...Object.fromEntries(bytes) } : undefined;
    const fields = { key, replyTo, retain, merge, guaranteed, ack, fields: own };
    const { number, floor = 0, again: isAgain = false } = read;
    const numbered = number === undefined ? null : { number, floor, isAgain };
    if ("removed" in read) return { verb: "publish", id, draft: new Draft(read.publish, "text", "", { ...fields, isRemoval: true }), numbered };
    if ("text" in read) return { verb: "publish", id, draft: new Draft(read.publish, "text", read.text, fields), numbered };
    if ("bytes" in read) return { verb: "publish", id, draft: new Draft(read.publish, "bytes", fromBase64(read.bytes), fields), numbered };
    return { verb: "publish", id, draft: new Draft(read.publish, "json", sourceOf(text, place, "content"), fields), numbered };
  }
  if ("ping" in read) return { verb: "ping", id };
  const verb = ["unsubscribe", "watch", "unwatch"].find((name) => name in read);
  assert.ok(verb, `no verb in ${JSON.stringify(read)}`);
  return { verb, id, selector: read[verb] };
}
