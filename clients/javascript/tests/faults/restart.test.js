// Nodes that die, leave, or freeze: what a client makes of it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";

import { Client } from "../../src/node.js";
import { startNode } from "../integration/node_process.js";
import { seeded, startProxy } from "./cutting_proxy.js";

const LIMITS = { timeout: 60_000 };
const QUICK = { reconnectFirstMs: 4, reconnectMaxMs: 40, answerTimeoutMs: 200 };
const silent = { info: () => {}, warn: () => {}, error: console.error };

/** The next item of a type. */
async function next(items, type) {
  for (;;) {
    const { value, done } = await items.next();
    assert.equal(done, false, `ended before a ${type}`);
    if (value.type === type) return value;
  }
}

for (const encoding of /** @type {const} */ (["json", "binary"])) {
  test(`after a kill and a restart without messages, a subscription receives a gap with reason epoch, then live messages, on ${encoding}`, LIMITS, async () => {
    const first = await startNode();
    const proxy = await startProxy(first.port, seeded(1), Infinity);
    const client = new Client(proxy.url, { encoding, settings: QUICK, log: silent });
    const items = client.subscribe("/a").items();
    await client.publish("/a", 1);
    assert.equal((await next(items, "message")).json(), 1);
    await first.kill();
    assert.equal((await next(items, "status")).state, "disconnected");
    const publishing = client.publish("/a", 2);
    const second = await startNode();
    proxy.redirect(second.port);
    await publishing;
    const gap = await next(items, "gap");
    assert.deepEqual([gap.reason, String(gap.after.epoch) === String(gap.position.epoch)], ["epoch", false]);
    await client.publish("/a", 3);
    const seen = [];
    while (seen.at(-1) !== 3) seen.push((await next(items, "message")).json());
    assert.deepEqual(seen, [2, 3]);
    await client.close();
    proxy.stop();
    await second.terminate();
  });
}

test("after a kill, a pattern receives one gap for all subjects, then continues", LIMITS, async () => {
  const first = await startNode({ "node.name": "same" });
  const proxy = await startProxy(first.port, seeded(1), Infinity);
  const client = new Client(proxy.url, { settings: QUICK, log: silent });
  const subscription = client.subscribe("/p/**");
  const items = subscription.items();
  await subscription.joined();
  for (const n of [1, 2, 3]) await client.publish(`/p/${n}`, n);
  for (const n of [1, 2, 3]) assert.equal((await next(items, "message")).json(), n);
  await first.kill();
  const second = await startNode({ "node.name": "same" });
  proxy.redirect(second.port);
  const gap = await next(items, "gap");
  assert.deepEqual([gap.subject, gap.pattern, gap.position, gap.missed, gap.reason], ["/p/**", "/p/**", null, null, "epoch"]);
  await subscription.joined();
  await client.publish("/p/1", 4);
  assert.equal((await next(items, "message")).json(), 4);
  assert.equal(subscription.counts.gaps, 1);
  await client.close();
  proxy.stop();
  await second.terminate();
});

test("clients leave a draining node at the time it sets, and request everything from the next one", LIMITS, async () => {
  const [first, second] = [await startNode({ "drain.spread_ms": 100 }), await startNode()];
  const proxy = await startProxy(first.port, seeded(1), Infinity);
  const client = new Client(proxy.url, { settings: QUICK, log: silent });
  const items = client.subscribe("/a").items();
  await client.publish("/a", 1);
  await next(items, "message");
  proxy.redirect(second.port);
  const leaving = first.terminate();
  const published = [];
  for (let n = 2; n < 200; n++) published.push(await client.publish("/a", n));
  assert.equal(await leaving, 0);
  assert.ok(published.every(({ position }) => position !== null));
  let last = 0;
  while (last !== 199) last = (await next(items, "message")).json();
  await client.close();
  proxy.stop();
  await second.terminate();
});

test("over HTTP what a node refuses that leaves is asked of the next, though no connection ends", LIMITS, async () => {
  const [first, second] = [await startNode({ "drain.grace_ms": 1_000 }), await startNode()];
  const open = () => new Client([[first.url, 1], [second.url, 0]], { transport: "sse", settings: QUICK, log: silent });
  const clients = [open(), open()];
  const [reader, publisher] = clients;
  for (const client of clients) await client.connected();
  const watch = connect(first.port, first.host);
  await once(watch, "connect");
  const leaving = first.terminate();
  // It refuses from some moment on; a connection that asks nothing just then is closed instead.
  const closed = once(watch, "close").then(() => [" 503 "]);
  for (let answer = ""; !answer.includes(" 503 "); [answer] = (await Promise.race([once(watch, "data"), closed])).map(String)) {
    watch.write("POST /v1/messages HTTP/1.1\r\nHost: n\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]");
  }
  const subscription = reader.subscribe("/a");
  await publisher.publish("/a", 1);
  assert.equal(await leaving, 0);
  await subscription.joined();
  for await (const message of subscription) {
    assert.equal(message.json(), 1);
    break;
  }
  for (const client of clients) await client.close();
  watch.destroy();
  await second.kill();
});

test("a node that freezes is found out, and gone on with when it thaws", LIMITS, async () => {
  const frozen = await startNode({ "limits.ping_interval_ms": 200 });
  const client = new Client(frozen.url, { settings: { ...QUICK, connectTimeoutMs: 200 }, log: silent });
  const items = client.subscribe("/a").items();
  await client.publish("/a", 1);
  await next(items, "message");
  frozen.child.kill("SIGSTOP");
  const status = await next(items, "status");
  assert.deepEqual([status.state, status.reason], ["disconnected", "the server does not answer"]);
  const publishing = client.publish("/a", 2);
  frozen.child.kill("SIGCONT");
  assert.equal(String((await publishing).position?.sequence), "2");
  assert.equal((await next(items, "message")).json(), 2);
  await client.close();
  await frozen.terminate();
});
