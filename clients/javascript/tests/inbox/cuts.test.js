// Connections that are cut, and a node and dispatch that die and return: no item is missing or there twice, and counts are right.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Inbox } from "../../src/node.js";
import { seeded, startProxy } from "../faults/cutting_proxy.js";
import { dataFolder, startDispatch, watched } from "./dispatch_process.js";

const LIMITS = { timeout: 600_000 }; // half a minute to two, as busy as the machine is
const QUICK = { reconnectFirstMs: 4, reconnectMaxMs: 40, answerTimeoutMs: 500 };
const silent = { info: () => {}, warn: () => {}, error: console.error };
const RECOVERS_SOON = { "dispatch_limits.lease_ms": 1_000, "dispatch_limits.sweep_ms": 100 };
const BETWEEN_CUTS_BYTES = 4_000;

for (const seed of [1, 2, 3]) {
  test(`two devices behind connections that are cut, and two kill -9, seed ${seed}`, LIMITS, async (t) => {
    const folder = dataFolder(t);
    let dispatch = await startDispatch(folder, RECOVERS_SOON);
    await dispatch.send("n0");
    const token = await dispatch.token();
    const node = await startProxy(dispatch.port, seeded(seed), BETWEEN_CUTS_BYTES);
    const api = await startProxy(portOf(dispatch), seeded(seed + 100), BETWEEN_CUTS_BYTES);
    const devices = [0, 1].map(() => {
      const client = new Client(node.url, { token, settings: QUICK, log: silent });
      const url = api.url.replace("ws:", "http:");
      return { client, ...watched((events) => new Inbox(client, { url, token: () => token, confirmMs: 50, ...events })) };
    });
    const names = Array.from({ length: 40 }, (_, number) => `n${number}`);
    for (const [number, name] of names.entries()) {
      if (number === 15 || number === 30) {
        await dispatch.kill();
        dispatch = await startDispatch(folder, RECOVERS_SOON);
        node.redirect(dispatch.port);
        api.redirect(portOf(dispatch));
      }
      await dispatch.send(name);
      if (number % 10 === 5) await dispatch.api("POST", `/v1/notifications/n${number - 3}/recall`);
    }
    node.calm();
    api.calm();
    const left = names.filter((name) => !["n2", "n12", "n22", "n32"].includes(name));
    for (const { inbox, until, ids } of devices) {
      await until(({ items, unread }) => items.length === left.length && unread === left.length);
      const { items } = await request(dispatch, token, "/v1/inbox?before=0.999999999999999999&state=active&limit=100");
      assert.deepEqual(ids(), items.map((item) => item.id), "the order is the store's: what a kill left was appended later");
      assert.deepEqual(ids().sort(), [...left].sort());
      assert.equal(inbox.unseen, left.length);
    }
    assert.ok(node.cuts + api.cuts > 0);
    await devices[0].inbox.mark("read", devices[0].inbox.items.slice(0, 6));
    await devices[1].until(({ unread }) => unread === left.length - 6);
    for (const { inbox, client } of devices) {
      inbox.close();
      await client.close();
    }
    node.stop();
    api.stop();
    assert.equal(await dispatch.terminate(), 0);
  });
}

async function request({ dispatchUrl }, token, path) {
  return (await fetch(dispatchUrl + path, { headers: { Authorization: `Bearer ${token}` } })).json();
}

/** @param {{ dispatchUrl: string }} dispatch */
function portOf({ dispatchUrl }) {
  return Number(new URL(dispatchUrl).port);
}
