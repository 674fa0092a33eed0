// The client against a real node, on both wires: what its page promises, one by one.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { Client, CommandRefused, JsonText, Position, PositionFile, ReplyTimeout, SessionClosed } from "../../src/node.js";
import { startNode } from "./node_process.js";

const ADMITTED = { timeout: 30_000 };

/** So many of a subscription's messages. */
async function take(subscription, count) {
  const messages = [];
  for await (const message of subscription) if (messages.push(message) === count) break;
  return messages;
}

const values = (messages) => messages.map((message) => message.json());
let node;
let subjects = 0;
const fresh = () => `/t/${++subjects}`;

before(async () => {
  node = await startNode();
});
after(async () => {
  assert.equal(await node.terminate(), 0);
});

for (const encoding of /** @type {const} */ (["json", "binary"])) {
  describe(`in the ${encoding} encoding`, ADMITTED, () => {
    let client;
    before(() => {
      client = new Client(node.url, { encoding });
    });
    after(() => client.close());

    test("what is published is received, with its position and kind", async () => {
      const subject = fresh();
      const subscription = client.subscribe(subject, { snapshot: false });
      await subscription.joined();
      const published = await client.publish(subject, { x: [1, "é😀", null] });
      await client.publish(subject, "text");
      await client.publish(subject, Uint8Array.of(0, 255));
      await client.publish(subject, new JsonText('{ "n": 1.0, "big": 12345678901234567890 }'));
      const [json, text, bytes, written] = await take(subscription, 4);
      assert.deepEqual([json.json(), json.kind], [{ x: [1, "é😀", null] }, "json"]);
      assert.deepEqual(json.position, published.position);
      assert.equal(json.position.sequence, 1n);
      assert.deepEqual([text.text(), text.kind], ["text", "text"]);
      assert.deepEqual([bytes.bytes(), bytes.kind], [Uint8Array.of(0, 255), "bytes"]);
      assert.equal(written.text(), '{ "n": 1.0, "big": 12345678901234567890 }');
      assert.ok(Math.abs(json.timeMs - Date.now()) < 60_000);
    });

    test("a pause is not a broken connection, and its status shows it", async () => {
      const paused = new Client(node.url, { encoding });
      const items = paused.subscribe(fresh()).items();
      await items.next();
      paused.pause();
      const { value } = await items.next();
      assert.deepEqual([value.state, value.reason, paused.loss], ["disconnected", "paused", "paused"]);
      await paused.close();
    });

    test("the snapshot comes first, then what is live", async () => {
      const subject = fresh();
      await client.publish(subject, { x: 1, y: 1 });
      await client.publish(subject, { y: 2 }, { merge: true });
      const subscription = client.subscribe(subject);
      const [snapshot] = await take(subscription, 1);
      assert.equal(snapshot.isSnapshot, true);
      assert.deepEqual(snapshot.json(), { x: 1, y: 2 });
      await client.publish(subject, 3);
      assert.deepEqual(values(await take(subscription, 1)), [3]);
    });

    test("live only, last, after and a map choose where to begin", async () => {
      const subject = `${fresh()}/b`;
      const published = [];
      for (let n = 0; n < 5; n++) published.push(await client.publish(subject, n));
      const begin = async (selector, options, count) => {
        const subscription = client.subscribe(selector, options);
        const messages = await take(subscription, count);
        subscription.close();
        return values(messages);
      };
      assert.deepEqual(await begin(subject, { last: 2 }, 2), [3, 4]);
      assert.deepEqual(await begin(subject, { after: published[1].position }, 3), [2, 3, 4]);
      assert.deepEqual(await begin(subject, { after: String(published[2].position) }, 2), [3, 4]);
      const pattern = `${subject.slice(0, -2)}/**`;
      assert.deepEqual(await begin(pattern, { after: { [subject]: published[2].position } }, 2), [3, 4]);
      const live = client.subscribe(subject, { snapshot: false });
      await live.joined();
      await client.publish(subject, 5);
      assert.deepEqual(values(await take(live, 1)), [5]);
    });

    test("a pattern continues from its resume token", async () => {
      const subject = fresh();
      const subscription = client.subscribe(`${subject}/**`);
      await subscription.joined();
      for (let n = 0; n < 10; n++) await client.publish(`${subject}/${n % 3}`, n);
      assert.deepEqual(values(await take(subscription, 6)), [0, 1, 2, 3, 4, 5]);
      subscription.handled();
      const other = new Client(node.url, { encoding });
      const rest = await take(other.subscribe(`${subject}/**`, { after: subscription.resumePoint }), 4);
      assert.deepEqual(values(rest), [6, 7, 8, 9]);
      await other.close();
    });

    test("a position of an unknown epoch gives a gap and the kept messages", async () => {
      const subject = fresh();
      await client.publish(subject, 1);
      const items = client.subscribe(subject, { after: new Position(1, 999) }).items();
      const found = [];
      while (found.length < 3) found.push((await items.next()).value);
      assert.deepEqual(found.map(({ type }) => type), ["status", "gap", "message"]);
      assert.deepEqual([found[1].reason, found[2].isSnapshot], ["epoch", false]);
    });

    test("a conflated subscriber gets one merged message a window", async () => {
      const subject = fresh();
      const subscription = client.subscribe(subject, { conflateMs: 200 });
      await subscription.joined();
      await Promise.all(Array.from({ length: 20 }, (_, n) => client.publish(subject, { [`k${n}`]: n }, { merge: true })));
      const merged = {};
      let count = 0;
      for await (const message of subscription) {
        count += message.conflated || 1;
        Object.assign(merged, message.json());
        if (count === 20) break;
      }
      assert.deepEqual(merged, Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, n])));
    });

    test("a standard message has no position", async () => {
      const subject = fresh();
      const subscription = client.subscribe(subject);
      await subscription.joined();
      assert.equal((await client.publish(subject, 1, { guaranteed: false })).position, null);
      assert.equal((await take(subscription, 1))[0].position, null);
    });

    test("the same key is one message", async () => {
      const subject = fresh();
      const key = "k".repeat(16);
      const first = await client.publish(subject, 1, { key });
      const second = await client.publish(subject, 1, { key });
      assert.deepEqual([second.position, second.isDuplicate], [first.position, true]);
      await assert.rejects(client.publish(subject, 2, { key }), { name: "CommandRefused", code: 4117 });
    });

    test("a request receives its reply, and one without a reply times out", async () => {
      const subject = fresh();
      const worker = new Client(node.url, { encoding });
      const requests = worker.subscribe(subject, { snapshot: false }, (request) => worker.reply(request, request.json() * 2));
      await requests.joined();
      const replies = await Promise.all([0, 1, 2, 3, 4].map((n) => client.request(subject, n)));
      assert.deepEqual(values(replies), [0, 2, 4, 6, 8]);
      await worker.close();
      await assert.rejects(client.request(subject, 1, { timeoutMs: 50 }), ReplyTimeout);
    });

    test("a watch reports interest", async () => {
      const subject = `/w/${encoding}`;
      const changes = client.watch(`${subject}/**`)[Symbol.asyncIterator]();
      const other = new Client(node.url, { encoding });
      const listening = other.subscribe(`${subject}/eu`);
      const next = async () => {
        const { value } = await changes.next();
        return [value.subject, value.hasSubscribers];
      };
      assert.deepEqual(await next(), [`${subject}/eu`, true]);
      listening.close();
      assert.deepEqual(await next(), [`${subject}/eu`, false]);
      await other.close();
    });

    test("what the node refuses is thrown where it was asked, with its code", async () => {
      const refusal = { name: "CommandRefused", code: 4118, codeName: "AckUnavailable", retry: false };
      await assert.rejects(client.publish(fresh(), 1, { ack: "disk" }), refusal);
      await assert.rejects(client.publish("/$node/x", 1), { code: 4101 });
      const subscription = client.subscribe(fresh(), { conflateMs: 1 });
      await assert.rejects(subscription.joined(), CommandRefused);
      await assert.rejects(take(subscription, 1), { code: 4104 });
    });

    test("saved positions are gone on from, by a subject and by a pattern", async () => {
      const folder = mkdtempSync(join(tmpdir(), "godwit-"));
      const subject = fresh();
      for (const selector of [subject, `/t/*`]) {
        const file = join(folder, `${selector.length}.json`);
        const read = [];
        for (let run = 0; run < 6; run++) {
          const reader = new Client(node.url, { encoding, positions: new PositionFile(file) });
          const subscription = reader.subscribe(selector, { snapshot: false });
          await subscription.joined();
          await client.publish(subject, run);
          read.push(...(await take(subscription, 1)));
          subscription.handled();
          await reader.close();
          await client.publish(subject, -run - 1); // while it is away
        }
        assert.deepEqual(values(read), [0, -1, 1, -2, 2, -3]);
      }
      rmSync(folder, { recursive: true });
    });

    test("one selector is subscribed once, and again after it was closed", async () => {
      const subject = fresh();
      const subscription = client.subscribe(subject);
      assert.throws(() => client.subscribe(subject), { name: "SubscriptionExists" });
      subscription.close();
      const again = client.subscribe(subject);
      await again.joined();
      await client.publish(subject, 1);
      assert.deepEqual(values(await take(again, 1)), [1]);
      await subscription.done;
    });
  });
}

test("a token that is refused ends the client with the reason", ADMITTED, async () => {
  const strict = await startNode({ "access.mode": "basic", "access.publish_tokens": "a-token-of-sixteen" });
  const client = new Client(strict.url, { token: "nobody's" });
  await assert.rejects(client.connected(), SessionClosed);
  await assert.rejects(client.publish("/a", 1), { name: "SessionClosed", code: 4002 });
  await client.close();
  await strict.terminate();
});
