// Over HTTP a subscription joins by a new request for all. If it is refused, the others continue undisturbed.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { Client, CommandRefused } from "../../src/node.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 30_000 };
const TOKEN = "0123456789abcdef";
const KEPT = { "limits.log_messages_max": 100_000 }; // of a publisher that does not wait for readers
const silent = { info: () => {}, warn: () => {}, error: console.error };

/** Publishes as long as it is not stopped; returns how many that were. */
function publishOn(client, subject) {
  let isStopped = false;
  const done = (async () => {
    let sent = 0;
    while (!isStopped) await client.publish(subject, sent++);
    return sent;
  })();
  return () => ((isStopped = true), done);
}

/** What a subscription gets, while it lasts. */
function collect(subscription) {
  const seen = [];
  const waiting = [];
  const done = (async () => {
    for await (const message of subscription) {
      seen.push(message.json());
      waiting.splice(0).forEach((each) => each());
    }
  })();
  const until = async (count) => {
    while (seen.length < count) await Promise.race([new Promise((resolve) => waiting.push(resolve)), done]);
  };
  return { seen, until };
}

/** @type {[string, Record<string, unknown>, [string, number | null][]][]} what is asked of a node, and with which code it is refused */
const SCENES = [
  ["for want of rights, or as too many for a connection", { "limits.subscriptions_per_connection_max": 3 }, [["/$node/secret", 4113], ["/third", null], ["/fourth", 4112]]],
  [
    "as too many for an address, which counts the stream that is left until it is gone",
    { "limits.subscriptions_per_address_max": 3, "limits.connections_per_address_max": 5 },
    [["/third", null], ["/fourth", 4112]],
  ],
];

let folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "godwit-refused-"));
  await writeFile(join(folder, "publish.tokens"), `${TOKEN}\n`);
});
after(() => rm(folder, { recursive: true }));

for (const [why, settings, more] of SCENES) {
  describe(`a subscription refused ${why}`, LIMITS, () => {
    let node;
    before(async () => {
      const tokens = join(folder, "publish.tokens");
      node = await startNode({ "access.mode": "basic", "access.publish_tokens_file": tokens, ...KEPT, ...settings });
    });
    after(() => node.terminate());

    for (const transport of /** @type {const} */ (["sse", "poll"])) {
      test(`by ${transport} leaves the others as they were`, async () => {
        const name = `/${transport}`;
        const publisher = new Client(node.url, { token: TOKEN, log: silent });
        const client = new Client(node.url, { transport, log: silent });
        const others = [`${name}/a`, `${name}/*`].map((each) => client.subscribe(each, { snapshot: false }));
        for (const each of others) await each.joined();
        const collected = others.map(collect);
        const stop = publishOn(publisher, `${name}/a`);
        await Promise.all(collected.map(({ until }) => until(20)));
        for (const [selector, code] of [...more, ...more.slice(-1)]) {
          const another = client.subscribe(selector);
          const joined = another.joined().then(async () => {
            if (code !== null) for await (const _ of another); // it may end only then
          });
          if (code === null) await joined;
          else await assert.rejects(joined, (error) => error instanceof CommandRefused && error.code === code);
          await Promise.all(collected.map(({ until, seen }) => until(seen.length + 20)));
        }
        const sent = await stop();
        await Promise.all(collected.map(({ until }) => until(sent)));
        for (const { seen } of collected) assert.deepEqual(seen, Array.from({ length: sent }, (_, n) => n));
        for (const { counts } of others) assert.deepEqual([counts.joins, counts.gaps, counts.missing], [1, 0, 0]);
        await client.close();
        await publisher.close();
      });
    }
  });
}
