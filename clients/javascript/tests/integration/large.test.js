// Publishes beyond what the node takes: each is refused where it was asked, with its size, and the client lives on.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, CommandRefused, Position, SessionClosed } from "../../src/node.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 60_000 };
const settings = { publishQueueBytesMax: 1 << 30, reconnectFirstMs: 4, reconnectMaxMs: 40 };
const silent = { info: () => {}, warn: () => {}, error: console.error };

/**
 * @param {Record<string, unknown>} limits
 * @param {import("../../src/client.js").ClientOptions} options
 * @param {(client: Client) => Promise<void>} step
 */
async function withClient(limits, options, step) {
  const node = await startNode(limits);
  const client = new Client(node.url, { settings, log: silent, ...options });
  try {
    await step(client);
  } finally {
    await client.close();
    await node.kill();
  }
}

for (const transport of /** @type {const} */ (["websocket", "sse", "poll"])) {
  test(`by ${transport} a refusal names the publish that is larger as sent`, LIMITS, () =>
    withClient({}, { transport }, async (client) => {
      await client.connected();
      const text = client.publish("/text", "x".repeat(1_000_000));
      const bytes = client.publish("/bytes", new Uint8Array(900_000)); // as base64 it is the longer one
      await assert.rejects(bytes, (error) => error instanceof CommandRefused && /\/bytes, 1200\d\d\d bytes as sent/.test(error.message));
      assert.ok((await text).position);
      for (const megabytes of [2, 12, 40]) {
        await assert.rejects(client.publish("/large", "x".repeat(megabytes << 20)), CommandRefused);
        assert.ok((await client.publish("/small", megabytes)).position);
      }
    }));

  test(`by ${transport} small publishes that are too large together are sent one by one`, LIMITS, () =>
    withClient({ "limits.message_bytes_max": 4_096 }, { transport }, async (client) => {
      await client.connected();
      const text = "x".repeat(1_500);
      const all = await Promise.all(Array.from({ length: 20 }, () => client.publish("/a", text)));
      assert.ok(all.every(({ position }) => position));
    }));
}

for (const encoding of /** @type {const} */ (["json", "binary"])) {
  test(`a refusal for size costs reconnects at once, and the next none (${encoding})`, LIMITS, () => {
    // with these settings each other wait would be longer than the test
    const slow = { publishQueueBytesMax: 1 << 30, reconnectFirstMs: 3_600_000, reconnectMaxMs: 3_600_000 };
    return withClient({ "limits.message_bytes_max": 10_000 }, { transport: "websocket", encoding, settings: slow }, async (client) => {
      const subscription = client.subscribe("/small");
      await subscription.joined();
      const messages = subscription[Symbol.asyncIterator]();
      for (let number = 0; number < 5; number++) {
        const large = [0, 900, 1_800].map((extra) => client.publish("/large", new Uint8Array(20_000 + extra)));
        const small = client.publish("/small", number);
        for (const each of await Promise.allSettled(large)) assert.ok(each.status === "rejected" && each.reason instanceof CommandRefused);
        assert.ok((await small).position);
        await messages.next();
      }
      assert.equal(subscription.counts.joins, 5); // at its begin; of the frame with four; of each of the three alone
      const text = new Uint8Array(3_000); // now split before they are sent
      const all = await Promise.all(Array.from({ length: 20 }, () => client.publish("/a", text)));
      assert.ok(all.every(({ position }) => position));
      assert.equal(subscription.counts.joins, 5);
    });
  });
}

test("commands that the node never takes end the client with a sentence", LIMITS, () =>
  withClient({ "limits.message_bytes_max": 1_024 }, { transport: "websocket" }, async (client) => {
    await client.connected();
    const after = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`/many/${n}`, new Position(1, 1n)]));
    const subscription = client.subscribe("/many/*", { after });
    const isWhy = (error) => error instanceof SessionClosed && /a command of \d+ bytes is not accepted/.test(error.message);
    await assert.rejects(subscription.joined(), isWhy);
  }));
