// What the vectors leave open: frames that are broken, values at their bounds, and text exactly as it was published.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import fc from "fast-check";

import { JsonText, contentOf } from "../../src/content.js";
import { FrameInvalid } from "../../src/errors.js";
import { fromBase64, toBase64 } from "../../src/codec/base64.js";
import { BinaryEncoding } from "../../src/codec/binary.js";
import { JsonEncoding } from "../../src/codec/json.js";
import { newEncoding } from "../../src/codec/encodings.js";
import { Reader, Writer } from "../../src/codec/values.js";
import { bytesOf, vectors } from "../vectors.js";

describe("the JSON encoding", () => {
  for (const frame of [
    ...["", "{", "7", "null", '"x"', "[1]", "[[]]", '{"message":7}', '{"message":"/a"}', '{"message":"/a","content":1,"at":"7"}'],
    ...['{"message":"/a","bytes":"AP+"}', '{"ok":true}', '{"gap":"/a","missed":"x"}', '{"resume_token":1}', '{"error":1.5}'],
  ]) {
    test(`refuses ${frame}`, () => assert.throws(() => new JsonEncoding().decode(frame), FrameInvalid));
  }

  test("refuses a binary frame", () => assert.throws(() => new JsonEncoding().decode(Uint8Array.of(1)), FrameInvalid));

  test("passes over what it does not know", () => {
    assert.deepEqual(new JsonEncoding().decode('[{"novelty":1},{"ok":"pong","id":1,"more":{}}]').map(({ type }) => type), ["reply"]);
    const [gap] = new JsonEncoding().decode('{"gap":"/a","at":"7.1","reason":"a new one","missed":null}');
    assert.equal(/** @type {any} */ (gap).reason, "unknown");
  });

  test("understands every line that a node sends in the scripts", () => {
    let lines = 0;
    for (const { lines: script } of vectors("sessions").cases) {
      for (const line of script.filter((each) => /^\w+ [<~] /.test(each))) {
        const filled = line.replace(/^\w+ [<~] /, "").replaceAll(/"\$\{\w*\}"/g, "7").replaceAll(/\$\{\w*\}/g, "7");
        if (/"(?:at|after|resume_token|session|node|reason|name)":7/.test(filled)) continue; // a field for any text
        assert.equal(new JsonEncoding().decode(filled).length, 1, filled);
        lines++;
      }
    }
    assert.ok(lines > 100, `${lines} lines`);
  });

  test("gives the text of JSON content exactly as it was published", () => {
    const blanks = fc.stringMatching(/^[ \n\t\r]{0,3}$/);
    const frames = fc.tuple(fc.array(fc.json(), { minLength: 1, maxLength: 4 }), blanks, fc.json());
    fc.assert(
      fc.property(frames, ([contents, blank, other]) => {
        const objects = contents.map(
          (content, n) =>
            `{${blank}"x":${blank}${other}${blank},"message":"/a/${n}","content":"first",${blank}"conten\\u0074":${content}${blank}}`,
        );
        const frame = `${blank}[${blank}${objects.join(`${blank},${blank}`)}]`;
        const messages = new JsonEncoding().decode(frame);
        assert.deepEqual(messages.map((each) => /** @type {any} */ (each).text()), contents.map((content) => content.trim()));
        const [alone] = new JsonEncoding().decode(String(objects[0]));
        assert.equal(/** @type {any} */ (alone).text(), contents[0]?.trim());
      }),
    );
  });
});

describe("the binary encoding", () => {
  const announced = bytesOf("01050780a1f4e99f34042f612f6200");

  test("reads the example of its page", () => {
    const encoding = new BinaryEncoding();
    assert.deepEqual(encoding.decode(announced), []);
    const [message] = /** @type {any[]} */ (encoding.decode(bytesOf("80053bf6017b2278223a317d")));
    assert.deepEqual([message.subject, `${message.position}`, message.timeMs, message.json()], [
      ...["/a/b", "7.59", 1795250000123, { x: 1 }],
    ]);
  });

  for (const [name, hex] of Object.entries({
    ...{ "an empty frame": "", "a number that was not announced": "80063bf60131" },
    ...{ "a frame that is cut short": "8005", "a varint that never ends": "8005ffffffffffffffffffffff01" },
    ...{ "a varint longer than it need be": "80058000f60131", "a string beyond the end": "04ff01" },
    ...{ "after before every position": "90050300053131", "text that is not UTF-8": "0402fffe00" },
  })) {
    test(`refuses ${name}`, () => {
      const encoding = new BinaryEncoding();
      encoding.decode(announced);
      assert.throws(() => encoding.decode(bytesOf(hex)), FrameInvalid);
    });
  }

  test("refuses a text frame, and passes over types that it does not know", () => {
    assert.throws(() => new BinaryEncoding().decode("{}"), FrameInvalid);
    assert.deepEqual(new BinaryEncoding().decode(bytesOf("7f0102")), []);
  });

  test("no frame whatever brings it down otherwise", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const encoding = new BinaryEncoding();
        encoding.decode(announced);
        try {
          encoding.decode(bytes);
        } catch (error) {
          assert.ok(error instanceof FrameInvalid, String(error));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("numbers are read as they were written", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }), (value) => {
        const writer = new Writer(0);
        writer.varint(value);
        writer.varint(value);
        const reader = new Reader(writer.done());
        reader.byte();
        assert.equal(reader.big(), value);
        assert.equal(reader.varint(), Number(value));
        assert.throws(() => reader.byte(), RangeError);
      }),
    );
  });
});

test("content is written by its kind, at once", () => {
  const bytes = Uint8Array.of(1, 2);
  const { written } = contentOf(bytes.subarray(1));
  bytes[1] = 9;
  assert.deepEqual(written, Uint8Array.of(2));
  assert.deepEqual(contentOf(Uint16Array.of(0x201).buffer), { kind: "bytes", written: Uint8Array.of(1, 2) });
  assert.deepEqual(contentOf("x"), { kind: "text", written: "x" });
  assert.deepEqual(contentOf(new JsonText("1.0")), { kind: "json", written: "1.0" });
  assert.deepEqual(contentOf({ toJSON: () => [1] }), { kind: "json", written: "[1]" });
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const throws = (/** @type {unknown} */ reason) => ({ toJSON: () => { throw reason; } });
  const refused = [undefined, () => {}, Symbol("a"), 1n, "\ud800", { a: { b: 1n } }, { [Symbol("a")]: 1 }, { toJSON: () => undefined }, { a: { toJSON: () => Symbol("a") } }, proxy, throws(Symbol("a")), throws(null), throws(new Error("content is gone"))];
  for (const content of refused) assert.throws(() => contentOf(content), (error) => error instanceof TypeError && /^content\b/.test(error.message));
  assert.deepEqual(contentOf({ a: { toJSON: () => undefined }, b: { toJSON: (name) => name } }).written, '{"b":"b"}');
  let deep = null;
  for (let depth = 0; depth < 200_000; depth++) deep = [deep];
  assert.throws(() => contentOf(deep), /^TypeError: content is nested too deeply/);
  const late = new RangeError("Invalid time value");
  assert.throws(() => contentOf({ at: throws(late) }), (error) => error.message === "content: Invalid time value" && error.cause === late);
});

test("base64 is decoded to the same bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 20_000 }), (bytes) => assert.deepEqual(fromBase64(toBase64(bytes)), bytes)));
  for (const text of ["A", "AA", "AA=", "A===", "AA A", "AAAA=", "____"]) assert.throws(() => fromBase64(text), RangeError);
});

test("an unknown encoding is refused at once", () => {
  assert.throws(() => newEncoding(/** @type {any} */ ("xml")), RangeError);
});
