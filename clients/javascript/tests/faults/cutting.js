// Clients that are cut at random under load miss nothing and repeat nothing.
//
// Publishers and all kinds of subscribers work through a proxy that breaks connections inside frames, handshakes and
// acknowledgements. At the end the ledger of acknowledged publishes is compared with what each subscriber was given.
// SEED=7 duplicates a run; LONG=1 cuts a thousand times, CUTS=n as often as that.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, PositionFile, matches } from "../../src/node.js";
import { startNode } from "../integration/node_process.js";
import { seeded, startProxy } from "./cutting_proxy.js";
import { Ledger, Reader } from "./ledger.js";

const CUTS = Number(process.env.CUTS ?? (process.env.LONG ? 1_000 : 100));
const SUBJECTS = Array.from({ length: 8 }, (_, n) => `/load/${n}`);
const MEAN_BYTES = 60_000; // of a connection's life
const PADDINGS = [...Array(300).fill(0), ...Array(10).fill(3_000), 30_000]; // a few fill many packets
const LOG_MESSAGES_MAX = 300;
const AHEAD_MAX = 200; // publishers wait for the readers, so that no log moves past one that is not slow on purpose
const QUICK = { reconnectFirstMs: 4, reconnectMaxMs: 40 };
const NARROW = { ...QUICK, itemsMax: 8 };
const silent = { info: () => {}, warn: () => {}, error: console.error };

/** One client, one subscription, for as long as it lasts. */
const follow = (options) => async (place) => {
  const client = new Client(place.url, { ...place.way, settings: QUICK, log: silent });
  place.clients.push(client);
  const subscription = client.subscribe(place.selector, options);
  await subscription.joined();
  place.joined();
  for await (const item of subscription.items()) place.reader.take(item);
};

/** By callbacks instead, which take their time now and then. */
const beCalled = async (place) => {
  const client = new Client(place.url, { ...place.way, settings: NARROW, log: silent });
  place.clients.push(client);
  const take = (item) => {
    place.reader.take(item);
    return place.reader.lived.size % 3 === 0 ? new Promise((resolve) => setImmediate(resolve)) : undefined;
  };
  const subscription = client.subscribe(place.selector, {}, { message: take, gap: take });
  await subscription.joined();
  place.joined();
  await subscription.done;
};

/** Read some messages, save the position, end, and begin again with a client that knows only the file. */
const comeBack = (file, each) => async (place) => {
  while (!place.isOver()) {
    const client = new Client(place.url, { ...place.way, settings: NARROW, positions: new PositionFile(file), log: silent });
    place.clients.push(client);
    const subscription = client.subscribe(place.selector);
    await subscription.joined();
    place.joined();
    let count = 0;
    for await (const item of subscription.items()) {
      place.reader.take(item);
      if (++count === each) break;
    }
    if (place.isOver()) return; // it was closed meanwhile
    subscription.handled();
    await client.close();
    place.clients.pop();
  }
};

/** Read one item for every six messages published, until nothing more is published. */
const lag = async (place) => {
  const client = new Client(place.url, { ...place.way, settings: NARROW, log: silent });
  place.clients.push(client);
  const subscription = client.subscribe(place.selector);
  await subscription.joined();
  place.joined();
  let taken = 0;
  for await (const item of subscription.items()) {
    place.reader.take(item);
    taken++;
    while (place.reader.ledger.total < 6 * taken && !place.isDone()) await place.reader.ledger.changed.wait();
  }
};

/** HTTP has one encoding. */
const wayOf = (transport, encoding) => ({ transport, encoding: transport === "auto" ? encoding : "json" });

/** What a run that hangs was waiting for: each reader's position, and the state of its client. */
function waitsFor({ proxy, ledger, places }) {
  const lines = places.map(({ name, reader, heads, clients }) => {
    const short = [...heads()].filter(([subject, head]) => (reader.stands.get(subject) ?? 0) < head);
    const behind = short.map(([subject, head]) => `${subject} ${reader.stands.get(subject) ?? 0} of ${head}`).join(", ");
    return `${name}: ${clients.map(({ isConnected }) => (isConnected ? "connected" : "away")).join(" ") || "no client"}; ${behind || "has all"}`;
  });
  return [`${proxy.cuts} cuts, ${ledger.total} messages`, ...lines].join("\n  ");
}

/**
 * @param {import("node:test").TestContext} t whatever happens, nothing that was started outlives it: a child or a socket
 * that does would keep this process, and the run of all tests, from ending
 */
async function play(t, port, random, folder, transport) {
  const proxy = await startProxy(port, random, MEAN_BYTES);
  t.after(() => proxy.stop());
  const ledger = new Ledger();
  let [isDone, isOver] = [false, false];
  const places = Object.entries({
    "subject json": [SUBJECTS[0], "json", follow({})],
    "subject binary": [SUBJECTS[0], "binary", follow({})],
    "pattern json": ["/load/*", "json", follow({})],
    "pattern binary": ["/**", "binary", follow({})],
    "called back": ["/load/*", "json", beCalled],
    "conflated subject": [SUBJECTS[1], "json", follow({ conflateMs: 100 })],
    "conflated pattern": ["/load/**", "binary", follow({ conflateMs: 100 })],
    "saved subject": [SUBJECTS[2], "binary", comeBack(join(folder, "subject.json"), 40)],
    "saved pattern": ["/load/*", "json", comeBack(join(folder, "pattern.json"), 300)],
    "slow pattern": ["/load/*", "binary", lag],
  }).map(([name, [selector, encoding, way]]) => {
    const reader = new Reader(name, ledger, name.startsWith("conflated"));
    const place = { url: proxy.url, selector, way: wayOf(transport, encoding), reader, clients: [], isDone: () => isDone, isOver: () => isOver };
    const ready = new Promise((resolve) => Object.assign(place, { joined: resolve }));
    const heads = () => ledger.heads((subject) => matches(selector, subject));
    return { ...place, name, ready, heads, clients: place.clients, running: way(place) };
  });
  t.signal.addEventListener("abort", () => isOver || console.error(waitsFor({ proxy, ledger, places })));
  t.after(() => {
    isOver = true; // also after a failure: otherwise a client that reconnects again and again would never stop
    places.map(({ clients: each }) => each.map((client) => client.close()));
  });
  const failed = Promise.race(places.map(({ running }) => running.then(() => new Promise(() => {}))));
  await Promise.race([Promise.all(places.map(({ ready }) => ready)), failed]);

  const readersKeepUp = async () => {
    for (const { reader, heads } of places.filter(({ name }) => !name.startsWith("slow"))) {
      const near = new Map([...heads()].map(([subject, head]) => [subject, head - AHEAD_MAX]));
      while (!reader.isAt(near)) await reader.moved.wait();
    }
  };
  const clients = ["json", "binary"].map((encoding) => new Client(proxy.url, { ...wayOf(transport, encoding), settings: QUICK, log: silent }));
  t.after(() => clients.map((client) => client.close()));
  const publishers = Array.from({ length: 6 }, async (_, number) => {
    for (let count = 0; proxy.cuts < CUTS; count++) {
      await readersKeepUp();
      const subject = SUBJECTS[Math.floor(random() * SUBJECTS.length)];
      const content = [number, count, "x".repeat(PADDINGS[Math.floor(random() * PADDINGS.length)])];
      ledger.write(subject, content, await clients[number % 2].publish(subject, content));
    }
  });
  await Promise.race([Promise.all(publishers), failed]);
  proxy.calm();
  isDone = true;
  ledger.changed.notify();
  await Promise.race([Promise.all(places.map(({ reader, heads }) => reader.reach(heads()))), failed]);
  isOver = true;
  await Promise.all([...clients, ...places.flatMap((place) => place.clients)].map((client) => client.close()));
  proxy.stop();
  return { proxy, ledger, places };
}

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));

/** @param {"auto" | "sse" | "poll"} transport */
export function cutAtRandom(transport) {
  test(`cut at random, nothing is missed and nothing repeated, by ${transport} (SEED=${seed})`, { timeout: CUTS * 2_000 + 120_000 }, async (t) => {
    const node = await startNode({ "node.shards": 3, "limits.log_messages_max": LOG_MESSAGES_MAX });
    t.after(() => node.kill());
    const folder = mkdtempSync(join(tmpdir(), "godwit-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const { proxy, ledger, places } = await play(t, node.port, seeded(seed), folder, transport);
    ledger.check();
    for (const { name, reader, heads } of places) {
      reader.check(heads());
      if (!name.startsWith("slow")) assert.deepEqual(reader.gaps, [], `${name} received gaps without a cause`);
    }
    const slow = places.find(({ name }) => name.startsWith("slow")).reader;
    const missed = [...slow.missed.values()].reduce((sum, each) => sum + each, 0);
    t.diagnostic(
      `${proxy.cuts} cuts, ${ledger.total} messages, ${ledger.repeats} publishes repeated; ` +
        `the slow client received ${slow.gaps.length} gaps, ${missed} messages`,
    );
    assert.ok(proxy.cuts >= CUTS && ledger.total > CUTS);
    assert.equal(node.child.exitCode, null);
    assert.equal(await node.terminate(), 0);
  });
}
