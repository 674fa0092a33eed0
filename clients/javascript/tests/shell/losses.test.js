// What a client logs while it has no server, and times that are longer than a timer of JavaScript can be.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { after } from "../../src/signal.js";
import { Client } from "../../src/node.js";
import { settingsOf } from "../../src/session/settings.js";
import { LIMITS } from "./opening.js";
import { Peer } from "./peer.js";

const QUICK = { reconnectFirstMs: 5, reconnectMaxMs: 20 };

/** A log that keeps its lines, and waits for some. */
class Lines {
  /** @type {[string, string][]} */
  all = [];
  #wake = () => {};
  info = (/** @type {string} */ line) => this.#add("info", line);
  warn = (/** @type {string} */ line) => this.#add("warn", line);
  error = (/** @type {string} */ line) => this.#add("error", line);

  async count(/** @type {number} */ count) {
    while (this.all.length < count) await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    return this.all;
  }

  #add(/** @type {string} */ level, /** @type {string} */ line) {
    this.all.push([level, line]);
    this.#wake();
  }
}

/** @param {import("node:http").RequestListener} answer */
async function serve(answer) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `ws://127.0.0.1:${port}`, stop: () => server.close() };
}

for (const transport of /** @type {const} */ (["auto", "websocket", "sse", "poll"])) {
  test(`without a server the first failure is one warning, by ${transport}`, LIMITS, async () => {
    const { url, stop } = await serve(() => {});
    stop();
    const log = new Lines();
    const client = new Client(url, { log, transport, settings: QUICK });
    const [[level, line], ...later] = await log.count(3);
    await client.close();
    assert.equal(level, "warn");
    assert.match(line, new RegExp(`cannot connect to ${url}/v1/live: .*(?:ECONNREFUSED|Connection refused).*; retrying$`));
    assert.deepEqual([...new Set(later.map(([each]) => each))], ["info"]);
  });
}

test("a connection that was there is disconnected, and that is no warning", LIMITS, async () => {
  const peer = new Peer();
  const log = new Lines();
  const client = new Client("ws://peer", { log, transport: peer.transport, settings: QUICK });
  await client.connected();
  peer.cut();
  const lost = (await log.count(2))[1];
  await client.close();
  assert.deepEqual([lost?.[0], /^godwit: disconnected from ws:/.test(String(lost?.[1]))], ["info", true]);
});

for (const transport of /** @type {const} */ (["websocket", "sse", "poll"])) {
  test(`a port that is not for clients ends the client with its sentence, by ${transport}`, LIMITS, async () => {
    let asked = 0;
    const { url, stop } = await serve((_, response) => {
      asked++;
      response.writeHead(421).end('{"status":421,"title":"this is the admin port"}');
    });
    const client = new Client(url, { log: new Lines(), settings: QUICK, transport });
    await assert.rejects(client.connected(), /421: this is the admin port/);
    await assert.rejects(client.publish("/a", 1), /this is the admin port/);
    assert.ok(asked <= (transport === "websocket" ? 1 : 2), `${asked} requests`); // HTTP requests the stream in addition to the first one
    await client.close();
    stop();
  });
}

test("a time that no timer of JavaScript can hold never fires", LIMITS, async () => {
  for (const ms of [2 ** 31, 2 ** 40, Infinity]) assert.equal(after(ms, () => assert.fail("it fired")), undefined);
  clearTimeout(after(2 ** 31 - 1, () => assert.fail("it fired")));
  const names = Object.keys(settingsOf({})).filter((name) => name.endsWith("Ms"));
  const peer = new Peer();
  for (const ms of [2 ** 31, Infinity]) {
    const settings = Object.fromEntries(names.map((name) => [name, ms]));
    const log = new Lines();
    const client = new Client("ws://peer", { log, transport: peer.transport, settings });
    await client.connected();
    await client.publish("/a", 1);
    await client.close();
    assert.deepEqual(log.all.filter(([level]) => level !== "info"), []);
  }
});
