// A token that is waited for: it takes as long as it takes, and holds nobody who leaves.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "../../src/node.js";

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const NOBODY = "ws://127.0.0.1:9"; // never asked: there is no token

/** A token function that never answers, and says when it is asked. */
function never() {
  let asked = 0;
  const waiting = [];
  const token = () => {
    asked += 1;
    waiting.splice(0).forEach((each) => each());
    return new Promise(() => {});
  };
  const until = async (count) => {
    while (asked < count) await new Promise((resolve) => waiting.push(resolve));
  };
  return { token, until };
}

test("who closes does not wait for a token that never comes", { timeout: 20_000 }, async () => {
  const { token, until } = never();
  const client = new Client(NOBODY, { token, log: silent });
  await until(1);
  await client.close();
});

test("who pauses and comes back is asked for a token again", { timeout: 20_000 }, async () => {
  const { token, until } = never();
  const client = new Client(NOBODY, { token, log: silent });
  await until(1);
  client.pause();
  client.resume();
  await until(2);
  await client.close();
});
