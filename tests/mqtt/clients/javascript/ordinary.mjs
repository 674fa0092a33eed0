// MQTT.js as its README has it: over TCP, TLS and WebSocket, in 3.1.1 and 5.0. Prints each step that came out right.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import mqtt from "mqtt";

const { env } = process;
const ca = readFileSync(env.GODWIT_CA_FILE);
const DOORS = {
  tcp: `mqtt://localhost:${env.GODWIT_MQTT_PORT}`,
  tls: `mqtts://localhost:${env.GODWIT_MQTT_TLS_PORT}`,
  websocket: `ws://localhost:${env.GODWIT_CLIENT_PORT}/mqtt`,
  "websocket over tls": `wss://localhost:${env.GODWIT_CLIENT_TLS_PORT}/mqtt`,
};

/** A connected client, and a queue of what it is sent. */
async function come(url, options = {}) {
  const client = mqtt.connect(url, { ca, reconnectPeriod: 0, ...options });
  const messages = [];
  let wake = () => {};
  client.on("message", (topic, payload, packet) => {
    messages.push({ topic, payload, packet });
    wake();
  });
  await once(client, "connect"); // what a session was owed may come with the CONNACK
  const next = async () => {
    while (messages.length === 0) await new Promise((resolve) => (wake = resolve));
    return messages.shift();
  };
  return { client, next };
}

for (const [name, url] of Object.entries(DOORS)) {
  for (const protocolVersion of [4, 5]) {
    const { client, next } = await come(url, { protocolVersion });
    const place = `js/${name}/${protocolVersion}`;
    const [granted] = await client.subscribeAsync(`${place}/#`, { qos: 2 });
    assert.equal(granted.qos, 2);
    const big = Buffer.alloc(150_000, 7);
    for (const qos of [0, 1, 2]) {
      await client.publishAsync(`${place}/${qos}`, big, { qos });
      const { topic, payload, packet } = await next();
      assert.deepEqual([topic, packet.qos, payload.equals(big)], [`${place}/${qos}`, qos, true]);
    }
    await client.endAsync();
    console.log(`${name} ${protocolVersion}`);
  }
}

{
  const options = { clientId: "js-session", clean: false, protocolVersion: 5, properties: { sessionExpiryInterval: 600 } };
  const first = await come(DOORS.tcp, options);
  await first.client.subscribeAsync("js/session", { qos: 1 });
  await first.client.endAsync();
  const sender = await come(DOORS.websocket);
  for (let n = 0; n < 20; n += 1) await sender.client.publishAsync("js/session", String(n), { qos: 1 });
  const again = await come(DOORS.websocket, options);
  for (let n = 0; n < 20; n += 1) assert.equal(String((await again.next()).payload), String(n));
  await again.client.endAsync();
  await sender.client.endAsync();
  console.log("session");
}

{
  const watcher = await come(DOORS.websocket, { protocolVersion: 5 });
  await watcher.client.subscribeAsync("js/will", { qos: 1 });
  const lost = await come(DOORS.tcp, { will: { topic: "js/will", payload: Buffer.from("gone"), qos: 1, retain: false } });
  lost.client.stream.destroy();
  await once(lost.client, "close");
  assert.equal(String((await watcher.next()).payload), "gone");
  await watcher.client.endAsync();
  console.log("will");
}

{
  const asker = await come(DOORS.tcp, { protocolVersion: 5 });
  const responder = await come(DOORS.websocket, { protocolVersion: 5 });
  await responder.client.subscribeAsync("js/ask", { qos: 1 });
  await asker.client.subscribeAsync("js/answers", { qos: 1 });
  const properties = { responseTopic: "js/answers", correlationData: Buffer.from([1, 2]), userProperties: { a: "b" } };
  await asker.client.publishAsync("js/ask", "?", { qos: 1, properties });
  const { packet } = await responder.next();
  assert.equal(packet.properties.userProperties.a, "b");
  const { responseTopic, correlationData } = packet.properties;
  await responder.client.publishAsync(responseTopic, "!", { qos: 1, properties: { correlationData } });
  assert.deepEqual([...(await asker.next()).packet.properties.correlationData], [1, 2]);
  await asker.client.publishAsync("js/kept", "state", { qos: 1, retain: true });
  await responder.client.subscribeAsync("js/kept", { qos: 1 });
  assert.equal((await responder.next()).packet.retain, true);
  await asker.client.publishAsync("js/kept", "", { qos: 1, retain: true });
  await asker.client.endAsync();
  await responder.client.endAsync();
  console.log("request, response, retained");
}

{
  const members = await Promise.all([0, 1].map(() => come(DOORS.tcp, { protocolVersion: 5 })));
  for (const { client } of members) await client.subscribeAsync("$share/js/js/work", { qos: 1 });
  const sender = await come(DOORS.tcp);
  for (let n = 0; n < 20; n += 1) await sender.client.publishAsync("js/work", String(n), { qos: 1 });
  const got = [];
  for (const { next } of members) for (let n = 0; n < 10; n += 1) got.push(Number((await next()).payload));
  assert.deepEqual(got.sort((a, b) => a - b), Array.from({ length: 20 }, (_, n) => n));
  for (const { client } of [...members, sender]) await client.endAsync();
  console.log("shared");
}
