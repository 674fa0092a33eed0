// Saved positions: a file that is broken is refused by name and left as it is.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { PositionFileInvalid } from "../../src/errors.js";
import { PositionFile } from "../../src/position_store/file.js";

test("a broken file is refused at the start, by name", (context) => {
  const folder = mkdtempSync(join(tmpdir(), "godwit-places-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "positions.json");
  for (const content of ["", "[]", "{", "null"]) {
    writeFileSync(path, content);
    assert.throws(() => new PositionFile(path), (error) => error instanceof PositionFileInvalid && error.path === path);
    assert.equal(readFileSync(path, "utf8"), content);
  }
});

test("a pipe or a device is refused, and not read", (context) => {
  const folder = mkdtempSync(join(tmpdir(), "godwit-pipe-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const path of [pipe, "/dev/null"]) assert.throws(() => new PositionFile(path), /not a regular file/);
});
