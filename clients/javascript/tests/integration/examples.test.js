// The programs that are shown do what they say: the README's, the guide's, the examples'.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client } from "../../src/node.js";
import { startNode } from "./node_process.js";

const LIMITS = { timeout: 30_000 };
const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const ENTRY = new URL("../../src/node.js", import.meta.url).href;
let node;
let folder;

before(async () => {
  node = await startNode();
  folder = mkdtempSync(join(tmpdir(), "godwit-"));
});
after(async () => {
  rmSync(folder, { recursive: true });
  await node.terminate();
});

/** The standard output of a program that ends by itself, well. */
async function run(program) {
  const child = spawn(process.execPath, [program], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let [output, errors] = ["", ""];
  child.stdout.on("data", (text) => (output += text));
  child.stderr.on("data", (text) => (errors += text));
  const [code] = await once(child, "exit");
  assert.equal(code, 0, errors);
  return output;
}

for (const page of ["clients/javascript/README.md", "docs/guides/javascript.md", "docs/clients/javascript-http.md"]) {
  const blocks = [...readFileSync(join(ROOT, page), "utf8").matchAll(/```js\n(.*?)```/gs)].map(([, block]) => block);
  assert.ok(blocks.length > 0, page);
  blocks.forEach((block, number) => {
    test(`program ${number + 1} of ${page} runs`, LIMITS, async () => {
      const program = join(folder, "program.mjs");
      writeFileSync(program, block.replaceAll("ws://127.0.0.1:8800", node.url).replaceAll('"godwit-client"', JSON.stringify(ENTRY)));
      const lines = (await run(program)).trim().split("\n");
      for (const [, word] of block.matchAll(/^ *console\.log\("(\w+)/gm)) {
        assert.ok(lines.some((line) => line.startsWith(word)), `${word} is not in ${lines}`);
      }
    });
  });
}

test("tail prints what happens", LIMITS, async () => {
  const child = spawn(process.execPath, [join(ROOT, "examples/tail.js"), "/news/**", node.url], { stdio: ["ignore", "pipe", "inherit"] });
  const client = new Client(node.url);
  const { position } = await client.publish("/news/today", "hello");
  const [line] = await once(child.stdout, "data");
  assert.equal(String(line), `${position} /news/today hello\n`);
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [0, null]);
  await client.close();
});
