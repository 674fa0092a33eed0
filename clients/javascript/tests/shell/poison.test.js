// A message that no client can read comes again after each reconnect: the second time ends the client, by every transport.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Clock, HttpNode, POISON, openOverHttp } from "./http_node.js";
import { LIMITS, open } from "./opening.js";
import { Peer } from "./peer.js";

const TWICE = { name: "ClientError", message: /cannot read .*, twice in a row/ };

for (const poison of ["{", "[[]]", '{"message":7,"content":1}', '{"id":"x","ok":1}', '{"gap":"/a","missed":{}}']) {
  test(`by a WebSocket: ${poison}`, LIMITS, async () => {
    const peer = new Peer();
    const client = open(peer);
    for (let n = 0; n < 2; n++) {
      await client.connected();
      peer.say(poison);
      await peer.until(() => !client.isConnected);
    }
    await assert.rejects(client.connected(), TWICE);
    await assert.rejects(client.publish("/a", 1), TWICE);
    assert.equal(peer.urls.length, 2);
    await client.close();
  });
}

test("connections that could not be made between make it no first time", LIMITS, async () => {
  const peer = new Peer();
  const client = open(peer);
  await client.connected();
  peer.isClosed = true;
  peer.say("{");
  await peer.until(() => peer.urls.length > 2);
  peer.isClosed = false;
  await client.connected();
  peer.say("{");
  await peer.until(() => !client.isConnected);
  await assert.rejects(client.connected(), TWICE);
  await client.close();
});

for (const [way, request] of [["sse", "POST /v1/stream"], ["poll", "GET /v1/messages"]]) {
  for (const selector of ["/a", "/*"]) {
    test(`by ${way}, on ${selector}`, LIMITS, async () => {
      const [clock, node] = [new Clock(), new HttpNode()];
      const client = openOverHttp(node, clock, way, { reconnectFirstMs: 20, reconnectMaxMs: 400 });
      let error = null;
      client.subscribe(selector, {}, { message: () => {}, error: (refusal) => (error = refusal) });
      node.append("/a", 1);
      assert.ok(await clock.until(() => node.asked.includes(request), 3_000));
      node.append("/a", POISON);
      assert.ok(await clock.until(() => error !== null, 60_000), "it reconnects for ever");
      assert.match(error.message, TWICE.message);
      await assert.rejects(client.publish("/a", 1), TWICE);
      await client.close();
      clock.stop();
    });
  }
}

test("a server that cannot read two frames in a row ends the client with an error that says why", LIMITS, async () => {
  const peer = new Peer();
  const client = open(peer);
  for (let n = 0; n < 2; n++) {
    await client.connected();
    peer.say('{"error":4100,"name":"CommandMalformed","reason":"two verbs"}');
    await peer.until(() => !client.isConnected);
  }
  const message = "the server cannot read a frame of this client (CommandMalformed: two verbs), twice in a row; the client does not connect a third time";
  await assert.rejects(client.connected(), { name: "ClientError", message });
  await client.close();
});
