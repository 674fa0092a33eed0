// What a Node process keeps: no socket of a stream that was left, and nothing at all once the server refused for good.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { startNode } from "./node_process.js";

const LIMITS = { timeout: 30_000 };
const MODULE = JSON.stringify(new URL("../../src/node.js", import.meta.url).href);
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "godwit-processes-"));
  await writeFile(join(folder, "publish.tokens"), "0123456789abcdef\n");
});
after(() => rm(folder, { recursive: true }));

/** Runs a program to its end; the test's own limit ends one that stays. */
async function run(program, ...words) {
  const child = spawn(process.execPath, ["--expose-gc", "--input-type=module", "-e", program, ...words], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  try {
    const [code] = await once(child, "exit", { signal: AbortSignal.timeout(20_000) });
    return { code, said: said.trim().split("\n") };
  } finally {
    child.kill("SIGKILL");
  }
}

const LEAVING = `
  import { Client } from ${MODULE};
  const [url, transport] = process.argv.slice(1);
  const client = new Client(url, { transport });
  await client.subscribe("/keep").joined();
  for (let n = 0; n < 20; n++) {
    const left = client.subscribe("/left/" + n);
    await left.joined();
    left.close();
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const isSocket = (name) => name === "TCPSocketWrap";
  let sockets = 99;
  const until = performance.now() + 10_000; // what was left closes in a moment
  while (sockets > 4 && performance.now() < until) {
    await new Promise((resolve) => setImmediate(resolve));
    sockets = process.getActiveResourcesInfo().filter(isSocket).length;
  }
  console.log(sockets);
  await client.close();
`;

for (const transport of ["websocket", "sse", "poll"]) {
  test(`by ${transport} streams that were left are closed, also after the garbage was collected`, LIMITS, async () => {
    const node = await startNode();
    try {
      const { code, said } = await run(LEAVING, node.url, transport);
      assert.ok(code === 0 && Number(said[0]) <= 4, `exit code ${code}, ${said[0]} sockets`);
    } finally {
      await node.kill();
    }
  });
}

const REFUSED = `
  import { Client, PositionFile } from ${MODULE};
  const [url, transport, path] = process.argv.slice(1);
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const client = new Client(url, { transport, log, token: "wrong", positions: new PositionFile(path) });
  const tell = (error) => console.log(error.name);
  client.subscribe("/a", () => {}).done.catch(tell);
  client.publish("/a", 1).catch(tell);
  client.request("/a", 1, { timeoutMs: Infinity }).catch(tell);
`;

for (const transport of ["websocket", "sse", "poll", "auto"]) {
  test(`by ${transport} a process whose client was refused for good ends by itself`, LIMITS, async () => {
    const node = await startNode({ "access.mode": "basic", "access.publish_tokens_file": join(folder, "publish.tokens") });
    try {
      const { code, said } = await run(REFUSED, node.url, transport, join(folder, `${transport}.json`));
      assert.deepEqual([code, said], [0, ["SessionClosed", "SessionClosed", "SessionClosed"]]);
    } finally {
      await node.kill();
    }
  });
}
