// A store that fails: the next save has what the last one had not, and what still fails at the end is what `close` rejects with.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Signal } from "../../src/signal.js";
import { ClientClosed, PositionFile } from "../../src/node.js";
import { LIMITS, logOf, open, take } from "../shell/opening.js";
import { Peer } from "../shell/peer.js";

const settings = { positionsSaveMs: 2 };

test("a file is saved once its folder exists again", LIMITS, async () => {
  const folder = mkdtempSync(join(tmpdir(), "godwit-"));
  const path = join(folder, "later", "p");
  const lines = [];
  const failed = new Signal();
  const log = { ...logOf(lines), error: (...all) => (lines.push(all.join(" ")), failed.notify()) };
  const peer = new Peer();
  const client = open(peer, { settings, positions: new PositionFile(path), log });
  peer.append("/a", 1);
  const waiting = failed.wait();
  const subscription = client.subscribe("/a");
  assert.deepEqual(await take(subscription, 1), [1]);
  subscription.handled();
  await waiting;
  mkdirSync(join(folder, "later"));
  await client.close();
  assert.equal(lines.filter((line) => line.includes("could not save positions")).length, 1);
  assert.deepEqual(new PositionFile(path).get("/a"), { after: { "/a": "7.1" } });
  rmSync(folder, { recursive: true });
});

test("what cannot be saved at the end is what close rejects with", LIMITS, async () => {
  const peer = new Peer();
  const client = open(peer, { settings, positions: new PositionFile(join(tmpdir(), "godwit-none", "p")) });
  peer.append("/a", 1);
  const subscription = client.subscribe("/a");
  await take(subscription, 1);
  subscription.handled();
  await assert.rejects(client.close(), { code: "ENOENT" });
});

test("a store that fails once is given the position again", LIMITS, async () => {
  let fails = 1;
  const put = new Signal();
  const saved = new Map();
  const set = (selector, resumePoint) => {
    if (fails-- > 0) throw new Error("the storage is full");
    saved.set(selector, resumePoint);
    put.notify();
  };
  const [peer, events] = [new Peer(), []];
  const client = open(peer, { settings, positions: { get: () => undefined, set }, onSaveFailed: ({ message }) => events.push(message) });
  peer.append("/a", 1);
  const waiting = put.wait();
  const subscription = client.subscribe("/a");
  await take(subscription, 1);
  subscription.handled();
  await waiting;
  assert.deepEqual(saved.get("/a"), { after: { "/a": "7.1" } });
  assert.deepEqual(events, ["the storage is full"]);
  await client.close();
});

test("a full store fails no other selector: each continues from its position, and what can be saved is", LIMITS, async () => {
  const [peer, saved, events] = [new Peer(), new Map(), []];
  let full = ["/a", "/b"];
  const set = (selector, resumePoint) => {
    if (full.includes(selector)) throw new Error(`no room for ${selector}`);
    saved.set(selector, resumePoint);
  };
  const positions = { get: (selector) => saved.get(selector), set };
  const client = open(peer, { settings: { positionsSaveMs: 3_600_000 }, positions, onSaveFailed: ({ message }) => events.push(message) });
  for (const subject of ["/a", "/b"]) {
    peer.append(subject, 1);
    const subscription = client.subscribe(subject);
    assert.deepEqual(await take(subscription, 1), [1]);
    subscription.handled();
    if (subject === "/b") subscription.close();
  }
  await peer.hear("unsubscribe");
  peer.append("/b", 2);
  assert.deepEqual(await take(client.subscribe("/b"), 1), [2]);
  const [, , again] = await peer.hear("subscribe", 3);
  assert.deepEqual([again.subscribe, again.after], ["/b", "7.1"]);
  assert.deepEqual(events, ["no room for /a"]);
  full = ["/a"];
  await assert.rejects(client.close(), /no room for \/a/);
  assert.equal(saved.has("/b"), true);
});

test("a store that takes its time is called once at a time", LIMITS, async () => {
  let [running, calls] = [0, 0];
  const enough = new Signal();
  const save = async () => {
    assert.equal(++running, 1);
    await new Promise((resolve) => setTimeout(resolve, 10));
    running--;
    if (++calls === 3) enough.notify();
  };
  const waiting = enough.wait();
  const client = open(new Peer(), { settings, positions: { get: () => undefined, set: () => {}, save } });
  await waiting;
  await client.close();
});

test("a request whose client is closed ends at once", LIMITS, async () => {
  const peer = new Peer();
  const client = open(peer);
  const request = client.request("/nobody", 1, { timeoutMs: 3_600_000 });
  request.catch(() => {});
  await peer.hear("publish");
  while (peer.keys.size === 0) await new Promise((resolve) => setImmediate(resolve));
  await client.close();
  await assert.rejects(request, ClientClosed);
});

test("a save that never ends holds up nothing for longer than ten seconds", LIMITS, async (t) => {
  const peer = new Peer();
  const asked = new Signal();
  const waiting = asked.wait();
  const save = () => (asked.notify(), new Promise(() => {}));
  const client = open(peer, { settings, positions: { get: () => undefined, set: () => {}, save } });
  peer.append("/a", 1);
  const subscription = client.subscribe("/a");
  await take(subscription, 1);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await waiting;
  const closing = client.close();
  while (!(await Promise.race([closing.then(() => "closed", () => "refused"), new Promise((resolve) => setImmediate(resolve))]))) t.mock.timers.tick(10_000);
  await assert.rejects(closing, /did not save within 10000 ms/);
});

test("a store whose promises reject is reported, and no rejection is unhandled", LIMITS, async () => {
  const [peer, reported] = [new Peer(), new Signal()];
  const waiting = reported.wait();
  const set = async () => {
    throw new Error("the database is gone");
  };
  const client = open(peer, { settings, positions: { get: () => null, set }, onSaveFailed: () => reported.notify() });
  peer.append("/a", 1);
  const subscription = client.subscribe("/a");
  await take(subscription, 1);
  subscription.handled();
  await waiting;
  await client.close().catch(() => {});
});

test("a position that an asynchronous store rejects is given again, also after the end of its subscription", LIMITS, async () => {
  const [peer, saved, events, refused] = [new Peer(), new Map(), [], new Signal()];
  let fails = 1;
  const set = async (selector, resumePoint) => {
    if (fails-- > 0) throw new Error("the database is gone");
    saved.set(selector, resumePoint);
  };
  const onSaveFailed = ({ message }) => (events.push(message), refused.notify());
  const client = open(peer, { settings, positions: { get: () => null, set }, onSaveFailed });
  peer.append("/a", 1);
  const subscription = client.subscribe("/a");
  await take(subscription, 1);
  const waiting = refused.wait();
  subscription.handled();
  subscription.close();
  await waiting;
  await client.close();
  assert.deepEqual(saved.get("/a"), { after: { "/a": "7.1" } });
  assert.deepEqual(events, ["the database is gone"]);
});

test("close waits for the writes of an asynchronous store, and rejects with their error", LIMITS, async () => {
  for (const isRejected of [false, true]) {
    const [peer, saved] = [new Peer(), new Map()];
    const set = async (selector, resumePoint) => {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (isRejected) throw new Error("the database is gone");
      saved.set(selector, resumePoint);
    };
    const client = open(peer, { settings: { positionsSaveMs: 3_600_000 }, positions: { get: () => null, set } });
    peer.append("/a", 1);
    const subscription = client.subscribe("/a");
    await take(subscription, 1);
    subscription.handled();
    const closing = client.close();
    if (isRejected) await assert.rejects(closing, /the database is gone/);
    else await closing;
    assert.equal(saved.has("/a"), !isRejected);
  }
});

test("what is read after the end of a subscription is saved, unless a later one of its selector began", LIMITS, async () => {
  for (const isLater of [false, true]) {
    const [peer, saved, put] = [new Peer(), new Map(), new Signal()];
    const set = (selector, resumePoint) => (saved.set(selector, resumePoint), put.notify());
    const client = open(peer, { settings, positions: { get: (selector) => saved.get(selector), set } });
    for (const content of [1, 2, 3]) peer.append("/a", content);
    const first = client.subscribe("/a");
    await first.joined();
    await take(first, 1);
    first.close();
    const waiting = put.wait();
    first.handled();
    await waiting;
    if (isLater) {
      const later = client.subscribe("/a");
      assert.deepEqual(await take(later, 2), [2, 3]);
      later.handled();
      later.close();
    }
    assert.equal(first.take().json(), 2);
    first.handled();
    await client.close();
    assert.deepEqual(saved.get("/a"), { after: { "/a": isLater ? "7.3" : "7.2" } });
  }
});

test("a store that cannot be opened ends the client with its reason", LIMITS, async () => {
  const lines = [];
  for (const open_ of [() => Promise.reject(new Error("locked")), () => { throw new Error("locked"); }]) {
    const client = open(new Peer(), { settings, positions: { get: () => null, set: () => {}, open: open_ }, log: logOf(lines) });
    await assert.rejects(client.connected(), /store of positions cannot be opened: Error: locked/);
    await assert.rejects(client.close(), /locked/);
  }
  assert.deepEqual(lines, []);
});

test("what a store gives that is no saved position is refused", LIMITS, async () => {
  for (const given of [new Map(), [], 5, "7.1"]) {
    const client = open(new Peer(), { settings, positions: { get: () => given, set: () => {} } });
    assert.throws(() => client.subscribe("/a"), { name: "PositionInvalid" });
    await client.close();
  }
});

test("a store whose get returns a promise is refused where it is read, and its error is not unhandled", LIMITS, async () => {
  const [peer, unhandled] = [new Peer(), []];
  const listen = (error) => unhandled.push(error);
  process.on("unhandledRejection", listen);
  const client = open(peer, { settings, positions: { get: () => Promise.reject(new Error("locked")), set: () => {} } });
  assert.throws(() => client.subscribe("/a"), { name: "TypeError", message: /positions\.get returned a promise/ });
  await client.close();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", listen);
  assert.deepEqual(unhandled, []);
});

test("what set and save return is awaited if it has a then, also if another library made it", LIMITS, async () => {
  for (const verb of ["set", "save"]) {
    const [peer, events] = [new Peer(), []];
    const failing = { then: (_, reject) => void reject(new Error(`${verb} failed`)) };
    const positions = { get: () => undefined, set: () => undefined, [verb]: () => failing };
    const client = open(peer, { settings, positions, onSaveFailed: ({ message }) => events.push(message) });
    peer.append("/a", 1);
    const subscription = client.subscribe("/a");
    await take(subscription, 1);
    subscription.handled();
    await assert.rejects(client.close(), { message: `${verb} failed` });
    assert.deepEqual(events, [`${verb} failed`]);
  }
});
