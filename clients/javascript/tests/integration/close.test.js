// What a client leaves at a real node when its subscriptions and watches are closed: nothing. Counted at the node.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Client, ClientClosed } from "../../src/node.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 60_000 };
const silent = { info: () => {}, warn: () => {}, error: console.error };
const SUBSCRIPTIONS = /^godwit_subscriptions(?:\{[^}]*\})? (\d+)/gm;
const next = () => new Promise((resolve) => setTimeout(resolve, 50));
let node;

/** How many subscriptions the node has. */
async function subscriptions() {
  const text = await (await fetch(`${node.adminUrl}/metrics`)).text();
  const counts = [...text.matchAll(SUBSCRIPTIONS)].map(([, count]) => Number(count));
  assert.ok(counts.length > 0, "the node publishes the number of its subscriptions");
  return counts.reduce((sum, count) => sum + count, 0);
}

const untilNoneIsLeft = async () => {
  while ((await subscriptions()) > 0) await next();
};

before(async () => {
  node = await startNode();
});
after(async () => {
  assert.equal(await node.terminate(), 0);
});

for (const [transport, pairs] of /** @type {const} */ ([["websocket", 1_000], ["sse", 50], ["poll", 50]])) {
  describe(`by ${transport}`, LIMITS, () => {
    test("pairs of subscribe with a listener and close leave nothing", async () => {
      const client = new Client(node.url, { transport, log: silent });
      for (let n = 0; n < pairs; n++) {
        const subscription = client.subscribe(`/open/${n}`, {}, { message() {} });
        await subscription.joined();
        subscription.close();
        await subscription.done;
      }
      const last = client.subscribe("/open/last", {}, { message() {} });
      await last.joined();
      last.close();
      await untilNoneIsLeft();
      await client.close();
    });

    test("closed and subscribed again in one tick is served", async () => {
      const client = new Client(node.url, { transport, log: silent });
      const subject = `/same/${transport}`;
      const seen = [];
      let note = () => {};
      let subscription = client.subscribe(subject, () => {});
      for (let n = 0; n < 10; n++) {
        if (n % 2 === 0) await subscription.joined();
        subscription.close();
        const heard = new Promise((resolve) => (note = resolve));
        subscription = client.subscribe(subject, { snapshot: false }, (message) => note(seen.push(message.json())));
        if (n % 3 === 0) continue;
        await subscription.joined();
        await client.publish(subject, n);
        await heard;
      }
      assert.deepEqual(seen, [1, 2, 4, 5, 7, 8]);
      assert.equal(subscription.counts.missing, 0);
      await client.close();
      await untilNoneIsLeft();
    });

    test("no listener is called after close()", async () => {
      const client = new Client(node.url, { transport, log: silent });
      const subject = `/quiet/${transport}`;
      for (let n = 0; n < 5; n++) await client.publish(subject, n);
      const seen = [];
      const subscription = client.subscribe(subject, { last: 5 }, (message) => {
        if (seen.push(message.json()) === 2) subscription.close();
      });
      await subscription.done;
      assert.deepEqual(seen, [0, 1]);
      const whole = [];
      const other = client.subscribe(subject, { last: 5 }, (message) => {
        if (whole.push(message.json()) === 1) client.close();
      });
      await other.done;
      await client.close();
      assert.deepEqual(whole, [0]);
    });
  });
}

test("joined() on what was closed rejects", LIMITS, async () => {
  const client = new Client(node.url, { log: silent });
  const [subscription, other] = [client.subscribe("/a"), client.subscribe("/b")];
  subscription.close();
  await assert.rejects(subscription.joined(), (error) => error instanceof ClientClosed && /\/a/.test(error.message));
  await client.close();
  await assert.rejects(other.joined(), ClientClosed);
});

test("watches that were closed leave nothing, and their listeners are quiet", LIMITS, async () => {
  const client = new Client(node.url, { log: silent });
  for (let n = 0; n < 1_000; n++) client.watch("/watched/**", () => assert.fail("it was closed")).close();
  const changes = client.watch("/watched/**")[Symbol.asyncIterator]();
  await client.subscribe("/watched/a").joined();
  assert.equal((await changes.next()).value.subject, "/watched/a");
  await client.close();
});
