// Every argument of every public method is checked at the call: it is named, and the client lives on.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";

import { Client as AnyClient } from "../../src/client.js";
import { contentOf } from "../../src/content.js";
import { Client } from "../../src/node.js";
import { LIMITS, open } from "./opening.js";
import { Peer } from "./peer.js";

const CLIENT = fileURLToPath(new URL("../..", import.meta.url));
const SURROGATE = "\ud800";
const NO_FLAG = [0, 1, "yes", null];
const NO_COUNT = [-1, true, 1.5, "1", NaN, Infinity, 2 ** 40, null];
const NO_SUBJECT = ["a", "", SURROGATE, `/${SURROGATE}`, 1, null, undefined, "/a//b"];
const NO_FUNCTION = [1, "x", true];
const UNKNOWN = [{ timeout: 1_000 }, { Key: "x" }, { conflate_ms: 10 }]; // a misspelt option would change nothing, in silence
const options = (name, values) => values.map((value) => ["/good", { [name]: value }]);
const content = [SURROGATE, Infinity, { x: NaN }, 1n, new Map(), new Blob(["x"]), { x: new Set() }, () => 1, Symbol("x"), undefined];

/** By method: argument lists that are refused. */
const BAD = {
  subscribe: [
    ...NO_SUBJECT.map((value) => [value]),
    ...options("after", [1, true, null, "x", { "/a": 7 }, { "/a": null }, { a: "7.1" }]),
    ...options("last", NO_COUNT),
    ...options("snapshot", NO_FLAG),
    ...options("onGap", ["newest", 1, null]),
    ...options("conflateMs", [...NO_COUNT, 0]),
    ...NO_FUNCTION.map((value) => ["/good", {}, value]),
    ...NO_FUNCTION.map((message) => ["/good", {}, { message }]),
    ...UNKNOWN.map((unknown) => ["/good", unknown]),
    ...[{ message: () => {} }, { gap: () => {}, last: 1 }].map((listener) => ["/good", listener]), // it is the third argument
    ...[{}, { onMessage: () => {} }].map((listener) => ["/good", {}, listener]),
    ["/good", null],
  ],
  publish: [
    ...[...NO_SUBJECT, "/a/*"].map((value) => [value, 1]),
    ...content.map((value) => ["/good", value]),
    ...["", SURROGATE, 1, "x".repeat(257)].map((key) => ["/good", 1, { key }]),
    ...["a", "/a/*", SURROGATE, 1].map((replyTo) => ["/good", 1, { replyTo }]),
    ...[0, "yes"].map((retain) => ["/good", 1, { retain }]),
    ...NO_FLAG.map((guaranteed) => ["/good", 1, { guaranteed }]),
    ...NO_FLAG.map((once) => ["/good", 1, { once }]),
    ...["x", 1, true].map((ack) => ["/good", 1, { ack }]),
    ["/good", 1, { signal: 1 }],
    ...UNKNOWN.map((unknown) => ["/good", 1, unknown]),
    ["/good", 1, null],
  ],
  request: [
    ...[...NO_SUBJECT, "/a/*"].map((value) => [value, 1]),
    ...content.map((value) => ["/good", value]),
    ...[-1, true, "1", null, NaN].map((timeoutMs) => ["/good", 1, { timeoutMs }]),
    ...UNKNOWN.map((unknown) => ["/good", 1, unknown]),
  ],
  removeSnapshot: NO_SUBJECT.map((value) => [value]),
  setToken: [1, "", SURROGATE, null, undefined].map((value) => [value]),
  reply: [[null, 1], ["/a", 1], [{}, 1]],
  watch: [...NO_SUBJECT.map((value) => [value]), ...NO_FUNCTION.map((value) => ["/good", value])],
};
const WITHOUT_ARGUMENTS = ["connected", "pause", "resume", "close"];

/** Of the classes that users hold, the methods that the declarations name: what is not declared is not public. */
function declaredMethods() {
  const folder = mkdtempSync(join(tmpdir(), "godwit-types-"));
  try {
    execFileSync(process.execPath, [join(CLIENT, "node_modules/typescript/bin/tsc"), "-p", join(CLIENT, "tsconfig.types.json"), "--outDir", folder]);
    return ["client", "subscription", "watch"].flatMap((name) => {
      const text = readFileSync(join(folder, `${name}.d.ts`), "utf8").replaceAll(/\/\*.*?\*\//gs, "");
      const body = /export declare class \w+[^{]*\{(.*?)\n\}/s.exec(text)?.[1] ?? "";
      return [...body.matchAll(/^    (\w+)\(([^)]*)/gm)].map(([, method, parameters]) => ({ name, method, hasParameters: parameters !== "" }));
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("every public method has bad arguments here, or none", () => {
  const declared = declaredMethods().filter(({ method }) => method !== "constructor");
  assert.ok(declared.length > 15, "the declarations name the methods");
  const found = declared.filter(({ name }) => name === "client").map(({ method }) => method);
  const methods = Object.entries(Object.getOwnPropertyDescriptors(AnyClient.prototype));
  const real = methods.filter(([name, { value }]) => typeof value === "function" && name !== "constructor").map(([name]) => name);
  assert.deepEqual([...new Set(found)].sort(), real.sort());
  assert.deepEqual(real.sort(), [...Object.keys(BAD), ...WITHOUT_ARGUMENTS].sort());
  const others = declared.filter(({ name, hasParameters }) => name !== "client" && hasParameters);
  assert.deepEqual(others, [], "a method with parameters needs bad arguments here");
});

for (const [method, lists] of Object.entries(BAD)) {
  test(`${method} refuses what is wrong at the call`, LIMITS, async () => {
    const client = open(new Peer());
    for (const given of lists) {
      const call = async () => client[method](...given);
      await assert.rejects(call(), ({ name, message }) => {
        return ["TypeError", "RangeError", "SubjectInvalid", "PositionInvalid"].includes(name) && !/undefined \(/.test(message);
      }, `${method} ${String(given.at(-1))}`);
    }
    assert.equal((await client.publish("/good", 1)).position?.sequence, 1n);
    await client.close();
  });
}

test("the client refuses a wrong token, wire, setting and server", LIMITS, () => {
  const wrong = [[1], ["ws://a", { token: 1 }], ["ws://a", { token: "" }], ["ws://a", { token: SURROGATE }]];
  wrong.push(["ws://a", { encoding: "xml" }], ["ws://a", { settings: { itemsMax: 0 } }], ["ws://a", { settings: { none: 1 } }], ...UNKNOWN.map((unknown) => ["ws://a", unknown]));
  for (const log of [{}, { warn: () => {} }, 1]) wrong.push(["ws://a", { log }]);
  for (const positions of [1, {}, { get: () => {} }]) wrong.push(["ws://a", { positions }]);
  for (const name of ["onSaveFailed", "onTransport"]) wrong.push(["ws://a", { [name]: 1 }]);
  wrong.push(["ws://a", { whenHidden: "leave" }]);
  for (const given of wrong) assert.throws(() => new Client(...given), /TypeError|RangeError|Error/);
});

describe("content", () => {
  test("is sent as what it is", () => {
    const foreign = runInContext("new Uint8Array([0, 255]).buffer", createContext({}));
    assert.deepEqual(contentOf(foreign), { kind: "bytes", written: Uint8Array.of(0, 255) });
    assert.deepEqual(contentOf({ a: [1, null, undefined], b: undefined, c: new Date(0) }).written, '{"a":[1,null,null],"c":"1970-01-01T00:00:00.000Z"}');
  });

  test("names what JSON cannot hold", () => {
    assert.throws(() => contentOf({ a: [{ b: new Map() }] }), /content\.a\.0\.b is Map/);
    assert.throws(() => contentOf({ a: Uint8Array.of(1) }), /content\.a is Uint8Array/);
  });
});

test("a timeout of any length does not fire early", LIMITS, async () => {
  const client = open(new Peer());
  let settled = 0;
  for (const timeoutMs of [Infinity, 2 ** 31, 1e300]) client.request("/nobody", 1, { timeoutMs }).catch(() => settled++);
  await client.publish("/other", 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(settled, 0);
  await client.close();
});
