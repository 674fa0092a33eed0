// The same client by each way that carries it, against a real node; and which way it takes by itself.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Client, CommandRefused, JsonText } from "../../src/node.js";
import { startHttpProxy } from "../faults/http_proxy.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 120_000 }; // of all tests of one way together
const QUICK = { reconnectFirstMs: 4, reconnectMaxMs: 40 };
const silent = { info: () => {}, warn: () => {}, error: console.error };
let node;
let subjects = 0;
const fresh = () => `/t/${++subjects}`;
const open = (url, options = {}) => {
  const { settings, ...rest } = options;
  return new Client(url, { log: silent, settings: { ...QUICK, ...settings }, ...rest });
};

async function take(subscription, count) {
  const messages = [];
  for await (const message of subscription) if (messages.push(message) === count) break;
  return messages;
}

/** The next item of a type. */
async function next(items, type) {
  for (;;) {
    const { value, done } = await items.next();
    assert.equal(done, false, `ended before a ${type}`);
    if (value.type === type) return value;
  }
}

const values = (messages) => messages.map((message) => message.json());
const numbers = (count, first = 0) => Array.from({ length: count }, (_, n) => n + first);

before(async () => {
  node = await startNode({ "limits.log_messages_max": 20 });
});
after(async () => {
  assert.equal(await node.terminate(), 0);
});

for (const transport of /** @type {const} */ (["websocket", "sse", "poll"])) {
  describe(`by ${transport}`, LIMITS, () => {
    let client;
    before(() => {
      client = open(node.url, { transport });
    });
    after(() => client.close());

    test("what is published is received, with its position and kind", async () => {
      const subject = fresh();
      const subscription = client.subscribe(subject, { snapshot: false });
      await subscription.joined();
      assert.equal(client.transport, transport);
      const published = await client.publish(subject, { x: [1, "é😀", null] });
      await client.publish(subject, "text\nin two lines");
      await client.publish(subject, Uint8Array.of(0, 255));
      await client.publish(subject, new JsonText('{ "n": 1.0,\n "big": 12345678901234567890 }'));
      const [json, text, bytes, written] = await take(subscription, 4);
      assert.deepEqual([json.json(), json.position], [{ x: [1, "é😀", null] }, published.position]);
      assert.deepEqual([text.text(), bytes.bytes()], ["text\nin two lines", Uint8Array.of(0, 255)]);
      assert.equal(written.text(), '{ "n": 1.0,\n "big": 12345678901234567890 }');
      subscription.close();
    });

    test("joins begin with the snapshot, with history, from a position, or live, on subjects and patterns", async () => {
      const found = {};
      for (const kind of ["a", "*"]) {
        for (const name of ["last", "after", "snapshot", "live"]) {
          const subject = fresh();
          for (const n of numbers(5)) await client.publish(`${subject}/a`, n);
          const { position } = await client.publish(`${subject}/a`, 5);
          const after = `${position.epoch}.${position.sequence - 2n}`;
          const places = kind === "a" ? after : { [`${subject}/a`]: after };
          const options = { last: { last: 3 }, after: { after: places }, snapshot: {}, live: { snapshot: false } }[name];
          const subscription = client.subscribe(`${subject}/${kind}`, options);
          await subscription.joined();
          await client.publish(`${subject}/a`, 6);
          const seen = [];
          while (seen.at(-1) !== 6) seen.push(...values(await take(subscription, 1)));
          (found[name] ??= []).push(seen);
          assert.deepEqual([subscription.counts.missing, subscription.counts.gaps], [0, 0]);
          subscription.close();
        }
      }
      assert.deepEqual(found, {
        last: [[3, 4, 5, 6], [3, 4, 5, 6]],
        after: [[4, 5, 6], [4, 5, 6]],
        snapshot: [[5, 6], [5, 6]],
        live: [[6], [6]],
      });
    });

    test("subscriptions come and go while messages flow, and nothing is missed or repeated", async () => {
      const subject = fresh();
      const main = client.subscribe(`${subject}/*`);
      const one = client.subscribe(`${subject}/0`);
      await Promise.all([main.joined(), one.joined()]);
      const seen = take(main, 120);
      const ones = take(one, 40);
      const others = [];
      for (const n of numbers(120)) {
        await client.publish(`${subject}/${n % 3}`, n);
        if (n % 20 === 5) others.push(client.subscribe(`${subject}/other/${n}`, { last: n }));
        if (n % 20 === 15) others.shift().close();
      }
      assert.deepEqual(values(await seen), numbers(120));
      assert.deepEqual(values(await ones), numbers(40).map((n) => 3 * n));
      assert.deepEqual([main.counts.missing, main.counts.gaps, one.counts.missing, one.counts.gaps], [0, 0, 0, 0]);
      main.close();
      one.close();
    });

    test("missing messages are reported by a gap, then the snapshot follows", async () => {
      const subject = fresh();
      const { position } = await client.publish(subject, 0);
      for (const n of numbers(40, 1)) await client.publish(subject, n);
      for (const [selector, after] of [[subject, position], [`${subject}/**`, { [subject]: position }]]) {
        const subscription = client.subscribe(selector, { after });
        const items = subscription.items();
        const gap = await next(items, "gap");
        assert.deepEqual([gap.subject, gap.reason, gap.missed], [subject, "overrun", 40]);
        assert.equal((await next(items, "message")).json(), 40);
        subscription.close();
      }
    });

    test("a publish that is refused is refused alone", async () => {
      const subject = fresh();
      const good = client.subscribe(subject);
      await good.joined();
      const outcomes = await Promise.allSettled([
        client.publish(subject, 1),
        client.publish("/$node/x", 2),
        client.publish(subject, 3),
      ]);
      assert.deepEqual(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
      assert.ok(outcomes[1].reason instanceof CommandRefused);
      assert.deepEqual(values(await take(good, 2)), [1, 3]);
      good.close();
    });

    test("publishes keep their order and their keys", async () => {
      const subject = fresh();
      const published = await Promise.all(numbers(300).map((n) => client.publish(subject, n)));
      assert.deepEqual(published.map(({ position }) => Number(position.sequence)), numbers(300, 1));
      const again = await Promise.all([1, 2].map(() => client.publish(subject, "same", { key: "0123456789abcdef" })));
      assert.deepEqual(again.map(({ isDuplicate }) => isDuplicate), [false, true]);
    });

    test("requests are answered", async () => {
      const subject = fresh();
      const worker = client.subscribe(subject, { snapshot: false }, (request) => client.reply(request, request.json() * 2));
      await worker.joined();
      const answers = await Promise.all(numbers(5).map((n) => client.request(subject, n)));
      assert.deepEqual(values(answers), [0, 2, 4, 6, 8]);
      worker.close();
    });

    test("a slow consumer misses no kept message, and others continue", async () => {
      const slow = open(node.url, { transport, settings: { itemsMax: 3 } });
      const subject = fresh();
      const subscription = slow.subscribe(subject);
      await subscription.joined();
      for (const n of numbers(18)) await client.publish(subject, n);
      assert.equal((await slow.publish(fresh(), 1)).position.sequence, 1n);
      assert.deepEqual(values(await take(subscription, 18)), numbers(18));
      assert.deepEqual([subscription.counts.missing, subscription.counts.gaps], [0, 0]);
      await slow.close();
    });

    test("a subscription that is closed and opened again at once continues", async () => {
      const subject = fresh();
      for (const opened of numbers(3)) {
        const first = client.subscribe(subject, { snapshot: false });
        if (opened > 0) await first.joined();
        first.close();
        const again = client.subscribe(subject, { snapshot: false });
        await again.joined();
        await client.publish(subject, opened);
        assert.deepEqual(values(await take(again, 1)), [opened]);
        again.close();
      }
    });

    if (transport === "poll") {
      test("watches and conflation are refused, with the reason", async () => {
        const items = client.watch("/a/**")[Symbol.asyncIterator]();
        const isReason = (error) => error instanceof CommandRefused && /by long poll/.test(error.message);
        await assert.rejects(items.next(), isReason);
        const merged = client.subscribe(fresh(), { conflateMs: 100 });
        await assert.rejects(merged.joined(), isReason);
      });
    } else {
      test("a watch reports new and ended interest, while other subscriptions come and go", async () => {
        const [subject, other] = [fresh(), fresh()];
        const watch = client.watch(subject);
        const items = watch[Symbol.asyncIterator]();
        const listening = client.subscribe(subject);
        await listening.joined();
        assert.deepEqual({ ...(await items.next()).value }, { type: "interest", subject, hasSubscribers: true });
        const more = client.subscribe(other);
        await more.joined();
        listening.close();
        assert.deepEqual({ ...(await items.next()).value }, { type: "interest", subject, hasSubscribers: false });
        watch.close();
        more.close();
      });

      test("messages are merged, next to a subscription that receives all", async () => {
        const subject = fresh();
        const [merged, whole] = [client.subscribe(subject, { conflateMs: 300, snapshot: false }), client.subscribe(`${subject}/**`, { snapshot: false })];
        await Promise.all([merged.joined(), whole.joined()]);
        await Promise.all(numbers(5).map((n) => client.publish(subject, n)));
        assert.deepEqual(values(await take(whole, 5)), numbers(5));
        let count = 0;
        for await (const message of merged) {
          count += Math.max(message.conflated, 1);
          if (message.json() === 4) break;
        }
        assert.equal(count, 5);
      });
    }

    if (transport !== "websocket") {
      test("the binary encoding is refused at once", () => {
        assert.throws(() => open(node.url, { transport, encoding: "binary" }), /the binary encoding needs a WebSocket/);
      });
    }
  });
}

describe("by itself", LIMITS, () => {
  test("it takes a WebSocket where there is one", async () => {
    const transports = [];
    const client = open(node.url, { onTransport: (name) => transports.push(name) });
    const items = client.subscribe(fresh()).items();
    assert.equal((await next(items, "status")).transport, "websocket");
    assert.deepEqual([transports, client.transport], [["websocket"], "websocket"]);
    await client.close();
    assert.equal(client.transport, null);
  });

  test("else events, also of a client that would speak binary; and it remembers", async () => {
    const proxy = await startHttpProxy(node.port);
    for (const upgrades of [1, 1]) {
      const client = open(proxy.url, { encoding: "binary" });
      const subject = fresh();
      const subscription = client.subscribe(subject);
      const items = subscription.items();
      assert.equal((await next(items, "status")).transport, "sse");
      await client.publish(subject, Uint8Array.of(7));
      assert.deepEqual((await next(items, "message")).bytes(), Uint8Array.of(7));
      assert.deepEqual([client.transport, proxy.upgrades], ["sse", upgrades]);
      await client.close();
    }
    proxy.stop();
  });

  test("else long poll, where events are kept back", async () => {
    const proxy = await startHttpProxy(node.port);
    proxy.buffersEvents = true;
    const transports = [];
    const client = open(proxy.url, { onTransport: (name) => transports.push(name), settings: { streamTimeoutMs: 100 } });
    const subject = fresh();
    const items = client.subscribe(subject).items();
    assert.equal((await next(items, "status")).transport, "poll");
    await client.publish(subject, 1);
    assert.equal((await next(items, "message")).json(), 1);
    assert.deepEqual(transports, ["sse", "poll"]);
    await client.close();
    proxy.stop();
  });

  test("it goes back to a WebSocket once one can be had, and misses nothing on the way", async () => {
    const proxy = await startHttpProxy(node.port);
    const client = open(proxy.url, { settings: { webSocketAgainMs: 30 } });
    const subject = fresh();
    const subscription = client.subscribe(`${subject}/*`);
    const items = subscription.items();
    assert.equal((await next(items, "status")).transport, "sse");
    let sent = 0;
    while (proxy.upgrades < 3) await client.publish(`${subject}/a`, sent++);
    proxy.allowsUpgrade = true;
    while (client.transport !== "websocket") await client.publish(`${subject}/a`, sent++);
    await client.publish(`${subject}/a`, sent++);
    const seen = [];
    while (seen.length < sent) seen.push((await next(items, "message")).json());
    assert.deepEqual(seen, numbers(sent));
    assert.deepEqual([subscription.counts.gaps, subscription.counts.missing], [0, 0]);
    await client.close();
    proxy.stop();
  });

  test("a node that is not there is waited for, and taken by WebSocket", async () => {
    const proxy = await startHttpProxy(1);
    proxy.allowsUpgrade = true;
    // It may meet the node by SSE, where the node comes between the two attempts: then it goes back to a WebSocket.
    const client = open(proxy.url, { settings: { webSocketAgainMs: 30 } });
    while (proxy.paths.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    proxy.redirect(node.port);
    await client.connected();
    while (client.transport !== "websocket") await client.publish(fresh(), 1);
    await client.close();
    proxy.stop();
  });
});
