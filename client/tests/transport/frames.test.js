// WebSocket frames, in every way they can be cut into chunks, and every way they can be wrong.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import fc from "fast-check";

import { BINARY, CLOSE, FrameReader, FramingBroken, PING, TEXT, readClose, readText, writeFrame } from "../../src/transport/frames.js";

/** A frame as a server writes it. */
function serverFrame(opcode, payload, isLast = true) {
  const size = payload.length;
  const head = [opcode | (isLast ? 0x80 : 0)];
  if (size < 126) head.push(size);
  else if (size < 65_536) head.push(126, size >> 8, size & 0xff);
  else head.push(127, 0, 0, 0, 0, (size >> 24) & 0xff, (size >> 16) & 0xff, (size >> 8) & 0xff, size & 0xff);
  return concat([head, payload]);
}

const concat = (pieces) => new Uint8Array(Buffer.concat(pieces.map((piece) => Buffer.from(piece))));

function all(reader) {
  const units = [];
  for (let unit = reader.next(); unit !== null; unit = reader.next()) units.push(unit);
  return units;
}

test("whatever the chunks, the same messages come", () => {
  const message = fc.record({
    opcode: fc.constantFrom(TEXT, BINARY),
    pieces: fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 4 }),
    ping: fc.boolean(),
  });
  const streams = fc.tuple(fc.array(message, { maxLength: 8 }), fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }));
  fc.assert(
    fc.property(streams, ([messages, cuts]) => {
      const [wanted, frames] = [[], []];
      for (const { opcode, pieces, ping } of messages) {
        pieces.forEach((piece, n) => {
          frames.push(serverFrame(n === 0 ? opcode : 0, piece, n === pieces.length - 1));
          if (ping && n === 0) frames.push(serverFrame(PING, Uint8Array.of(n)));
        });
        const whole = { opcode, payload: concat(pieces) };
        const control = { opcode: PING, payload: Uint8Array.of(0) };
        wanted.push(...(!ping ? [whole] : pieces.length === 1 ? [whole, control] : [control, whole]));
      }
      const bytes = concat(frames);
      const [reader, found] = [new FrameReader(2_000), []];
      for (let at = 0, n = 0; at < bytes.length; n++) {
        const size = cuts[n % cuts.length];
        reader.push(bytes.subarray(at, at + size));
        at += size;
        found.push(...all(reader));
      }
      assert.deepEqual(found, wanted);
    }),
  );
});

describe("a reader refuses", () => {
  for (const [name, bytes, code] of [
    ["a reserved bit", [0xc1, 0], 1002],
    ["a mask", [0x81, 0x80, 1, 2, 3, 4], 1002],
    ["an unknown opcode", [0x83, 0], 1002],
    ["an unknown control", [0x8b, 0], 1002],
    ["a control in pieces", [0x09, 0], 1002],
    ["a large control", [0x89, 126, 0, 200], 1002],
    ["a continuation of nothing", [0x80, 0], 1002],
    ["a message inside another", [0x01, 0, 0x81, 0], 1002],
    ["a message over the limit", [0x82, 126, 0x10, 0], 1009],
    ["a message over every limit", [0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0], 1009],
    ["fragments over the limit together", [0x02, 2, 1, 1, 0x80, 126, 0x03, 0xe8], 1009],
  ]) {
    test(String(name), () => {
      const reader = new FrameReader(1_000);
      reader.push(Uint8Array.from(/** @type {number[]} */ (bytes)));
      assert.throws(() => all(reader), (error) => error instanceof FramingBroken && error.code === code);
    });
  }

  test("close frames and text that are wrong", () => {
    assert.throws(() => readClose(Uint8Array.of(1)), FramingBroken);
    assert.throws(() => readClose(Uint8Array.of(3, 232, 0xff)), { code: 1007 });
    assert.throws(() => readText(Uint8Array.of(0xff)), { code: 1007 });
    assert.deepEqual(readClose(Uint8Array.of()), { code: null, reason: "" });
    assert.deepEqual(readClose(Uint8Array.of(3, 232, 0x61)), { code: 1000, reason: "a" });
  });
});

test("a large frame is put together once, not with each chunk", () => {
  const reader = new FrameReader(1 << 20);
  const frame = serverFrame(BINARY, new Uint8Array(200_000).fill(7));
  for (let at = 0; at < frame.length; at += 100) {
    reader.push(frame.subarray(at, at + 100));
    if (at + 100 < frame.length) assert.equal(reader.next(), null);
  }
  assert.equal(reader.next()?.payload.length, 200_000);
});

for (const size of [0, 1, 125, 126, 65_535, 65_536]) {
  test(`a frame of ${size} bytes is written masked`, () => {
    const payload = Uint8Array.from({ length: size }, (_, n) => n & 0xff);
    const mask = Uint8Array.of(1, 2, 3, 4);
    const frame = writeFrame(CLOSE, payload, mask);
    const start = frame.length - size;
    assert.equal(start, size < 126 ? 6 : size < 65_536 ? 8 : 14);
    assert.deepEqual(frame.subarray(start - 4, start), mask);
    assert.deepEqual(frame.subarray(start).map((byte, n) => byte ^ mask[n & 3]), payload);
    const unmasked = new Uint8Array(start - 4 + size);
    unmasked.set(frame.subarray(0, start - 4));
    unmasked[1] &= 0x7f;
    unmasked[0] = 0x80 | BINARY;
    unmasked.set(payload, start - 4);
    const reader = new FrameReader(1 << 20);
    reader.push(unmasked);
    assert.deepEqual(reader.next()?.payload, payload);
  });
}
