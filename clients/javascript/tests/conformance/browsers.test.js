// What browsers of five years ago do not know is not in the sources: a syntax of later makes a whole module unreadable there.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, ReplyTimeout } from "../../src/node.js";
import { LIMITS, open } from "../shell/opening.js";
import { Peer } from "../shell/peer.js";

const SOURCES = fileURLToPath(new URL("../../src", import.meta.url));
/** By what is newer than Chrome 92, Firefox 90 or Safari 15.0. */
const NEWER = {
  "a static block": /\bstatic\s*\{/,
  "a lookbehind": /\(\?<[=!]/,
  "`in` for a private name": /#\w+ in /,
  "a declaration with using": /\b(?:await )?using \w+ =/,
  "a method": /\.(?:at|findLast|findLastIndex|toSorted|toReversed|toSpliced|with|isWellFormed|toWellFormed|throwIfAborted|groupBy|union|intersection)\(/,
  "a function": /\b(?:Object\.(?:hasOwn|groupBy)|Promise\.(?:withResolvers|try)|Array\.fromAsync|AbortSignal\.(?:any|timeout|abort)|structuredClone|URL\.(?:canParse|parse)|crypto\.randomUUID|Response\.json)\(/,
};

test("the sources hold nothing that is newer", () => {
  for (const name of readdirSync(SOURCES, { recursive: true }).filter((each) => each.endsWith(".js"))) {
    const text = readFileSync(join(SOURCES, name), "utf8").replaceAll(/^\s*(?:\/\/|\*|\/\*\*).*$/gm, "");
    for (const [what, pattern] of Object.entries(NEWER)) assert.doesNotMatch(text, pattern, `${name} has ${what}`);
  }
});

test("a signal that does not say why it gives up rejects with an error, and a request with its own", LIMITS, async (context) => {
  context.after(() => Object.defineProperty(AbortSignal.prototype, "reason", reason));
  const reason = Object.getOwnPropertyDescriptor(AbortSignal.prototype, "reason");
  Object.defineProperty(AbortSignal.prototype, "reason", { get: () => undefined, configurable: true });
  const client = open(new Peer());
  await assert.rejects(client.request("/nobody", 1, { timeoutMs: 20 }), ReplyTimeout);
  const away = new Client("ws://127.0.0.1:9", { log: { info: () => {}, warn: () => {}, error: () => {} } });
  const giving = new AbortController();
  const publishing = away.publish("/a", 1, { signal: giving.signal });
  giving.abort();
  await assert.rejects(publishing, { name: "ClientError", message: "the publish was aborted" });
  await assert.rejects(away.publish("/a", 1, { signal: giving.signal }), { name: "ClientError" });
  await assert.rejects(away.request("/nobody", 1, { timeoutMs: 20 }), ReplyTimeout);
  await Promise.all([client.close(), away.close()]);
});
