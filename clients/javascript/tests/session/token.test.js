// A token that is slow to arrive does not delay closing the client.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "../../src/node.js";

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const NOBODY = "ws://127.0.0.1:9"; // never connected to: there is no token

/** A token function that never answers, and reports when it is called. */
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

test("closing does not wait for a token that never arrives", { timeout: 20_000 }, async () => {
  const { token, until } = never();
  const client = new Client(NOBODY, { token, log: silent });
  await until(1);
  await client.close();
});

test("after a pause and a resume the token is requested again", { timeout: 20_000 }, async () => {
  const { token, until } = never();
  const client = new Client(NOBODY, { token, log: silent });
  await until(1);
  client.pause();
  client.resume();
  await until(2);
  await client.close();
});
