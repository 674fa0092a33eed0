// `done` reports that a subscription or a watch has ended, and its error, whether it is iterated or has a listener.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ClientClosed, CommandRefused, SessionClosed } from "../../src/node.js";
import { LIMITS, open } from "./opening.js";
import { Peer } from "./peer.js";

const STYLES = {
  "that nobody reads": () => undefined,
  "that is iterated": (items) => void (async () => { for await (const _ of items); })().catch(() => {}),
};
const VERBS = /** @type {const} */ (["subscribe", "watch"]);
const isPending = async (promise) => {
  const pending = Symbol("pending");
  return (await Promise.race([promise.catch(() => {}), new Promise((resolve) => setImmediate(() => setImmediate(resolve, pending)))])) === pending;
};

for (const verb of VERBS) {
  for (const [style, read] of Object.entries(STYLES)) {
    describe(`done of a ${verb} ${style}`, LIMITS, () => {
      test("waits for the end, and resolves after close()", async () => {
        const client = open(new Peer());
        const items = client[verb]("/a");
        read(items);
        await client.connected();
        assert.ok(await isPending(items.done));
        items.close();
        await items.done;
        await client.close();
      });

      test("resolves when the client closes", async () => {
        const client = open(new Peer());
        const items = client[verb]("/a");
        read(items);
        await client.close();
        await items.done;
      });

      test("rejects with the node's refusal", async () => {
        const peer = new Peer();
        peer.refuses = verb;
        const client = open(peer);
        const items = client[verb]("/a");
        read(items);
        await assert.rejects(items.done, CommandRefused);
        await client.close();
      });

      test("rejects with what ended the client", async () => {
        const peer = new Peer();
        const client = open(peer);
        const items = client[verb]("/a");
        read(items);
        await client.connected();
        peer.cut(4005, "");
        await assert.rejects(items.done, SessionClosed);
        await client.close();
      });
    });
  }

  test(`a listener of a ${verb} that another client's end threw into ends with that error`, LIMITS, async () => {
    const other = open(new Peer());
    await other.close();
    const peer = new Peer();
    const client = open(peer);
    const items = client[verb]("/a", () => other.publish("/b", 1));
    await client.connected();
    if (verb === "watch") {
      await peer.hear("watch");
      peer.say({ interest: "/a", subscribers: true });
    } else {
      await items.joined();
      peer.append("/a", 1);
    }
    await assert.rejects(items.done, ClientClosed);
    await client.close();
  });
}
