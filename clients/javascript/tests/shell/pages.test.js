// What time does to a client: its token grows old, its page is hidden, frozen, left.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Client as AnyClient } from "../../src/client.js";
import { node } from "../../src/platform/node.js";
import { LIMITS, QUICK, logOf, numbers, open, openOnPage, take } from "./opening.js";
import { Peer } from "./peer.js";

describe("tokens", LIMITS, () => {
  test("are requested at each connect, and again when one is about to expire", async () => {
    const peer = new Peer();
    let count = 0;
    const client = open(peer, { token: async () => `t${++count}`, settings: { answerTimeoutMs: 40 } });
    await client.connected();
    peer.say({ notice: "token_expiring", in_ms: 60_000 });
    const renewed = await peer.hear("connect", 2);
    peer.cut();
    const all = await peer.hear("connect", 3);
    assert.deepEqual(all.map(({ connect }) => connect.token), ["t1", "t2", "t3"]);
    assert.equal(renewed.length, 2);
    await client.close();
  });

  test("that cannot be obtained are requested again, with a warning", async () => {
    const [peer, lines] = [new Peer(), []];
    let count = 0;
    const token = () => (++count < 3 ? Promise.reject(new Error("no")) : "t");
    const client = open(peer, { token, log: logOf(lines) });
    await client.connected();
    assert.equal(lines.filter((line) => line.startsWith("godwit: no token")).length, 2);
    await client.close();
  });

  test("that cannot be renewed are requested again after a while, and the client stays connected", async () => {
    const [peer, lines, clock] = [new Peer(), [], { now: 0 }];
    const answers = ["first", new Error("no"), "second"];
    const token = async () => {
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    };
    const platform = { ...node, now: () => clock.now };
    const settings = { ...QUICK, answerTimeoutMs: 40 };
    const client = new AnyClient("ws://x", { transport: peer.transport, token, log: logOf(lines), settings }, platform);
    await client.connected();
    peer.say({ notice: "token_expiring", in_ms: 60_000 });
    clock.now += 1_000; // never twice within a second
    while (answers.length > 1) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(answers.length, 1);
    clock.now += 5_000;
    assert.deepEqual((await peer.hear("connect", 2)).map(({ connect }) => connect.token), ["first", "second"]);
    assert.ok(lines.some((line) => line.includes("could not renew the token")));
    await client.close();
  });

  test("that expired while the client slept are fetched again", async () => {
    const peer = new Peer();
    let count = 0;
    const client = open(peer, { token: () => `t${++count}` });
    await client.connected();
    peer.cut(4003, "");
    assert.equal((await peer.hear("connect", 2))[1].connect.token, "t2");
    await client.close();
  });
});

describe("a page", LIMITS, () => {
  test("that is hidden for long disconnects, and continues from its position when it is visible again", async () => {
    const peer = new Peer();
    const { client, page } = openOnPage(peer, { pauseHiddenMs: 5 });
    const subscription = client.subscribe("/a");
    await subscription.joined();
    page.events.hidden();
    await peer.until(() => peer.links.size === 0);
    assert.deepEqual([client.isPaused, client.isConnected, client.loss], [true, false, "paused"]);
    peer.append("/a", 1);
    const publishing = client.publish("/a", 2);
    assert.equal(peer.urls.length, 1, "it stays away");
    page.events.visible();
    assert.equal(String((await publishing).position), "7.2");
    assert.deepEqual(await take(subscription, 2), [1, 2]);
    assert.equal(client.isPaused, false);
    await client.close();
    assert.equal(page.isWatched, false);
  });

  test("that is visible again soon stays connected, and its connection is checked", async () => {
    const peer = new Peer();
    const { client, page } = openOnPage(peer, { pauseHiddenMs: 60_000, settings: { answerTimeoutMs: 40 } });
    await client.connected();
    page.events.hidden();
    page.events.visible();
    await peer.hear("ping");
    assert.equal(peer.urls.length, 1);
    await client.close();
  });

  test("whose user paused it is not resumed by being looked at", async () => {
    const peer = new Peer();
    const { client, page } = openOnPage(peer, { pauseHiddenMs: 1 });
    await client.connected();
    client.pause();
    await peer.until(() => peer.links.size === 0);
    page.events.hidden();
    page.events.visible();
    assert.equal(client.isPaused, true);
    client.resume();
    await peer.hear("connect", 2);
    await client.close();
  });

  test("that is online again reconnects at once", async () => {
    const peer = new Peer();
    peer.isClosed = true;
    const { client, page } = openOnPage(peer, { settings: { reconnectFirstMs: 3_600_000, reconnectMaxMs: 3_600_000 } });
    await peer.until(() => peer.urls.length === 1);
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    peer.isClosed = false;
    page.events.online();
    await client.connected();
    await client.close();
  });

  test("that subscribes again continues from its position, saved or not", async () => {
    const [peer, positions] = [new Peer(), new Map()];
    const { client } = openOnPage(peer, { positions, settings: { positionsSaveMs: 3_600_000 } });
    const subscription = client.subscribe("/a");
    await subscription.joined();
    for (const n of numbers(3)) peer.append("/a", n);
    await take(subscription, 2);
    subscription.handled();
    subscription.close();
    assert.deepEqual(await take(client.subscribe("/a"), 1), [2]);
    await client.close();
  });

  test("whose store fails continues, with a warning", async () => {
    const [peer, lines] = [new Peer(), []];
    const store = { get: () => undefined, set: () => {}, save: () => Promise.reject(new Error("full")) };
    const { client, page } = openOnPage(peer, { positions: store, log: logOf(lines) });
    const subscription = client.subscribe("/a");
    await subscription.joined();
    page.events.leaving();
    await client.publish("/a", 1);
    assert.deepEqual(await take(subscription, 1), [1]);
    await assert.rejects(client.close(), /full/);
    assert.ok(lines.some((line) => line.includes("could not save positions")));
  });

  test("whose saved position was voided by a gap of the whole pattern forgets it", async () => {
    const [peer, positions] = [new Peer(), new Map([["/a/*", { since: "1.2.3" }]])];
    const { client } = openOnPage(peer, { positions });
    const subscription = client.subscribe("/a/*");
    const items = subscription.items();
    assert.equal((await items.next()).value.type, "status");
    peer.say({ gap: "/a/*", after: null, at: null, reason: "epoch", missed: null, pattern: "/a/*" });
    assert.equal((await items.next()).value.type, "gap");
    subscription.handled();
    await client.close();
    assert.deepEqual([...positions.keys()], []);
  });

  test("that is left has saved its positions", async () => {
    const [peer, positions] = [new Peer(), new Map()];
    const { client, page } = openOnPage(peer, { positions, settings: { positionsSaveMs: 3_600_000 } });
    const subscription = client.subscribe("/a");
    await subscription.joined();
    for (const n of numbers(3)) peer.append("/a", n);
    await take(subscription, 2);
    page.events.hidden();
    assert.deepEqual(positions.get("/a"), { after: { "/a": "7.1" } }, "the second is in hand");
    subscription.handled();
    page.events.leaving();
    assert.deepEqual(positions.get("/a"), { after: { "/a": "7.2" } });
    await client.close();
    const { client: other } = openOnPage(peer, { positions });
    assert.deepEqual(await take(other.subscribe("/a"), 1), [2]);
    await other.close();
  });
});
