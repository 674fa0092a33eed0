// The scenarios that all client libraries share (protocol/vectors/scenarios.json), run against a real node.
//
// Each is run by all transports where LONG is set, else by WebSocket, and those of SHORT by all of them. A step that this file does
// not know fails its scenario; none is left out.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, JsonText, PositionFile } from "../../src/node.js";
import { HangingStore, RejectingStore, tokenOf, writeAccess } from "./scenario_parts.js";
import { startNode } from "../integration/node_process.js";
import { vectors } from "../vectors.js";
import { seeded, startProxy } from "./cutting_proxy.js";

const TRANSPORTS = ["websocket", "sse", "poll"];
// One of each kind: ends, cuts, tokens, refusals, stores, frame limits.
const SHORT = [
  "close and subscribe of the same subject in one step is served",
  "connections that are cut lose and repeat nothing",
  "the token of another identity: what was published before is answered, and the subscription resumes",
  "a token that HTTP cannot carry is refused where it is given, and changes nothing",
  "a publish that is too large is refused alone",
  "a store that rejects each save is reported, holds up nothing, and is raised at the end",
  "a message beyond the frame limit is a gap, and the position moves on",
];
const LIMITS = { timeout: 120_000 };
const MEAN_BYTES = 20_000; // of a connection's life, while it cuts
const settings = { reconnectFirstMs: 4, reconnectMaxMs: 40, answerTimeoutMs: 2_000, positionsSaveMs: 50, pingIntervalMs: 1_000, streamTimeoutMs: 2_000 };
const FULL_BYTES = 10; // of a file, while the disk is full
process.on("SIGXFSZ", () => {}); // a write past the limit fails, and ends nothing
const limitFiles = (limit) => execFileSync("prlimit", ["--pid", String(process.pid), `--fsize=${limit}:`]);
const silent = { info: () => {}, warn: () => {}, error: console.error };
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));

/** One node behind a proxy, and the clients and subscriptions of one scenario by name. */
class Scene {
  clients = new Map();
  subscriptions = new Map();
  watches = new Map(); // each with a set of what has subscribers
  failures = new Map(); // by client: resolves when it reports that it could not save
  later = new Map();
  stores = new Map();
  folder = mkdtempSync(join(tmpdir(), "godwit-scenario-"));

  constructor(transport, { node = {}, keeps = false, tokens = false }) {
    this.transport = transport;
    this.settings = keeps ? { ...node, "node.name": "same", "node.data_directory": join(this.folder, "data") } : node;
    this.options = tokens ? writeAccess(this.folder) : [];
  }

  async begin() {
    this.node = await startNode(this.settings, this.options);
    this.proxy = await startProxy(this.node.port, seeded(seed), MEAN_BYTES);
    this.proxy.isCalm = true;
  }

  async end() {
    FAULTS.room();
    for (const client of this.clients.values()) await client.close().catch(() => {}); // a store that rejects: the scenario looks at it
    this.proxy.stop();
    await this.node.kill();
    rmSync(this.folder, { recursive: true });
  }

  async run(steps, number = 0) {
    for (const step of steps) {
      const [verb, ...others] = Object.keys(step).filter((name) => name in STEPS);
      assert.ok(verb !== undefined && others.length === 0, `${JSON.stringify(step)} is not one step that is known`);
      await STEPS[verb](this, JSON.parse(JSON.stringify(step).replaceAll("{n}", String(number))));
    }
  }
}

const numbers = ({ from, upto }) => Array.from({ length: upto - from }, (_, n) => from + n);
const hasPosition = ({ position }) => position !== null;
const STORES = { rejects: RejectingStore, hangs: HangingStore };

/** A token, or a function that returns one after the other. */
function givenToken({ token, token_text: text, token_texts: texts, repeated = 1 }) {
  if (token !== undefined) return tokenOf(token);
  if (texts === undefined) return text?.repeat(repeated);
  const left = texts.map((each) => (typeof each === "string" ? each : tokenOf(each.token)));
  return () => left.shift();
}

async function take(subscription, count) {
  const found = [];
  for await (const message of subscription) if (found.push(message.json()) === count) break;
  return found;
}

/** Begun, and looked at later. */
async function keep(later, name, calls) {
  for (const call of calls) call.catch(() => {});
  later.set(name, calls);
  await Promise.resolve();
}

const FAULTS = {
  cuts: ({ proxy }) => (proxy.isCalm = false),
  calm: ({ proxy }) => proxy.calm(),
  async kill(scene) {
    await scene.node.kill();
    scene.node = await startNode(scene.settings, scene.options);
    scene.proxy.redirect(scene.node.port);
  },
  async freeze({ node, clients }) {
    node.child.kill("SIGSTOP");
    while ([...clients.values()].some(({ isConnected }) => isConnected)) await new Promise((resolve) => setTimeout(resolve, 10));
  },
  full: () => limitFiles(FULL_BYTES),
  room: () => limitFiles("unlimited"),
  thaw: ({ node }) => node.child.kill("SIGCONT"),
};

const CALLS = {
  joined: ({ subscriptions }, { of }) => subscriptions.get(of).joined(),
  client: async (scene, { of: _, ...step }) => STEPS.client(scene, { ...step, client: "refused" }),
  close: ({ clients }, { of }) => clients.get(of).close(),
  connected: ({ clients }, { of }) => clients.get(of).connected(),
  publish: ({ clients }, { of, subject = "/a" }) => clients.get(of).publish(subject, 1),
  publish_large: ({ clients }, { of, megabytes }) => clients.get(of).publish("/large", "x".repeat(megabytes << 20)),
  async publish_json({ clients }, { of, json, beside, ...range }) {
    const client = clients.get(of);
    const publishing = numbers(range).map((number) => client.publish(beside, number));
    const refused = client.publish("/unreadable", new JsonText(json));
    await Promise.allSettled([refused, ...publishing]);
    assert.ok((await Promise.all(publishing)).every(hasPosition));
    return refused;
  },
  subscribe: async ({ clients }, { of }) => clients.get(of).subscribe("/fails"),
  set_token: async ({ clients }, { of, ...step }) => clients.get(of).setToken(givenToken({ token_text: "token", ...step })),
  request: ({ clients }, { of }) => clients.get(of).request("/nobody", 1, { timeoutMs: 50 }),
};

const STEPS = {
  client({ clients, failures, stores, proxy, folder, transport }, { client, items_max: itemsMax = 1_000, frame_bytes_max: frameBytesMax = 16 << 20, positions, store, ...step }) {
    let onSaveFailed;
    failures.set(client, new Promise((resolve) => (onSaveFailed = resolve)));
    if (store && !stores.has(store)) stores.set(store, new STORES[store]());
    const [token, places] = [givenToken(step), positions ? new PositionFile(join(folder, positions)) : stores.get(store)];
    const more = { ...(token !== undefined && { token }), ...(places && { positions: places }) };
    clients.set(client, new Client(proxy.url, { transport, settings: { ...settings, itemsMax, frameBytesMax }, log: silent, onSaveFailed, ...more }));
  },
  async subscribe({ clients, subscriptions }, { subscribe, as, by, snapshot = true, reading = false, joined = true }) {
    const found = clients.get(by).subscribe(subscribe, { snapshot }, reading ? () => {} : undefined);
    subscriptions.set(as, found);
    if (joined) await found.joined();
  },
  async publish({ clients, later }, { publish, by, ack, later: name, ...range }) {
    const calls = numbers(range).map((number) => clients.get(by).publish(publish, number, ack ? { ack } : {}));
    if (name) await keep(later, name, calls);
    else assert.ok((await Promise.all(calls)).every(hasPosition));
  },
  async set_token({ clients, later }, { set_token: identity, by, later: name }) {
    const call = clients.get(by).setToken(tokenOf(identity));
    if (name) await keep(later, name, [call]);
    else await call;
  },
  async await({ later }, { await: name, error }) {
    const outcomes = await Promise.allSettled(later.get(name));
    if (error) return assert.deepEqual([...new Set(outcomes.map(({ reason }) => reason?.name))], [error]);
    assert.deepEqual(outcomes.filter(({ reason }) => reason), []);
    assert.ok(outcomes.every(({ value }) => value === undefined || hasPosition(value)));
  },
  async read({ subscriptions }, { read, ...range }) {
    assert.deepEqual(await take(subscriptions.get(read), range.upto - range.from), numbers(range));
  },
  handled: ({ subscriptions }, { handled }) => subscriptions.get(handled).handled(),
  close: ({ clients, subscriptions }, { close }) => (clients.get(close) ?? subscriptions.get(close)).close(),
  watch({ clients, watches }, { watch: selector, as, by }) {
    const known = new Set();
    const watch = clients.get(by).watch(selector, ({ subject, hasSubscribers }) => (hasSubscribers ? known.add(subject) : known.delete(subject)));
    watch.done.catch(() => {}); // a refusal is looked at where it is complete
    watches.set(as, { watch, known });
  },
  async complete({ watches, transport }, { complete }) {
    const { watch } = watches.get(complete);
    if (transport === "poll") await assert.rejects(watch.complete(), { name: "CommandRefused" });
    else await watch.complete();
  },
  async interest({ watches, transport }, { interest, known }) {
    const found = watches.get(interest).known;
    while (transport !== "poll" && !(found.size === known.length && known.every((each) => found.has(each)))) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  },
  publish_text: async ({ clients }, { publish_text: subject, by, characters }) => assert.ok((await clients.get(by).publish(subject, "x".repeat(characters))).position),
  async gap({ subscriptions }, { gap, reason }) {
    for await (const item of subscriptions.get(gap).items()) if (item.type === "gap") return assert.equal(item.reason, reason);
  },
  async saved({ folder }, { saved }) {
    while (!existsSync(join(folder, saved))) await new Promise((resolve) => setTimeout(resolve, 10));
  },
  save_failed: ({ failures }, step) => failures.get(step.save_failed),
  fault: (scene, { fault }) => FAULTS[fault](scene),
  hung: ({ stores }, step) => stores.get(step.hung).hung,
  fails: (scene, step) => assert.rejects(async () => CALLS[step.fails](scene, step), ({ name }) => [step.error].flat().includes(name)),
  counts({ subscriptions }, { counts, missing, gaps }) {
    const found = subscriptions.get(counts).counts;
    assert.ok(found.missing <= missing && found.gaps <= gaps, JSON.stringify(found));
  },
  /** Over HTTP a stream that was replaced is closed a moment later: the node counts it until then. */
  async at_node({ node, transport }, step) {
    for (;;) {
      const text = await (await fetch(`${node.adminUrl}/metrics`)).text();
      const counts = [...text.matchAll(/^godwit_subscriptions(?:\{[^}]*\})? (\d+)/gm)].map(([, count]) => Number(count));
      const sum = counts.reduce((one, other) => one + other, 0);
      if (sum === step.at_node) return;
      assert.ok(transport !== "websocket", `${sum} subscriptions at the node, not ${step.at_node}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
  /** Also with a collector that runs all the time: it frees the sockets of streams that were left, which shows those it cannot. */
  async connections({ proxy }, { connections }) {
    while (proxy.open > connections) {
      globalThis.gc?.();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  },
  async repeat(scene, { repeat, steps }) {
    for (let n = 0; n < repeat; n++) await scene.run(steps, n);
  },
  async answer({ clients }, { answer, by }) {
    const client = clients.get(by);
    await client.subscribe(answer, { snapshot: false }, (message) => client.reply(message, 2 * message.json())).joined();
  },
  async request({ clients }, { request, by, content, reply }) {
    assert.equal((await clients.get(by).request(request, content, { timeoutMs: 30_000 })).json(), reply);
  },
};

for (const scenario of vectors("scenarios").scenarios) {
  for (const transport of TRANSPORTS) {
    if (transport !== "websocket" && !process.env.LONG && !SHORT.includes(scenario.name)) continue;
    test(`by ${transport}: ${scenario.name}`, LIMITS, async () => {
      const scene = new Scene(transport, scenario);
      await scene.begin();
      try {
        await scene.run(scenario.steps);
      } finally {
        await scene.end();
      }
    });
  }
}
