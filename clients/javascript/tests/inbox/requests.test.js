// The requests of an inbox: their time limit, their pace, which of them outlive the page, and which may be tried again.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Signal } from "../../src/signal.js";
import { Inbox } from "../../src/inbox.js";
import { DispatchRefused, DispatchRequests } from "../../src/inbox/requests.js";

const EMPTY = { head: "1.1", unread: 0, unseen: 0, complete: true, items: [], subject: "/$inbox/t/ann" };
const GONE = { code: 4310, title: "ReceiverMissing", detail: "The receiver does not exist." };
const answerOf = (status, object) => ({ status, body: new Response(JSON.stringify(object)).body });

test("the time limit has the token function, too", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const requests = new DispatchRequests("http://a", () => new Promise(() => {}), assert.fail);
  const asking = requests.ask("GET", "/v1/inbox");
  t.mock.timers.tick(15_000);
  await assert.rejects(asking, (error) => error.name === "DispatchTimeout" && requests.mayRetry(error));
});

test("closing ends a request that waits for its token", async () => {
  const requests = new DispatchRequests("http://a", () => new Promise(() => {}), assert.fail);
  const asking = requests.ask("GET", "/v1/inbox");
  requests.close();
  await assert.rejects(asking, { name: "ClientClosed" });
});

test("a mark outlives its page only where the browser takes it", async () => {
  const kept = [];
  const requests = new DispatchRequests("http://a", "t", async (_url, { keepalive }) => (kept.push(keepalive), answerOf(200, {})));
  await requests.ask("GET", "/v1/inbox");
  await requests.ask("POST", "/v1/inbox/marks", { ids: ["a"] });
  await requests.ask("POST", "/v1/inbox/marks", { ids: Array(1_000).fill("0123456789012345678901234567890123456789") });
  assert.deepEqual(kept, [false, true, false]);
});

test("a receiver that is gone is waited for once there was one", async () => {
  const answers = [answerOf(404, GONE), answerOf(200, EMPTY), answerOf(404, GONE)];
  const requests = new DispatchRequests("http://a", "t", async () => answers.shift());
  const refused = (mayRetry) => (error) => error instanceof DispatchRefused && requests.mayRetry(error) === mayRetry;
  await assert.rejects(requests.ask("GET", "/v1/inbox"), refused(false));
  await requests.ask("GET", "/v1/inbox");
  await assert.rejects(requests.ask("GET", "/v1/inbox"), refused(true));
});

test("a confirmation that fails is tried again without another change", { timeout: 60_000 }, async (t) => {
  const marks = [];
  let confirm = () => {};
  const confirmed = new Promise((resolve) => (confirm = resolve));
  const inbox = new Inbox(null, { url: "http://a", token: "t", confirmMs: 20 }, async (url, { method, body, signal }) => {
    if (method === "POST") {
      marks.push(JSON.parse(body).up_to);
      if (marks.length === 1) throw new TypeError("the network failed");
      confirm();
      return answerOf(200, {});
    }
    if (url.includes("wait=")) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    return answerOf(200, EMPTY);
  });
  t.after(() => inbox.close());
  await confirmed;
  assert.deepEqual(marks, ["1.1", "1.1"]);
});

test("a mark of everything after a restart waits until something is known", { timeout: 60_000 }, async (t) => {
  const [marks, held, news] = [[], [], new Signal()];
  const ask = async (url, { method, body }) => {
    if (method === "POST") return marks.push(JSON.parse(body).up_to), answerOf(200, { items: [] });
    const isFirst = held.length === 0 && !url.includes("wait=");
    if (url.includes("wait=") || held.length === 1) await new Promise((resolve) => (held.push(resolve), news.notify()));
    return answerOf(200, { ...EMPTY, head: isFirst ? "1.1" : "2.1" });
  };
  const holds = async (count) => {
    while (held.length < count) await news.wait();
    return held[count - 1];
  };
  const inbox = new Inbox(null, { url: "http://a", token: "t", confirmMs: 0 }, ask);
  t.after(() => (inbox.close(), held.forEach((end) => end())));
  (await holds(1))(); // the long poll brings a new epoch: nothing that was known holds
  const load = await holds(2);
  const marking = inbox.markAllRead();
  await new Promise(setImmediate);
  assert.deepEqual(marks, []);
  load();
  await marking;
  assert.deepEqual(marks, ["2.1"]);
});

/** Lets everything run that waits for no timer. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
};

for (const [name, missing] of [["long polls that are answered at once", {}], ["answers that say that more is missing and bring nothing", { complete: false }]]) {
  test(`${name} are requested again after a pause`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    t.mock.method(performance, "now", () => 0);
    t.mock.method(Math, "random", () => 0.5);
    let asked = 0;
    const ask = async (url) => answerOf(200, url.includes("after=") ? (asked++, { ...EMPTY, ...missing }) : EMPTY);
    const inbox = new Inbox(null, { url: "http://a", token: "t", confirmMs: 0 }, ask);
    t.after(() => inbox.close());
    await settle();
    const first = asked;
    assert.ok(first <= 2, `${first} requests without a pause`);
    t.mock.timers.tick(100); // of a pause of 250 ms
    await settle();
    assert.equal(asked, first);
    t.mock.timers.tick(200);
    await settle();
    assert.ok(asked > first && asked <= first + 2, `${asked - first} requests after the first pause`);
  });
}

test("what dispatch refuses for good is shown to later calls, until a fetch succeeds", async (t) => {
  const refusal = { code: 4313, title: "Forbidden", detail: "The scope is missing." };
  let live = { message: (_message) => {} };
  const client = { subscribe: (_subject, _options, listener) => (live = listener) && { close() {} } };
  const answers = [answerOf(200, EMPTY), answerOf(403, refusal), answerOf(200, { ...EMPTY, head: "1.9" })];
  const errors = [];
  const options = { url: "http://a", token: "t", confirmMs: 0, onError: (error) => errors.push(error) };
  const inbox = new Inbox(client, options, async () => answers.shift());
  t.after(() => inbox.close());
  await inbox.ready;
  const head = { json: () => ({ head: "1.9", unread: 0, unseen: 0 }) };
  live.message(head);
  await settle();
  assert.equal(errors.length, 1);
  for (const call of [() => inbox.mark("read", [{ id: "a" }]), () => inbox.markAllRead(), () => inbox.loadOlder(), () => inbox.readPreferences(), () => inbox.writePreferences({})]) {
    await assert.rejects(call, (error) => error === errors[0]);
  }
  live.message(head);
  await settle();
  await inbox.loadOlder();
});
