// Events as a client reads them: the standard's lines in any pieces, what the node writes, and what is too much.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EventReader, EventTooBig } from "../../src/transport/http/events.js";
import { vectors } from "../vectors.js";

const encode = (text) => new TextEncoder().encode(text);

/** Every event of a stream that comes in pieces of so many bytes. */
function read(text, step = Infinity, charactersMax = 10_000) {
  const reader = new EventReader(charactersMax);
  const bytes = encode(text);
  const found = [];
  for (let begin = 0; begin < bytes.length; begin += step) {
    reader.push(bytes.subarray(begin, begin + step));
    for (let event = reader.next(); event !== null; event = reader.next()) found.push(event);
  }
  return found;
}

const message = (data, id = null, type = "") => ({ type, id, data });

const CASES = {
  "one line": ["data: a\n\n", [message("a")]],
  "several lines": ["data: a\ndata:b\ndata\ndata:  c\n\n", [message("a\nb\n\n c")]],
  "carriage returns": ["id: 1\rdata: a\r\rdata: b\r\n\r\n", [message("a", "1"), message("b")]],
  "a type and an id": ["event: gap\nid: 7.1\ndata: {}\n\n", [message("{}", "7.1", "gap")]],
  "fields of no meaning": ["retry: 10\nfoo: bar\n: c\ndata: a\n\n", [message(null), message("a")]],
  "no data is no event, and its type is forgotten": ["event: gap\nid: 1\n\ndata: a\n\n", [message("a")]],
  "an id belongs to its event alone": ["id: 1\ndata: a\n\ndata: b\n\n", [message("a", "1"), message("b")]],
  "what is not whole is no event": ["data: a\n\ndata: b\n", [message("a")]],
  "letters of several bytes": ["data: é😀\n\n", [message("é😀")]],
  "a comment": [":\n\n", [message(null)]],
};

for (const [name, [text, expected]] of Object.entries(CASES)) {
  test(`events are read: ${name}`, () => {
    for (const step of [1, 2, 3, 7, Infinity]) assert.deepEqual(read(text, step), expected, `in pieces of ${step}`);
  });
}

test("events are read as the node wrote them", () => {
  const cases = vectors("codec").cases.filter(({ sse }) => sse);
  assert.ok(cases.length > 20);
  for (const { name, json, sse } of cases) {
    const [event, ...more] = read(sse, 5);
    assert.deepEqual(more, [], name);
    const said = JSON.parse(json);
    assert.deepEqual(JSON.parse(event.data), said, name);
    assert.equal(event.id === null || event.id === said.at, true, name);
  }
});

test("an event that is larger than allowed is refused, in one line and in many, whole and not", () => {
  assert.deepEqual(read(`data: ${"a".repeat(90)}\n\n`, 10, 100), [message("a".repeat(90))]);
  for (const text of [`data: ${"a".repeat(101)}\n\n`, `data: ${"a".repeat(200)}`, "data: aaaaaaaaa\n".repeat(11)]) {
    assert.throws(() => read(text, 10, 100), EventTooBig);
  }
});
