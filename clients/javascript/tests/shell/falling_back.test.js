// A publish whose answer a WebSocket took with it, and that HTTP carries next: it is one message.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "../../src/client.js";
import { node } from "../../src/platform/node.js";
import { HttpNode } from "./http_node.js";
import { LIMITS, QUICK, logOf } from "./opening.js";
import { Peer } from "./peer.js";

/** A client of a peer that knows numbers, with an HTTP node next to it. */
function openBoth(address, transport) {
  const [peer, http, posted] = [new Peer(), new HttpNode(), []];
  peer.hasPublisher = true;
  const ask = (url, request) => {
    if (request?.method === "POST" && url.endsWith("/v1/messages")) posted.push(...JSON.parse(request.body));
    return http.ask(url, request);
  };
  const options = { transport, settings: QUICK, log: logOf([]) };
  return { peer, posted, client: new Client(address, options, { ...node, open: peer.transport, ask }) };
}

test("what a WebSocket left without an answer goes by HTTP under the same key", LIMITS, async () => {
  const { peer, posted, client } = openBoth("ws://falls-back:1", "auto");
  await client.connected();
  peer.isMute = true;
  const publishing = Promise.all([client.publish("/a", 1), client.removeSnapshot("/a")]);
  await peer.hear("publish", 2);
  peer.isClosed = true;
  peer.cut();
  await publishing;
  assert.equal(client.transport, "sse");
  const known = (command) => [command.key, command.number];
  const first = (await peer.hear("publish", 2)).map(known);
  assert.deepEqual(posted.map(known), first);
  assert.ok(first.every(([key, number]) => typeof key === "string" && number === undefined));
  await client.close();
});

test("only a client that is fixed to WebSocket numbers its publishes", LIMITS, async () => {
  for (const [transport, isNumbered] of [[undefined, false], ["auto", false], ["websocket", true]]) {
    const { peer, client } = openBoth(`ws://numbers-${transport}:1`, transport);
    await client.publish("/a", 1);
    const [[{ connect }], [{ key, number }]] = [await peer.hear("connect"), await peer.hear("publish")];
    assert.deepEqual([connect.publisher !== undefined, key === undefined, number !== undefined], [isNumbered, isNumbered, isNumbered]);
    await client.close();
  }
});
