// An inbox against a real `godwit serve --dispatch`: lists, marks on all devices, counts, and confirming.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, DispatchRefused, Inbox } from "../../src/node.js";
import { dataFolder, startDispatch, watched } from "./dispatch_process.js";

const LIMITS = { timeout: 180_000 };

/** A device of the receiver: a client with an inbox. */
async function device(t, dispatch, options = {}, receiver = "ann") {
  const token = await dispatch.token(receiver);
  const client = new Client(dispatch.url, { token });
  const opened = watched((events) => new Inbox(client, { url: dispatch.dispatchUrl, token, ...events, ...options }));
  const close = () => (opened.inbox.close(), client.close());
  t.after(close); // also where the test fails: an open client keeps the process
  return { ...opened, close };
}

test("two devices show each item once, share marks, and learn what happened while they were away", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  for (const id of ["a", "b", "c"]) await dispatch.send(id);
  const [phone, desk] = [await device(t, dispatch), await device(t, dispatch)];
  await Promise.all([phone.until(({ items }) => items.length === 3), desk.until(({ items }) => items.length === 3)]);
  await dispatch.send("d");
  for (const { until, ids } of [phone, desk]) {
    await until(({ items, unread }) => items.length === 4 && unread === 4);
    assert.deepEqual(ids(), ["d", "c", "b", "a"]);
  }
  await phone.inbox.mark("read", [phone.inbox.items[3]]);
  await desk.until(({ unread }) => unread === 3);
  assert.deepEqual(desk.ids(), ["d", "c", "b", "a"], "a mark does not move an item");
  assert.deepEqual(desk.inbox.items[3].flags, ["seen", "read"]);
  await desk.close();

  await phone.inbox.archive([phone.inbox.items[0]]);
  await dispatch.api("POST", "/v1/notifications/b/recall");
  await phone.until(({ items }) => items.length === 2);
  await dispatch.send("e");
  await phone.until(({ items }) => items.length === 3);
  await phone.inbox.markAllRead();
  const back = await device(t, dispatch);
  await back.until(({ unread, items }) => unread === 0 && items.length === 3);
  assert.deepEqual(back.ids(), ["e", "c", "a"]);
  await back.inbox.show("archived");
  assert.deepEqual(back.ids(), ["d"]);
  await back.inbox.mark("unarchived", back.inbox.items);
  await back.inbox.mark("unread", [{ id: "a" }]);
  await back.inbox.show("unread");
  assert.deepEqual([back.ids(), back.inbox.unread], [["a"], 1]);
  await phone.until(({ items, unread }) => items.length === 4 && unread === 1);
  assert.deepEqual(phone.ids(), ["e", "d", "c", "a"]);
  assert.deepEqual([phone.errors, desk.errors, back.errors], [[], [], []]);
  await Promise.all([phone.close(), back.close()]);
});

test("older items are loaded page by page, also those that were marked meanwhile, and unread ones alone", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  const names = Array.from({ length: 70 }, (_, number) => `n${number}`);
  for (const id of names) await dispatch.send(id);
  const one = await device(t, dispatch);
  await one.until(({ items, unread }) => items.length >= 50 && unread === 70);
  await one.inbox.mark("read", [{ id: "n3" }, { id: "n4" }]); // neither is loaded yet
  while (one.inbox.hasOlder) await one.inbox.loadOlder();
  assert.deepEqual(one.ids(), [...names].reverse());
  const other = await device(t, dispatch, { filter: "unread" });
  await other.inbox.ready;
  while (other.inbox.hasOlder) await other.inbox.loadOlder();
  assert.deepEqual(other.ids(), names.filter((name) => name !== "n3" && name !== "n4").reverse());
  assert.equal(other.inbox.unread, 68);
  await other.inbox.mark("read", other.inbox.items.slice(0, 50));
  await one.until(({ unread }) => unread === 18);
  assert.deepEqual([...one.errors, ...other.errors], []);
  await Promise.all([one.close(), other.close()]);
});

test("what arrived is confirmed, so that the application sees it as delivered", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const one = await device(t, dispatch, { confirmMs: 20 });
  await one.inbox.ready;
  await dispatch.send("b");
  for (const id of ["a", "b"]) {
    for (let state = ""; state !== "delivered"; ) {
      const { deliveries } = await dispatch.api("GET", `/v1/notifications/${id}/deliveries`);
      state = deliveries[0]?.state;
    }
  }
  await one.close();
});

test("without a node an inbox follows by long polls", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const token = await dispatch.token();
  const { inbox, until, errors } = watched((events) => new Inbox(null, { url: dispatch.dispatchUrl, token: () => token, ...events }));
  await inbox.ready;
  await dispatch.send("b");
  await until(({ items }) => items.length === 2);
  await inbox.markAllRead();
  assert.deepEqual([inbox.unread, errors], [0, []]);
  inbox.close();
});

test("a receiver that is deleted and created again has an empty inbox, and a refusal ends the wait", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const one = await device(t, dispatch);
  await one.until(({ items }) => items.length === 1);
  await dispatch.api("DELETE", "/v1/receivers/ann");
  await dispatch.send("b");
  await one.until(({ items }) => items.length === 1 && items[0].id === "b");
  assert.equal(one.inbox.unread, 1);
  await one.close();
  await dispatch.api("DELETE", "/v1/receivers/ann");
  const gone = watched((events) => new Inbox(null, { url: dispatch.dispatchUrl, token: "forged", ...events }));
  await assert.rejects(gone.inbox.ready, (error) => error instanceof DispatchRefused && error.code === 4312);
  assert.throws(() => new Inbox(null, { url: dispatch.dispatchUrl, token: "", filter: "odd" }), /expected one of active, unread/);
});

test("preferences are the receiver's own", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const one = await device(t, dispatch);
  assert.deepEqual(await one.inbox.readPreferences(), {});
  await one.inbox.writePreferences({ news: { email: false } });
  assert.deepEqual(await one.inbox.readPreferences(), { news: { email: false } });
  await one.close();
});
