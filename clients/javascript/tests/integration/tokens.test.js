// Another token for a client that is connected: the same identity renews, another one reconnects, and nothing is mixed.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { AnswerLost, Client, ClientError, SessionClosed } from "../../src/node.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 30_000 };
const [ISSUER, SECRET] = ["https://login.example", "0123456789abcdef0123456789abcdef"];
const settings = { reconnectFirstMs: 5, reconnectMaxMs: 20 };
const silent = { info: () => {}, warn: () => {}, error: () => {} };
let folder, node;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "godwit-tokens-"));
  const [secret, config] = ["secret", "node.toml"].map((name) => join(folder, name));
  await writeFile(secret, SECRET);
  await writeFile(config, `[access]\nmode = "jwt"\n[issuers."${ISSUER}"]\nkeys_file = "${secret}"\nalgorithms = ["HS256"]\n`);
  node = await startNode({}, ["--config", config]);
});
after(async () => {
  await node.kill();
  await rm(folder, { recursive: true });
});

function makeToken(name, secret = SECRET) {
  const permissions = { allow: { both: ["/all/**", `/of/${name}/**`] } };
  const claims = { iss: ISSUER, sub: name, exp: Math.floor(Date.now() / 1000) + 600, permissions };
  const head = [{ alg: "HS256", typ: "JWT" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return `${head}.${createHmac("sha256", secret).update(head).digest("base64url")}`;
}

const publish = (client, subject, from, upto) =>
  Array.from({ length: upto - from }, (_, n) => client.publish(subject, from + n));

async function take(subscription, count) {
  const found = [];
  for await (const message of subscription) if (found.push(message.json()) === count) break;
  return found;
}

for (const transport of /** @type {const} */ (["websocket", "sse", "poll"])) {
  for (const [name, other] of [["the same identity renews", "ann"], ["another identity resumes where the first one was", "bob"]]) {
    test(`by ${transport} ${name}`, LIMITS, async () => {
      const subject = `/all/${transport}/${other}`;
      const client = new Client(node.url, { transport, token: makeToken("ann"), settings, log: silent });
      try {
        const subscription = client.subscribe(subject, { snapshot: false });
        await subscription.joined();
        const earlier = publish(client, subject, 0, 100);
        await client.setToken(makeToken(other));
        const later = publish(client, subject, 100, 200);
        assert.ok((await Promise.all([...earlier, ...later])).every(({ position }) => position));
        assert.deepEqual(await take(subscription, 200), Array.from({ length: 200 }, (_, n) => n));
        assert.ok((await client.publish(`/of/${other}/1`, 1)).position);
        assert.equal(subscription.counts.gaps + subscription.counts.missing, 0);
      } finally {
        await client.close();
      }
    });
  }

  test(`by ${transport} the last of two calls wins, and a refused token ends the client`, LIMITS, async () => {
    const client = new Client(node.url, { transport, token: makeToken("ann"), settings, log: silent });
    try {
      await client.connected();
      const first = client.setToken(makeToken("bob"));
      first.catch(() => {});
      await client.setToken(makeToken("ann"));
      await assert.rejects(first, ClientError);
      assert.ok((await client.publish("/of/ann/1", 1)).position);
      await assert.rejects(client.setToken(makeToken("ann", "f".repeat(32))), SessionClosed);
      await assert.rejects(client.publish("/all/a", 1), SessionClosed);
    } finally {
      await client.close();
    }
  });
}

test("before the connection it is the token of the first one", LIMITS, async () => {
  const client = new Client(node.url, { token: "wrong", settings, log: silent });
  const waiting = client.publish("/of/bob/1", 1);
  await client.setToken(makeToken("bob"));
  assert.ok((await waiting).position);
  await client.close();
});

test("what waits while disconnected is not sent under another token", LIMITS, async () => {
  const client = new Client(node.url, { token: makeToken("ann"), settings, log: silent });
  await client.publish("/all/a", 1);
  client.pause();
  while (client.isConnected) await new Promise((resolve) => setImmediate(resolve));
  const waiting = client.publish("/all/a", 2);
  const setting = client.setToken(makeToken("bob"));
  await assert.rejects(waiting, AnswerLost);
  client.resume();
  await setting;
  await client.close();
});
