// The declarations that the package ships, in projects of its users: strict, with the libraries checked.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const LIMITS = { timeout: 120_000 };
const run = promisify(execFile);

const PROGRAM = `
import { Client, type Inbox, type Message, type Position } from "godwit-client";

export async function main(): Promise<Position | null> {
  await using client = new Client("ws://a:1", { settings: { itemsMax: 3 } });
  await using watch = client.watch("/a");
  await using messages = client.subscribe("/a", { last: 3 });
  for await (const message of messages) {
    const found: Message = message;
    if (found.json() === 1) break;
  }
  return (await client.publish("/a", { n: 1 })).position;
}

export async function read(inbox: Inbox): Promise<void> {
  await using closed = inbox;
  await closed.ready;
}
`;

/** @type {string} */
let folder;

/** @param {string[]} words */
async function tsc(...words) {
  const program = join(ROOT, "node_modules/typescript/bin/tsc");
  try {
    await run(process.execPath, [program, ...words], { cwd: folder });
  } catch (error) {
    assert.fail(/** @type {any} */ (error).stdout || error);
  }
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "godwit-types-"));
  const home = join(folder, "node_modules/godwit-client");
  await mkdir(home, { recursive: true });
  await copyFile(join(ROOT, "package.json"), join(home, "package.json"));
  await symlink(join(ROOT, "src"), join(home, "src"));
  await tsc("-p", join(ROOT, "tsconfig.types.json"), "--outDir", join(home, "types"));
  await writeFile(join(folder, "program.ts"), PROGRAM);
}, LIMITS);

after(() => rm(folder, { recursive: true }));

for (const [name, options] of /** @type {const} */ ([
  ["a page without Node's types", { module: "esnext", moduleResolution: "bundler", lib: ["es2022", "dom"], types: [] }],
  ["a page with all of the newest library", { module: "esnext", moduleResolution: "bundler", lib: ["esnext", "dom"], types: [] }],
  ["a page, resolved as Node does", { module: "nodenext", moduleResolution: "nodenext", lib: ["es2022", "dom"], types: [] }],
  ["Node", { module: "nodenext", moduleResolution: "nodenext", lib: ["es2023"], types: ["node"], typeRoots: [join(ROOT, "node_modules/@types")] }],
])) {
  test(`a project for ${name} compiles, "await using" included`, LIMITS, async () => {
    const compilerOptions = { target: "es2022", strict: true, noEmit: true, skipLibCheck: false, ...options };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
    await tsc("-p", folder);
  });
}
