// One stream of events carries everything, also where there are as few connections as a browser may have left.

import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";

import { Client } from "../../src/node.js";
import { httpTransport } from "../../src/transport/http/http_link.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 30_000 };
const silent = { info: () => {}, warn: () => {}, error: console.error };
let node;
let subjects = 0;
const fresh = () => `/s/${++subjects}`;

before(async () => {
  node = await startNode();
});
after(async () => {
  assert.equal(await node.terminate(), 0);
});

/** A client over so many connections; `asked` are its requests, `most` the connections at once. */
function open(way, maxSockets) {
  const agent = new Agent({ maxSockets, keepAlive: true });
  const found = { asked: [], most: 0, client: null };
  const ask = (url, { method = "GET", headers, body, signal }) =>
    new Promise((resolve, reject) => {
      found.asked.push(`${method} ${new URL(url).pathname}`);
      const asking = request(url, { agent, method, headers, signal }, (answer) => {
        found.most = Math.max(found.most, Object.values(agent.sockets).flat().length);
        answer.on("error", () => {});
        const fields = { get: (name) => answer.headers[name] ?? null };
        resolve({ status: answer.statusCode, headers: fields, body: Readable.toWeb(answer) });
      });
      asking.on("error", reject);
      asking.end(body);
    });
  found.client = new Client(node.url, { log: silent, transport: httpTransport(way, { ask, now: () => performance.now() }) });
  return found;
}

const streams = ({ asked }) => asked.filter((each) => each === "POST /v1/stream").length;

test("subscriptions and watches of one client are one stream, and changes within 50 ms are one", LIMITS, async () => {
  const found = open("sse", 6);
  const { client } = found;
  await client.connected();
  const subscriptions = [];
  for (let count = 0; count < 30; count++) {
    subscriptions.push(client.subscribe(fresh(), { conflateMs: 100 + (count % 2), onGap: count % 3 ? "oldest" : "snapshot", last: 1 + (count % 5) }));
    if (count % 10 === 9) client.watch(fresh());
    await Promise.resolve();
  }
  await Promise.all(subscriptions.map((each) => each.joined()));
  assert.ok(streams(found) <= 3, `${streams(found)} streams were opened`);
  assert.ok(found.most <= 3, "the one that is, the one that takes its place, and a request");
  await client.close();
});

for (const way of /** @type {const} */ (["sse", "poll"])) {
  test(`by ${way} over one connection a publish gets it after a while, and nothing is missed`, LIMITS, async () => {
    const found = open(way, 1);
    const { client } = found;
    const subject = fresh();
    const first = client.subscribe(subject, { snapshot: false });
    await first.joined();
    const seen = [];
    const reading = (async () => {
      for await (const message of first) if (seen.push(message.json()) === 3) return;
    })();
    for (const number of [1, 2]) await client.publish(subject, number);
    const second = client.subscribe(fresh(), { snapshot: false });
    await second.joined();
    await client.publish(subject, 3);
    await reading;
    assert.deepEqual([seen, found.most], [[1, 2, 3], 1]);
    assert.deepEqual([first.counts.gaps, first.counts.missing], [0, 0]);
    await client.close();
  });
}
