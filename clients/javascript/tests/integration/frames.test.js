// Messages longer than a client accepts: it receives a gap instead of each, and continues. Others of more than two megabytes arrive.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client } from "../../src/node.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 60_000 };
const QUICK = { reconnectFirstMs: 4, reconnectMaxMs: 40, publishQueueBytesMax: 1 << 26 };
const silent = { info: () => {}, warn: () => {}, error: console.error };
const LARGE = ["\u0001".repeat(400_000), new Uint8Array(3 << 20)];
const CARRIERS = [["websocket", "json"], ["websocket", "binary"], ["sse", "json"], ["poll", "json"]];
let node;
let publisher;
let subjects = 0;

before(async () => {
  node = await startNode({ "limits.message_bytes_max": 8 << 20 });
  publisher = new Client(node.url, { log: silent, settings: QUICK });
});
after(async () => {
  await publisher.close();
  assert.equal(await node.terminate(), 0);
});

for (const [transport, encoding] of CARRIERS) {
  test(`what is longer than two megabytes is received by ${transport} ${encoding}`, LIMITS, async () => {
    const client = new Client(node.url, { log: silent, settings: QUICK, transport, encoding });
    const subject = `/large/${++subjects}`;
    const subscription = client.subscribe(subject, { snapshot: false });
    await subscription.joined();
    for (const content of LARGE) await publisher.publish(subject, content);
    const sizes = [];
    for await (const message of subscription) if (sizes.push(message.bytes().length) === LARGE.length) break;
    assert.deepEqual(sizes, LARGE.map(({ length }) => length));
    await client.close();
  });

  test(`a message longer than the client accepts is a gap, and the subscription continues, by ${transport} ${encoding}`, LIMITS, async () => {
    const client = new Client(node.url, { log: silent, settings: { ...QUICK, frameBytesMax: 100_000 }, transport, encoding });
    const subject = `/few/${++subjects}`;
    const subscription = client.subscribe(subject, { snapshot: false });
    await subscription.joined();
    for (const content of [1, ...LARGE, 2]) await publisher.publish(subject, content);
    const heard = [];
    for await (const item of subscription.items()) {
      if (item.type === "message") heard.push(`${item.position.sequence}`);
      if (item.type === "gap") heard.push(`${item.position.sequence} ${item.reason} ${item.missed}`);
      if (heard.length === 4) break;
    }
    assert.deepEqual(heard, ["1", "2 too_large 1", "3 too_large 1", "4"]);
    assert.equal(client.isConnected, true);
    await client.close();
  });
}
