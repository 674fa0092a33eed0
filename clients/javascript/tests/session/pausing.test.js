// A subscription that is not read is paused: bounded, once a second at most, resumed once, and never after its end.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Message, Position } from "../../src/model.js";
import { TextBody } from "../../src/content.js";
import { Budget, ItemQueue } from "../../src/session/item_queue.js";
import { Session } from "../../src/session/session.js";
import { settingsOf } from "../../src/session/settings.js";
import { PositionTracker } from "../../src/session/position_tracker.js";
import { Subscribing } from "../../src/session/subscribing.js";
import { isPattern } from "../../src/subject.js";
import { replyOf } from "../../src/codec/push.js";

const newSession = (chosen = {}, canRenew = false) => new Session(settingsOf(chosen), canRenew);

function newSubscribing(selector, itemsMax = 1_000) {
  const many = isPattern(selector);
  const queue = new ItemQueue(itemsMax, new PositionTracker(selector, many, 100));
  return new Subscribing(selector, {}, new PositionTracker(selector, many, 100), queue);
}


/** Open and be welcomed; returns what the session then sends. */
function connected(session, now = 0) {
  session.opened(now, null);
  const [connect, ...rest] = session.commands();
  assert.deepEqual([connect.verb, rest], ["connect", []]);
  session.receive([replyOf(connect.id, "connected", { session: "s", node: "n", pingIntervalMs: 25_000 })], now);
  return session.commands();
}

test("one that stays unread is paused once a second, and reports on resuming what may be missing", () => {
  const [session, core, other] = [newSession(), newSubscribing("/a"), newSubscribing("/b")];
  session.subscribe(core);
  session.subscribe(other);
  connected(session);
  session.pause(core, 100);
  session.takeUp(core, 100);
  session.commands();
  session.pause(core, 400);
  session.takeUp(core, 400);
  session.tick(1_099);
  assert.equal(core.isPaused, true);
  session.commands();
  session.tick(1_100);
  const [ask] = session.commands();
  session.receive([replyOf(ask.id, "subscribed")], 1_101);
  assert.equal(core.state, "served");
});

for (const [name, cross] of Object.entries({
  "its answer": (session, core, ask) => session.receive([replyOf(ask.id, "subscribed")], 3),
  "its end": (session) => session.receive([{ type: "ended", selector: "/a", code: 4113, reason: "" }], 3),
  "a drain": (session) => session.receive([{ type: "notice", name: "draining", reconnectAfterMs: 60_000 }], 3),
  "a renewal": (session) => session.renew("token"),
  "a loss": (session) => (session.lost(3), connected(session, 4)),
  "its close": (session, core) => session.unsubscribe(core),
})) {
  test(`a pause that is crossed by ${name} resumes once or never`, () => {
    const [session, core] = [newSession(), newSubscribing("/a")];
    session.subscribe(core);
    session.subscribe(newSubscribing("/b"));
    const [ask] = connected(session);
    session.pause(core, 2);
    cross(session, core, ask);
    session.commands();
    const isEnded = core.state === "ended";
    for (let n = 0; n < 3; n++) session.takeUp(core, 5_000);
    session.tick(5_000);
    const asked = session.commands().filter(({ verb, selector }) => verb === "subscribe" && selector === "/a");
    assert.equal(asked.length, isEnded ? 0 : 1);
  });
}

test("bytes fill a queue, and what all queues hold is bounded too", () => {
  const budget = new Budget(1_000);
  const [first, second] = ["/a", "/b"].map((name) => new ItemQueue(100, new PositionTracker(name, false, 10), 600, budget));
  const messageOf = (subject, length) => new Message(subject, "text", new TextBody("x".repeat(length)), { position: new Position(7, 1n) });
  first.put(messageOf("/a", 5_000)); // one is always taken
  assert.deepEqual([first.isFull, budget.isUsedUp, second.isFull], [true, true, false]);
  second.put(messageOf("/b", 1));
  assert.equal(second.isFull, true);
  first.take();
  assert.deepEqual([second.isFull, budget.bytes], [false, 1]);
  second.letGo();
  assert.equal(budget.bytes, 0);
});
