// One subscription that is not read stops no other of its client, and loses nothing.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client } from "../../src/node.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 30_000 };
const COUNT = 1_500;
const silent = { info: () => {}, warn: () => {}, error: console.error };
let node;

before(async () => {
  node = await startNode({ "limits.log_messages_max": 5_000 });
});
after(async () => {
  assert.equal(await node.terminate(), 0);
});

const publish = (client, subject) => Promise.all(Array.from({ length: COUNT }, (_, n) => client.publish(subject, n)));

async function take(subscription, count) {
  const found = [];
  for await (const message of subscription) if (found.push(message.json()) === count) break;
  return found;
}

for (const transport of /** @type {const} */ (["websocket", "sse", "poll"])) {
  for (const other of ["/b", "/b/*"]) {
    test(`by ${transport} an unread subscription does not silence ${other}`, LIMITS, async () => {
      const client = new Client(node.url, { transport, settings: { itemsMax: 100 }, log: silent });
      const publisher = new Client(node.url, { log: silent });
      const [name, base] = [`/a/${transport}${other.length}`, `/${transport}`];
      const unread = client.subscribe(name, { snapshot: false });
      const read = client.subscribe(base + other, { snapshot: false });
      await Promise.all([unread.joined(), read.joined()]);
      for (let part = 0; part < 3; part++) {
        await publish(publisher, name);
        await publisher.publish((base + other).replace("*", "x"), part);
        assert.deepEqual(await take(read, 1), [part]);
      }
      const found = await take(unread, 3 * COUNT);
      assert.deepEqual([found.length, unread.counts.gaps, unread.counts.missing], [3 * COUNT, 0, 0]);
      await Promise.all([client.close(), publisher.close()]);
    });
  }
}
