// What users of other clients reported, tried on this one against a real node by every transport.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client } from "../../src/node.js";
import { seeded, startProxy } from "../faults/cutting_proxy.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 30_000 };
const settings = { reconnectFirstMs: 5, reconnectMaxMs: 20, itemsMax: 100 };
let node, proxy, warnings;

before(async () => {
  node = await startNode();
  proxy = await startProxy(node.port, seeded(1), 1);
  proxy.isCalm = true;
});
after(async () => {
  proxy.stop();
  await node.kill();
});

const log = { info: () => {}, warn: (...words) => warnings.push(words.join(" ")), error: (...words) => warnings.push(words.join(" ")) };
const numbers = (count) => Array.from({ length: count }, (_, n) => n);
const publish = (client, subject, count) => Promise.all(numbers(count).map((n) => client.publish(subject, n)));

async function take(subscription, count) {
  const found = [];
  for await (const message of subscription) if (found.push(message.json()) === count) break;
  return found;
}

for (const transport of /** @type {const} */ (["websocket", "sse", "poll"])) {
  /** @param {(client: Client) => Promise<void>} body */
  const report = (name, body, options = {}) =>
    test(`by ${transport}: ${name}`, LIMITS, async () => {
      warnings = [];
      const client = new Client(proxy.url, { transport, settings, log, ...options });
      try {
        await body(client);
      } finally {
        await client.close();
      }
    });
  const subject = (name) => `/${transport}/${name}`;

  report("what was closed before a reconnect can be subscribed again after it", async (client) => {
    const first = client.subscribe(subject("again"), { snapshot: false });
    await first.joined();
    first.close();
    client.pause();
    client.resume();
    await client.connected();
    const second = client.subscribe(subject("again"), { snapshot: false });
    await second.joined();
    await publish(client, subject("again"), 3);
    assert.deepEqual(await take(second, 3), numbers(3));
  });

  test(`by ${transport}: a token function may subscribe while the client connects`, LIMITS, async () => {
    warnings = [];
    let subscription;
    const token = async () => {
      subscription ??= client.subscribe(subject("token"), { snapshot: false });
      await new Promise((resolve) => setTimeout(resolve, 5));
      return "any";
    };
    const client = new Client(proxy.url, { transport, settings, log, token });
    await client.connected();
    await subscription.joined();
    await publish(client, subject("token"), 3);
    assert.deepEqual(await take(subscription, 3), numbers(3));
    assert.equal(subscription.counts.joins, 1);
    await client.close();
  });

  report("leaving and coming back in one step makes one connection", async (client) => {
    const subscription = client.subscribe(subject("orphan"), { snapshot: false });
    await subscription.joined();
    for (let n = 0; n < 20; n++) {
      client.pause();
      client.resume();
    }
    client.resume(); // nothing for one that is there
    await publish(client, subject("orphan"), 3);
    assert.deepEqual(await take(subscription, 3), numbers(3));
    while (proxy.open > 3) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  report("a listener that publishes for each message does not stand still", async (client) => {
    const relayed = client.subscribe(subject("relayed"), { snapshot: false });
    const source = client.subscribe(subject("source"), { snapshot: false }, (message) => client.publish(subject("relayed"), message.json()));
    await Promise.all([relayed.joined(), source.joined()]);
    publish(client, subject("source"), 200);
    assert.deepEqual(await take(relayed, 200), numbers(200));
  });

  report("a listener that throws ends its own subscription alone, and says so", async (client) => {
    const failing = client.subscribe(subject("shared"), { snapshot: false }, () => {
      throw new Error("the user's own");
    });
    const failed = assert.rejects(failing.done, /the user's own/);
    const other = client.subscribe(subject("*"), { snapshot: false });
    await Promise.all([failing.joined(), other.joined()]);
    await publish(client, subject("shared"), 3);
    await failed;
    assert.deepEqual(await take(other, 3), numbers(3));
    assert.equal(client.isConnected, true);
  });

  report("a status listener that throws while the connection is lost does not keep the client away", async (client) => {
    const lost = client.subscribe(subject("status"), {}, {
      status: ({ isConnected }) => {
        if (!isConnected) throw new Error("the user's own");
      },
      error: () => {},
    });
    const other = client.subscribe(subject("status/other"), { snapshot: false });
    await Promise.all([lost.joined(), other.joined()]);
    client.pause();
    client.resume();
    await client.connected();
    await publish(client, subject("status/other"), 3);
    assert.deepEqual(await take(other, 3), numbers(3));
  });

  report("a wait that is given up loses nothing", async (client) => {
    const subscription = client.subscribe(subject("race"), { snapshot: false });
    await subscription.joined();
    const messages = subscription[Symbol.asyncIterator]();
    const found = [];
    const publishing = publish(client, subject("race"), 50);
    let next = messages.next();
    while (found.length < 50) {
      const read = await Promise.race([next, new Promise((resolve) => setTimeout(resolve, 0))]);
      if (read === undefined) continue;
      found.push(read.value.json());
      next = messages.next();
    }
    await publishing;
    assert.deepEqual(found, numbers(50));
  });

  report("a subscription made and closed inside a listener is as good as any other", async (client) => {
    const seen = [];
    const outer = client.subscribe(subject("outer"), { snapshot: false }, async () => {
      const inner = client.subscribe(subject("inner"), { last: 1 });
      await inner.joined();
      seen.push(...(await take(inner, 1)));
      inner.close();
    });
    await outer.joined();
    await client.publish(subject("inner"), 7);
    await publish(client, subject("outer"), 5);
    while (seen.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(seen, [7, 7, 7, 7, 7]);
    outer.close();
  });

  test(`by ${transport}: close() before the connection, and twice, ends at once`, LIMITS, async () => {
    for (const url of [proxy.url, "ws://127.0.0.1:9", "ws://[::1]:9"]) {
      const client = new Client(url, { transport, settings, log: { ...log, warn: () => {} } });
      await Promise.all([client.close(), client.close()]);
      await client.close();
      assert.equal(client.isConnected, false);
    }
  });

  test(`by ${transport}: a name with several addresses is found`, LIMITS, async () => {
    const client = new Client(proxy.url.replace("127.0.0.1", "localhost"), { transport, settings, log });
    await client.connected();
    await client.close();
  });
}
