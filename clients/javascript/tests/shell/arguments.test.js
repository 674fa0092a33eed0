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
import { Client, JsonText, Position, ResumePoint } from "../../src/node.js";
import { shown } from "../../src/shown.js";
import { LIMITS, open } from "./opening.js";
import { Peer } from "./peer.js";

const CLIENT = fileURLToPath(new URL("../..", import.meta.url));
const SURROGATE = "\ud800";
const NOTHING = Object.create(null); // has no text
const OWN = { toString: () => { throw new Error("the user's own"); } };
const EVIL = [NOTHING, OWN, 10n ** 5_000n, Symbol("x"), new Proxy({}, {}), new Map(), [], Promise.resolve()];
const NO_FLAG = [0, 1, "yes", null, ...EVIL];
const NO_COUNT = [-1, true, 1.5, "1", NaN, Infinity, 2 ** 40, null, ...EVIL];
const NO_SUBJECT = ["a", "", SURROGATE, `/${SURROGATE}`, 1, null, undefined, "/", ["/a"], new String("/a"), ...EVIL];
const NO_FUNCTION = [1, "x", true, ...EVIL];
const NO_OPTIONS = [null, 1, "x", [], new Map(), new Date(), Promise.resolve({}), Symbol("x")]; // none of which has options
const NO_JSON = ["", "{", "1 2", "NaN", '1,"key":"another field of the command"', '"\u0000"', SURROGATE, undefined, null, 5, {}];
const NO_TOKEN = [1, "", SURROGATE, "hidden\n", "hidden\u0000", "hidden é", " hidden ", "x".repeat(65_537), { token: "hidden" }, ...EVIL];
const NO_ADDRESS = ["ws://[::1", "ws://\ud800", "ws://a/\u0000", "ws://a:x", "ws://a:0", "ws://%00", "ws://1.2.3.4.5"];
const at = (epoch, sequence) => Object.assign(new Position(1, 1), { epoch, sequence }); // by hand it may hold anything
const NO_POSITION = [at(-1n, 1n), at(1n, 2n ** 64n), at(1.5, 1), at("x", null), at({}, 1n)];
const RESUME_POINTS = [
  ...[{}, "x", 1, null, new Map([["/a", 7]]), new Map([["/a", null]]), new Map([["a", new Position(1, 2)]]), new Map([[7, new Position(1, 2)]])].map(
    (after) => Object.assign(new ResumePoint(), { after }),
  ),
  ...NO_POSITION.map((position) => new ResumePoint(new Map([["/a", position]]))),
  ...[5, "", SURROGATE, {}].flatMap((text) => [new ResumePoint(new Map(), text), new ResumePoint(new Map(), null, text)]),
  ...[-1, 1.5, "x"].map((recent) => new ResumePoint(new Map(), null, null, recent)),
  new ResumePoint(new Map(), null, null, 0, "yes"),
];
const UNKNOWN = [{ timeout: 1_000 }, { Key: "x" }, { conflate_ms: 10 }]; // a misspelt option would change nothing, in silence
const names = new Map(); // of the option that is wrong, by argument list
/** Argument lists in which one option is wrong. */
function options(name, values, ...before) {
  const lists = values.map((value) => ["/good", ...before, { [name]: value }]);
  for (const list of lists) names.set(list, name);
  return lists;
}
const cycle = {};
cycle.x = cycle;
const unwritable = { toJSON: () => { throw new Error("the user's own"); } };
const content = [
  ...[cycle, unwritable, { x: SURROGATE }, { [SURROGATE]: 1 }, [{ x: ["\\ud800", SURROGATE] }], new Date(NaN), { x: new Date(NaN) }, new Number(NaN), { x: 1n }],
  ...[{ toJSON: () => new Map() }, { x: { toJSON: () => NaN } }, { get x() { throw new Error("the user's own"); } }],
  ...NO_JSON.map((text) => new JsonText(text)),
  ...[SURROGATE, Infinity, { x: NaN }, 1n, new Map(), new Blob(["x"]), { x: new Set() }, () => 1, Symbol("x"), undefined],
];

/** By method: argument lists that are refused. */
const BAD = {
  subscribe: [
    ...NO_SUBJECT.map((value) => [value]),
    ...options("after", [1, true, null, "x", "", { "/a": 7 }, { "/a": null }, { a: "7.1" }, new Map([["/a", 7]]), [], new Date(), Promise.resolve({}), Symbol("x")]),
    ...options("after", [...NO_POSITION, ...NO_POSITION.map((position) => ({ "/a": position })), ...RESUME_POINTS]),
    ...options("last", NO_COUNT),
    ...options("snapshot", NO_FLAG),
    ...options("onGap", ["newest", 1, null, ...EVIL]),
    ...options("conflateMs", [...NO_COUNT, 0]),
    ...NO_FUNCTION.map((value) => ["/good", {}, value]),
    ...NO_FUNCTION.map((message) => ["/good", {}, { message }]),
    ...UNKNOWN.map((unknown) => ["/good", unknown]),
    ...[{ message: () => {} }, { gap: () => {}, last: 1 }].map((listener) => ["/good", listener]), // it is the third argument
    ...[{}, { onMessage: () => {} }].map((listener) => ["/good", {}, listener]),
    ...NO_OPTIONS.map((given) => ["/good", given]),
  ],
  publish: [
    ...[...NO_SUBJECT, "/a/*"].map((value) => [value, 1]),
    ...content.map((value) => ["/good", value]),
    ...options("key", ["", SURROGATE, 1, "x".repeat(257), ...EVIL], 1),
    ...options("replyTo", ["a", "/a/*", SURROGATE, 1, ["/a"], ...EVIL], 1),
    ...options("retain", [0, "yes"], 1),
    ...options("fields", [1, "x", ["a"], new Map([["a", "x"]]), { "": "x" }, { a: 1 }, { ["x".repeat(257)]: "" }, { a: SURROGATE }, { [SURROGATE]: "" }, { "a\n": "" }, { "\0": "" }, { "\x7f": "" }, { "\x85": "" }], 1),
    ...options("guaranteed", NO_FLAG, 1),
    ...options("once", NO_FLAG, 1),
    ...options("ack", ["x", 1, true, ...EVIL], 1),
    ...options("signal", [1, ...EVIL], 1),
    ...UNKNOWN.map((unknown) => ["/good", 1, unknown]),
    ...NO_OPTIONS.map((given) => ["/good", 1, given]),
  ],
  request: [
    ...[...NO_SUBJECT, "/a/*"].map((value) => [value, 1]),
    ...content.map((value) => ["/good", value]),
    ...NO_OPTIONS.map((given) => ["/good", 1, given]),
    ...options("timeoutMs", [-1, true, "1", null, NaN, ...EVIL], 1),
    ...UNKNOWN.map((unknown) => ["/good", 1, unknown]),
  ],
  removeSnapshot: NO_SUBJECT.map((value) => [value]),
  setToken: [...NO_TOKEN, null, undefined].map((value) => [value]),
  reply: [null, "/a", {}, ...EVIL].map((request) => [request, 1]),
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
        const isNamed = message.includes(names.get(given) ?? "") || name === "PositionInvalid"; // which shows what was given
        return isNamed && ["TypeError", "RangeError", "SubjectInvalid", "PositionInvalid"].includes(name) && !/undefined \(/.test(message);
      }, `${method} ${names.get(given) ?? ""} ${shown(given.at(-1))}`);
    }
    assert.equal((await client.publish("/good", 1)).position?.sequence, 1n);
    await client.close();
  });
}

test("the client refuses a wrong token, encoding, setting and server", LIMITS, () => {
  const wrong = [[1], ...NO_TOKEN.map((token) => ["ws://a", { token }])];
  wrong.push(["ws://a", { encoding: "xml" }], ["ws://a", { settings: { itemsMax: 0 } }], ["ws://a", { settings: { none: 1 } }], ["ws://a", { settings: { toString: 1 } }], ...UNKNOWN.map((unknown) => ["ws://a", unknown]));
  for (const servers of [...EVIL, 1, null, undefined, {}, new Map(), ...NO_ADDRESS, ...NO_ADDRESS.map((address) => ["ws://a", address])]) wrong.push([servers]);
  for (const weight of [null, true, "", "1", 1n, NaN, -1, 1e10, Infinity, ...EVIL]) wrong.push([[["ws://a", weight]]]);
  for (const name of ["token", "encoding", "pauseHiddenMs", "whenHidden", "transport", "settings", "log"]) for (const value of EVIL) if (name !== "settings" || typeof value !== "object" || value instanceof Map) wrong.push(["ws://a", { [name]: value }]);
  for (const settings of [1, true, "x", [], new Map(), Promise.resolve()]) wrong.push(["ws://a", { settings }]);
  for (const value of EVIL) for (const name of ["itemsMax", "connectTimeoutMs", "frameBytesMax", "onUnknownPublish"]) wrong.push(["ws://a", { settings: { [name]: value } }]);
  for (const given of NO_OPTIONS) wrong.push(["ws://a", given]);
  for (const log of [{}, { warn: () => {} }, 1]) wrong.push(["ws://a", { log }]);
  for (const positions of [1, {}, { get: () => {} }]) wrong.push(["ws://a", { positions }]);
  for (const name of ["onSaveFailed", "onTransport"]) wrong.push(["ws://a", { [name]: 1 }]);
  wrong.push(["ws://a", { whenHidden: "leave" }]);
  for (const given of wrong) {
    const [name = "server"] = Object.keys(given[1] ?? {});
    const [setting = name] = Object.keys(given[1]?.settings ?? {});
    assert.throws(() => new Client(...given), ({ message }) => !message.includes("hidden") && [name, setting, "server", "address", "option"].some((word) => message.includes(word)), setting);
  }
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
