// Token functions that fail or give up: bounded, and never the end of a client that they did not mean.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Unauthorized } from "../../src/node.js";
import { LIMITS, open } from "./opening.js";
import { Peer } from "./peer.js";

test("Unauthorized ends the client and rejects all that wait for it", LIMITS, async () => {
  const peer = new Peer();
  let calls = 0;
  const token = () => {
    calls++;
    throw new Unauthorized("logged out");
  };
  const client = open(peer, { token });
  await assert.rejects(client.connected(), Unauthorized);
  await assert.rejects(client.publish("/a", 1), /logged out/);
  await client.close();
  assert.deepEqual([calls, peer.heard], [1, []]);
});

test("Unauthorized at a renewal ends the client", LIMITS, async () => {
  const peer = new Peer();
  let calls = 0;
  const token = async () => {
    if (calls++ > 0) throw new Unauthorized("logged out");
    return "first";
  };
  const client = open(peer, { token, settings: { answerTimeoutMs: 40 } });
  const subscription = client.subscribe("/a");
  await subscription.joined();
  peer.say({ notice: "token_expiring", in_ms: 60_000 });
  const reading = async () => {
    for await (const item of subscription) assert.fail(String(item));
  };
  await assert.rejects(reading(), Unauthorized); // a second after the first call
  await assert.rejects(client.connected(), Unauthorized);
  await client.close();
});

for (const [how, first] of [["rejects", () => Promise.reject(new Error("not now"))], ["gives no text", () => 7]]) {
  test(`a function that ${how} is called again after a second`, LIMITS, async () => {
    const peer = new Peer();
    const calls = [];
    const token = () => (calls.push(Date.now()) === 1 ? first() : "good");
    const client = open(peer, { token });
    await client.connected();
    assert.equal(calls.length, 2);
    assert.ok(calls[1] - calls[0] >= 900);
    await client.close();
  });
}
