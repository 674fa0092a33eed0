// The session against a node of values: every interleaving that fast-check can think of, and the rules one by one.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import fc from "fast-check";

import { Code } from "../../src/codes.js";
import { ClientClosed, ClientError, CommandRefused, SessionClosed } from "../../src/errors.js";
import { Position, Published } from "../../src/model.js";
import { ItemQueue } from "../../src/session/item_queue.js";
import { Session } from "../../src/session/session.js";
import { settingsOf } from "../../src/session/settings.js";
import { PositionTracker } from "../../src/session/position_tracker.js";
import { Subscribing } from "../../src/session/subscribing.js";
import { Watching } from "../../src/session/watching.js";
import { isPattern } from "../../src/subject.js";
import { Draft } from "../../src/codec/command.js";
import { replyOf } from "../../src/codec/push.js";
import { ModelNode, messageOf } from "./model_node.js";

const newSession = (chosen = {}, canRenew = false) => new Session(settingsOf(chosen), canRenew);

function newSubscribing(selector, itemsMax = 1_000) {
  const many = isPattern(selector);
  const queue = new ItemQueue(itemsMax, new PositionTracker(selector, many, 100));
  return new Subscribing(selector, {}, new PositionTracker(selector, many, 100), queue);
}

const draft = (subject = "/a/1", key = "k", content = "1") => new Draft(subject, "json", content, { key });
const refusal = (id, code, codeName, retry) => ({ type: "refusal", id, code, codeName, reason: "no", retry });
const notice = (name, fields) => ({ type: "notice", name, inMs: null, reconnectAfterMs: null, ...fields });
const verbs = (commands) => commands.map(({ verb }) => verb);

/** Open and be welcomed; returns what the session then sends. */
function connected(session, now = 0) {
  session.opened(now, null);
  const [connect, ...rest] = session.commands();
  assert.deepEqual([connect.verb, rest], ["connect", []]);
  session.receive([replyOf(connect.id, "connected", { session: "s", node: "n", pingIntervalMs: 25_000 })], now);
  return session.commands();
}

function taken(core) {
  const items = [];
  for (let item = core.queue.take(); item !== null; item = core.queue.take()) if (item.type === "message") items.push(item);
  return items;
}

const STEPS = ["publish", "foreign", "send", "one", "all", "resume_token", "cut", "aside", "read"];

test("wherever the connection breaks each message comes once and each publish counts once", () => {
  const lives = fc.tuple(fc.array(fc.constantFrom(...STEPS), { maxLength: 120 }), fc.constantFrom("/a/1", "/a/*", "/**"));
  fc.assert(
    fc.property(lives, ([steps, selector]) => {
      const [node, session, core] = [new ModelNode(), newSession({ itemsMax: 4 }), newSubscribing(selector, 4)];
      session.subscribe(core);
      const acknowledged = [];
      const seen = [];
      let published = 0;
      let now = 0;
      const pump = (everything) => {
        for (const command of session.commands()) node.take(command);
        while (node.outbox.length > 0 && session.subscriptions.behind().size === 0) {
          session.receive([node.outbox.shift()], now);
          if (!everything) return;
        }
      };
      session.opened(0, null);
      const rest = Array.from({ length: 200 }, () => ["read", "send", "all"]).flat();
      for (const step of [...steps, "cut", ...rest]) {
        now++;
        if (step === "publish") {
          session.publish(draft(`/a/${(published % 2) + 1}`, `k${published}`, `${published}`), (each) => acknowledged.push(each));
          published++;
        } else if (step === "foreign") node.append("/a/1", '"x"');
        else if (["send", "one", "all"].includes(step)) pump(step === "all");
        else if (step === "resume_token") node.deliver(true);
        else if (step === "aside") session.pause(core, now);
        else if (step === "cut") {
          node.disconnect();
          session.lost(now);
          session.opened(now, null);
        } else if (step === "read") {
          seen.push(...taken(core));
          if (core.isPaused) session.takeUp(core, (now += 1_000));
        }
      }
      const wanted = node.feed.filter(({ subject }) => selector !== "/a/1" || subject === selector);
      assert.deepEqual(seen.map((each) => each.text()), wanted.map((each) => each.text()));
      assert.equal(core.counts.missing, 0);
      assert.deepEqual([acknowledged.length, node.keys.size], [published, published]);
      assert.ok(acknowledged.every((each) => each instanceof Published));
    }),
    { numRuns: 300 },
  );
});

describe("what is asked", () => {
  test("nothing is asked before the server welcomed us", () => {
    const session = newSession();
    session.subscribe(newSubscribing("/a"));
    session.publish(draft(), () => {});
    assert.deepEqual(session.commands(), []);
    assert.deepEqual(verbs(connected(session)), ["subscribe", "publish"]);
  });

  test("messages before the answer belong to an earlier asking", () => {
    const [session, core] = [newSession(), newSubscribing("/a")];
    session.subscribe(core);
    const [ask] = connected(session);
    session.receive([messageOf("/a", "1"), replyOf(ask.id, "subscribed"), messageOf("/a", "2")], 1);
    assert.deepEqual(taken(core).map((each) => each.json()), [2]);
  });

  test("a full reader is paused and resumed at its position", () => {
    const [session, core, node] = [newSession(), newSubscribing("/a/1", 2), new ModelNode()];
    session.subscribe(core);
    for (const command of connected(session)) node.take(command);
    for (let n = 0; n < 3; n++) node.append("/a/1", "1");
    session.receive(node.outbox.slice(0, 3), 1);
    assert.deepEqual([...session.subscriptions.behind()], [core]);
    session.pause(core, 1);
    assert.deepEqual(verbs(session.commands()), ["unsubscribe"]);
    assert.equal(session.subscriptions.behind().size, 0);
    session.receive(node.outbox.slice(3), 1);
    assert.equal(taken(core).length, 2);
    session.takeUp(core, 1);
    const [ask] = session.commands();
    assert.equal(String(ask.resumePoint.after.get("/a/1")), "7.2");
  });

  test("a pattern cut in a first join that is too large to resume starts again and reports it", () => {
    const [session, core] = [newSession(), newSubscribing("/a/*", 10_000)];
    session.subscribe(core);
    const [ask] = connected(session);
    const first = Array.from({ length: 4_001 }, (_, n) =>
      messageOf(`/a/${n}`, "1", { position: new Position(7, 1), pattern: "/a/*" }),
    );
    session.receive([replyOf(ask.id, "subscribed"), ...first], 1);
    session.lost(2);
    const [again] = connected(session, 3);
    assert.equal(again.resumePoint.isSomewhere, false);
    const items = [];
    for (let item = core.queue.take(); item !== null; item = core.queue.take()) items.push(item);
    assert.deepEqual([items.at(-1).type, items.at(-1).subject, items.at(-1).missed], ["gap", "/a/*", null]);
  });

  test("statuses describe the connection and do not pile up", () => {
    const [session, core] = [newSession(), newSubscribing("/a")];
    session.subscribe(core);
    for (let now = 0; now < 3; now++) {
      const [ask] = connected(session, now);
      session.receive([replyOf(ask.id, "subscribed")], now);
      session.lost(now, null, "gone");
    }
    assert.deepEqual([core.queue.take().state, core.queue.take()], ["disconnected", null]);
  });
});

describe("what is refused", () => {
  test("a refused subscription ends with the server's words", () => {
    const [session, core] = [newSession(), newSubscribing("/a")];
    session.subscribe(core);
    const [ask] = connected(session);
    session.receive([refusal(ask.id, 4113, "SubscribeForbidden", false)], 1);
    assert.ok(core.error instanceof CommandRefused);
    assert.deepEqual([core.error.code, core.state], [4113, "ended"]);
    session.lost(2);
    assert.deepEqual(connected(session, 3), []);
  });

  test("a subscription that the server ends has the reason", () => {
    const [session, core] = [newSession(), newSubscribing("/a")];
    session.subscribe(core);
    connected(session);
    session.receive([{ type: "ended", selector: "/a", code: 4113, reason: "rights changed" }], 1);
    assert.equal(/** @type {any} */ (core.error).codeName, "SubscribeForbidden");
  });

  test("one that was served is only put off by what may pass", () => {
    const [session, core] = [newSession(), newSubscribing("/a")];
    session.subscribe(core);
    const [ask] = connected(session);
    const ended = { type: "ended", selector: "/a", code: Code.StreamsTooMany, reason: "full" };
    session.receive([replyOf(ask.id, "subscribed"), ended], 1);
    assert.deepEqual([session.tick(5_000), session.commands()], [null, []]);
    assert.equal(session.tick(5_001), null);
    const [again] = session.commands();
    session.receive([refusal(again.id, Code.NodeBusy, "NodeBusy", true)], 5_002);
    session.tick(15_001);
    assert.deepEqual(session.commands(), []); // each refusal doubles the time
    session.tick(15_002);
    assert.deepEqual(verbs(session.commands()), ["subscribe"]);
  });

  test("one refused by a draining node is asked of the next", () => {
    const [session, core] = [newSession(), newSubscribing("/a")];
    session.subscribe(core);
    const [ask] = connected(session);
    session.receive([refusal(ask.id, Code.NodeDraining, "NodeDraining", true)], 1);
    session.tick(9_000);
    assert.deepEqual([session.commands(), core.error], [[], null]);
    session.lost(9_001);
    assert.deepEqual(verbs(connected(session, 9_002)), ["subscribe"]);
  });

  test("a refused connect ends it unless it may be tried again", () => {
    for (const [retry, phase] of [[false, "over"], [true, "connecting"]]) {
      const session = newSession();
      session.opened(0, "token");
      const [connect] = session.commands();
      assert.equal(connect.token, "token");
      session.receive([refusal(connect.id, 4002, "TokenInvalid", retry)], 1);
      assert.equal(session.phase, phase);
      if (retry) assert.equal(session.tick(10_000), "the server did not answer connect");
    }
  });

  test("a refused watch ends with the reason", () => {
    const [session, watching] = [newSession(), new Watching("/a")];
    session.watch(watching);
    const [ask] = connected(session);
    session.receive([refusal(ask.id, 4115, "WatchForbidden", false)], 1);
    assert.deepEqual([watching.isEnded, session.watches.size], [true, 0]);
  });
});

describe("how a connection ends", () => {
  for (const code of [4000, 4002, 4003, 4099]) {
    test(`${code} ends it for good`, () => {
      const [session, core, settled] = [newSession(), newSubscribing("/a"), []];
      session.subscribe(core);
      session.publish(draft(), (outcome) => settled.push(outcome));
      connected(session);
      session.lost(1, code, "go away");
      assert.equal(session.phase, "over");
      assert.ok(core.error instanceof SessionClosed && core.error.code === code);
      assert.deepEqual(settled, [core.error]);
      assert.throws(() => session.publish(draft(), () => {}), SessionClosed);
    });
  }

  for (const code of [null, 1001, 1006, 1011, 4200, 4206]) {
    test(`${code} does not`, () => {
      const session = newSession();
      connected(session);
      session.lost(1, code, "");
      assert.equal(session.phase, "away");
    });
  }

  test("a client that slept past its token's end reconnects with a fresh one, but not twice with the same", () => {
    const session = newSession({}, true);
    connected(session);
    session.lost(1, Code.TokenExpired, "");
    assert.equal(session.phase, "away");
    session.opened(2, "stale");
    session.lost(3, Code.TokenExpired, "");
    assert.equal(session.phase, "over");
  });

  test("the server sets the time to reconnect", () => {
    const session = newSession();
    connected(session);
    session.lost(9, 4200, '{"name":"Draining","reconnect_after_ms":1234}');
    assert.equal(session.backoff.waitMs(0.5), 1234);
    assert.equal(session.backoff.isTold, true);
  });

  test("too big a message is not sent again", () => {
    const [session, settled] = [newSession(), []];
    session.publish(draft("/a", "k", `"${"x".repeat(99)}"`), (outcome) => settled.push(outcome));
    connected(session);
    session.frames.sent(session.commands(), 150);
    session.lost(1, 1009, "");
    assert.equal(settled[0].code, 1009);
  });

  test("closing settles everything once", () => {
    const [session, core, settled] = [newSession(), newSubscribing("/a"), []];
    session.subscribe(core);
    session.publish(draft(), (outcome) => settled.push(outcome));
    connected(session);
    session.close();
    session.close();
    assert.equal(settled.length, 1);
    assert.ok(settled[0] instanceof ClientClosed);
    assert.deepEqual([core.state, core.error], ["ended", null]);
    assert.throws(() => session.subscribe(newSubscribing("/b")), ClientClosed);
    assert.throws(() => session.watch(new Watching("/b")), ClientClosed);
  });
});

describe("a draining server", () => {
  test("gets no new publish and is left at the time it set", () => {
    const [session, settled] = [newSession(), []];
    session.publish(draft("/a", "a"), (outcome) => settled.push(outcome));
    const [first] = connected(session);
    session.receive([notice("draining", { reconnectAfterMs: 500 })], 100);
    session.publish(draft("/a", "b"), () => {});
    assert.deepEqual(session.commands(), []);
    assert.equal(session.tick(700), null, "an answer is still owed");
    session.receive([replyOf(first.id, "published")], 700);
    assert.equal(session.tick(700), "the server is draining");
    session.lost(700);
    assert.equal(session.backoff.waitMs(0.9), 0);
    assert.deepEqual(connected(session, 800).map((each) => each.draft.key), ["b"]);
  });

  test("that closes is given the rest of its time", () => {
    const session = newSession();
    connected(session);
    session.receive([notice("draining", { reconnectAfterMs: 500 })], 100);
    session.lost(200, 1001, "");
    assert.equal(session.backoff.waitMs(0.9), 400);
  });

  test("that refuses a publish leaves it for the next server", () => {
    const [session, settled] = [newSession(), []];
    session.publish(draft(), (outcome) => settled.push(outcome));
    const [first] = connected(session);
    session.receive([refusal(first.id, Code.NodeDraining, "NodeDraining", true)], 1);
    assert.deepEqual([settled, session.commands()], [[], []]);
    session.lost(2, 1001);
    assert.equal(connected(session, 3).length, 1);
  });
});

describe("signs of life", () => {
  test("silence is answered with a ping and no answer with the end", () => {
    const session = newSession();
    connected(session);
    assert.deepEqual([session.tick(24_999), session.commands()], [null, []]);
    assert.equal(session.tick(25_000), null);
    assert.deepEqual(verbs(session.commands()), ["ping"]);
    assert.equal(session.tick(34_999), null);
    assert.equal(session.tick(35_000), "the server does not answer");
  });

  test("doubt asks at once", () => {
    const session = newSession();
    connected(session);
    session.liveness.doubt();
    session.tick(1);
    assert.deepEqual(verbs(session.commands()), ["ping"]);
    assert.equal(session.tick(10_001), "the server does not answer");
  });

  test("silence while this side does not read does not mean that the server is dead", () => {
    const session = newSession();
    connected(session);
    session.liveness.hold(1, true);
    assert.deepEqual([session.tick(99_000), session.commands()], [null, []]);
    session.liveness.hold(99_000, false);
    assert.deepEqual([session.tick(99_001), session.commands()], [null, []]);
  });

  test("a token is renewed on the same connection", () => {
    const session = newSession();
    connected(session);
    session.receive([notice("token_expiring", { inMs: 60_000 })], 1);
    assert.equal(session.wantsToken, true);
    session.renew("new");
    const [connect] = session.commands();
    assert.deepEqual([connect.verb, connect.token, session.wantsToken], ["connect", "new", false]);
    session.receive([refusal(connect.id, 4002, "TokenInvalid", false)], 2);
    assert.equal(session.phase, "over");
  });

  test("a clock is looked at often enough for the shortest time that is watched", () => {
    const session = newSession({ pingIntervalMs: 40, answerTimeoutMs: 80 });
    assert.equal(session.tickMs, 10);
  });
});

test("a server that sends a frame too long twice is not asked a third time", () => {
  const session = newSession({ frameBytesMax: 8_192 });
  session.opened(0, null);
  assert.equal(session.commands()[0].frameBytesMax, 8_192);
  const fault = "a frame that is too long";
  for (const [each, servedMs, isOver] of [[fault, 1, false], [null, 1, false], [fault, 1, false], [fault, 60_000, false], [fault, 59_999, true]]) {
    connected(session);
    session.lost(servedMs, null, "gone", each);
    assert.equal(session.isOver, isOver);
  }
  assert.ok(session.error instanceof ClientError);
  assert.match(session.error.message, /a frame that is too long, twice in a row/);
});

test("only the first frame that the server cannot read is followed by a reconnect at once", () => {
  const session = newSession({ reconnectFirstMs: 1_000 });
  const waits = [0, 1, 2].map((now) => {
    connected(session, now);
    session.receive([refusal(null, Code.CommandMalformed, "CommandMalformed", false)], now);
    session.lost(now);
    return session.backoff.waitMs(0.999);
  });
  assert.ok(waits[0] === 0 && waits[1] > 0 && waits[2] > waits[1], waits.join());
});
