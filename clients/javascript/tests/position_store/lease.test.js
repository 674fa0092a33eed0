// The lease on a file of positions: one holder at a time, void if its counter stops, and a lost lease is reported.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { PositionFileHeld, PositionFileInvalid } from "../../src/errors.js";
import { Lease } from "../../src/position_store/lease.js";
import { PositionFile } from "../../src/node.js";
import { open } from "../shell/opening.js";
import { Peer } from "../shell/peer.js";

const LIMITS = { timeout: 20_000 };
const VOID_MS = 400;
let folder, path;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "godwit-lease-"));
  path = join(folder, "p");
});
afterEach(() => rmSync(folder, { recursive: true }));

test("released it is the next one's at once, and nothing is left", LIMITS, async () => {
  const [first, second] = [new Lease(path, VOID_MS), new Lease(path, VOID_MS)];
  await first.acquire();
  assert.deepEqual(Object.keys(JSON.parse(readFileSync(`${path}.lock`, "utf8"))), ["owner", "host", "pid", "beat"]);
  first.release();
  await second.acquire();
  second.check();
  second.release();
  assert.deepEqual(readdirSync(folder), []);
});

test("a second one is refused with the holder's name", LIMITS, async () => {
  const [first, second] = [new Lease(path, VOID_MS), new Lease(path, VOID_MS)];
  await first.acquire();
  const beating = setInterval(() => first.renew(), 50);
  await assert.rejects(second.acquire(), (error) => error instanceof PositionFileHeld && error.pid === String(process.pid));
  clearInterval(beating);
  first.check();
});

test("one that does not beat is void, and its owner learns it", LIMITS, async () => {
  const [frozen, second] = [new Lease(path, VOID_MS), new Lease(path, VOID_MS)];
  await frozen.acquire();
  await second.acquire();
  for (const check of [() => frozen.check(), () => frozen.renew(), () => frozen.check()]) assert.throws(check, PositionFileHeld);
  frozen.release();
  second.check();
});

test("something else in its place is void too", LIMITS, async () => {
  writeFileSync(`${path}.lock`, "[not json");
  await new Lease(path, VOID_MS).acquire();
});

test("a client ends when another took its file, and leaves it alone", LIMITS, async () => {
  const peer = new Peer();
  const client = open(peer, { settings: { positionsSaveMs: 10 }, positions: new PositionFile(path) });
  const subscription = client.subscribe("/a");
  await subscription.joined();
  writeFileSync(`${path}.lock`, JSON.stringify({ owner: "x", host: "elsewhere", pid: 7, beat: 1 }));
  writeFileSync(path, '{"/theirs": {}}');
  await assert.rejects(async () => {
    for await (const _ of subscription);
  }, PositionFileHeld);
  await assert.rejects(client.close(), PositionFileHeld);
  assert.equal(readFileSync(path, "utf8"), '{"/theirs": {}}');
  assert.equal(JSON.parse(readFileSync(`${path}.lock`, "utf8")).owner, "x");
});

test("a client that is closed while it waits for its file ends at once", { timeout: 5_000 }, async () => {
  const other = new Lease(path);
  await other.acquire();
  const client = open(new Peer(), { positions: new PositionFile(path) });
  await new Promise((resolve) => setImmediate(resolve));
  await client.close();
  other.check();
  other.release();
  assert.deepEqual(readdirSync(folder), []);
});

test("a lock that leads nowhere is an error, and no endless loop", LIMITS, async () => {
  symlinkSync("nowhere", `${path}.lock`);
  await assert.rejects(new Lease(path, VOID_MS).acquire(), /cannot be read/);
});

test("a file that is damaged before the client begins is refused, and its lease is released", LIMITS, async () => {
  const positions = new PositionFile(path);
  writeFileSync(path, "{");
  const client = open(new Peer(), { positions });
  await assert.rejects(client.connected(), PositionFileInvalid);
  await client.close().catch(() => {});
  assert.deepEqual(readdirSync(folder), ["p"]);
});
