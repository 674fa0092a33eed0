// Faults that users of other inboxes reported, tried here: counts that drift, pages that repeat, handlers that close or throw.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Inbox } from "../../src/node.js";
import { dataFolder, startDispatch, watched } from "./dispatch_process.js";

const LIMITS = { timeout: 180_000 };

/** A device of the receiver, closed at the end of the test. */
async function device(t, dispatch, options = {}) {
  const token = await dispatch.token();
  const client = new Client(dispatch.url, { token });
  const opened = watched((events) => new Inbox(client, { url: dispatch.dispatchUrl, token, ...events, ...options }));
  t.after(() => (opened.inbox.close(), client.close()));
  return { client, token, ...opened };
}

test("an item that arrives between two pages neither repeats nor hides one", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  const names = Array.from({ length: 60 }, (_, number) => `n${number}`);
  for (const name of names) await dispatch.send(name);
  const one = await device(t, dispatch);
  await one.inbox.ready;
  for (const name of ["late0", "late1"]) await dispatch.send(name);
  await one.inbox.mark("archived", [one.inbox.items.at(-1)]); // and one leaves the end of the page that is loaded
  await one.inbox.loadOlder();
  await one.until(({ items }) => items.length === 61);
  assert.equal(new Set(one.ids()).size, 61);
});

test("archiving, marking everything and marking twice leave counts that a new device agrees with", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  for (const name of ["a", "b", "c", "d"]) await dispatch.send(name);
  const [one, two] = [await device(t, dispatch), await device(t, dispatch)];
  await Promise.all([one.until(({ items }) => items.length === 4), two.until(({ items }) => items.length === 4)]);
  const [newest, next] = one.inbox.items;
  await Promise.all([one.inbox.archive([newest]), two.inbox.mark("read", [newest]), two.inbox.archive([newest]), one.inbox.mark("read", [next, next])]);
  await Promise.all([one.inbox.mark("seen"), two.inbox.mark("seen")]);
  const fresh = await device(t, dispatch);
  await fresh.inbox.ready;
  for (const { until, ids } of [one, two, fresh]) {
    await until(({ unread, unseen, items }) => unread === 2 && unseen === 0 && items.length === 3);
    assert.deepEqual(ids(), ["c", "b", "a"]);
  }
});

test("an inbox that is closed by its own handler calls it no more, and one that throws is not the inbox's end", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const [token, errors] = [await dispatch.token(), t.mock.method(console, "error", () => {})];
  let calls = 0;
  const closing = new Inbox(null, { url: dispatch.dispatchUrl, token, onChange: (inbox) => (calls++, inbox.close()) });
  await assert.rejects(closing.ready, /closed/);
  assert.equal(calls, 1);
  await assert.rejects(closing.mark("read"), /closed/);
  const throwing = await device(t, dispatch);
  const { inbox } = throwing;
  await inbox.ready;
  const onChange = (report) => (inbox) => {
    report(inbox);
    throw new Error("a page's own fault");
  };
  const other = watched((events) => new Inbox(null, { url: dispatch.dispatchUrl, token, ...events, onChange: onChange(events.onChange) }));
  t.after(() => other.inbox.close());
  await other.inbox.ready;
  await dispatch.send("b");
  await throwing.until(({ items }) => items.length === 2);
  assert.ok(errors.mock.callCount() > 0, "it is logged");
  await other.until(({ items }) => items.length === 2);
});

test("an inbox that is closed while its first page is taken subscribes to nothing", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const token = await dispatch.token();
  const client = new Client(dispatch.url, { token });
  t.after(() => client.close());
  const subscribe = t.mock.method(client, "subscribe");
  const inbox = new Inbox(client, { url: dispatch.dispatchUrl, token, onChange: (opened) => opened.close() });
  await assert.rejects(inbox.ready, /closed/);
  await new Promise((resolve) => setImmediate(resolve)); // what follows the page has run
  assert.equal(subscribe.mock.callCount(), 0);
});

test("two inboxes over one client are refused with a reason, not tried again for ever", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const one = await device(t, dispatch);
  await one.inbox.ready;
  const second = watched((events) => new Inbox(one.client, { url: dispatch.dispatchUrl, token: one.token, ...events }));
  await assert.rejects(second.inbox.ready, /subscribed or watched already/);
  assert.equal(second.errors.length, 1);
  second.inbox.close();
});

test("after dispatch refuses a token, another is requested, and the inbox continues", LIMITS, async (t) => {
  const dispatch = await startDispatch(dataFolder(t));
  t.after(() => dispatch.terminate());
  await dispatch.send("a");
  const good = await dispatch.token();
  const given = ["expired", good];
  const one = watched((events) => new Inbox(null, { url: dispatch.dispatchUrl, token: () => given.shift() ?? good, ...events }));
  await one.inbox.ready;
  assert.deepEqual([one.ids(), one.errors.map((error) => error.code)], [["a"], [4312]]);
  one.inbox.close();
});
