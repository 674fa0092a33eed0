// The small parts of a session: back-off, servers, the item queue, watches, settings.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ClientClosed } from "../../src/errors.js";
import { Gap, Interest, Position, Status } from "../../src/model.js";
import { Backoff, Losses, reconnectWaitMs, wishOf, wordsOf } from "../../src/session/backoff.js";
import { Budget, ItemQueue } from "../../src/session/item_queue.js";
import { ServerList, shownAddress } from "../../src/session/servers.js";
import { settingsOf } from "../../src/session/settings.js";
import { PositionTracker } from "../../src/session/position_tracker.js";
import { Watching, meets } from "../../src/session/watching.js";
import { messageOf } from "./model_node.js";

describe("back-off", () => {
  test("the first try comes within a second and the bound doubles up to its end", () => {
    const last = 1 - Number.EPSILON;
    assert.deepEqual([0, 1, 2, 6, 7, 8, 5_000].map((n) => reconnectWaitMs(n, last, 1_000, 120_000)), [
      ...[999, 1_999, 3_999, 63_999, 119_999, 119_999, 119_999],
    ]);
    assert.equal(reconnectWaitMs(9, 0, 1_000, 120_000), 0);
  });

  test("failures count until a connection has held", () => {
    const backoff = new Backoff(1_000, 120_000);
    for (let n = 0; n < 3; n++) backoff.lost(null, null);
    assert.equal(backoff.waitMs(0.5), 2_000);
    backoff.lost(999, null);
    assert.equal(backoff.waitMs(0.5), 4_000);
    backoff.lost(1_000, null);
    assert.equal(backoff.waitMs(0.5), 500);
    assert.equal(backoff.isTold, false);
  });

  test("the server's wish is read from the reason and bounded", () => {
    assert.equal(wishOf('{"name":"Draining","reconnect_after_ms":1200}'), 1_200);
    assert.equal(wishOf('{"reconnect_after_ms":99999999999}'), 3_600_000);
    assert.equal(wishOf('{"reconnect_after_ms":-5}'), 0);
    for (const text of ["", "gone", "null", "[]", "{}", '{"reconnect_after_ms":"1"}', '{"reconnect_after_ms":1.5}']) {
      assert.equal(wishOf(text), null, text);
    }
  });

  test("a close reason is words for people", () => {
    const about = "TokenRevoked: The token, or the identity it names, has been revoked.";
    assert.equal(wordsOf(4005, '{"name":"TokenRevoked"}'), about);
    assert.equal(wordsOf(4002, '{"name":"TokenInvalid","reason":"of another"}'), "TokenInvalid: of another");
    assert.equal(wordsOf(null, '{"name":"Unheard"}'), "Unheard");
    const draining = "Draining: The node stops or makes room; reconnect";
    assert.equal(wordsOf(4200, '{"name":"Draining","reconnect_after_ms":1200}'), `${draining} after 1200 ms.`);
    assert.equal(wordsOf(4200, '{"name":"Draining"}'), `${draining} later.`);
    assert.equal(wordsOf(null, '{"reason":"refused with 503","reconnect_after_ms":5}'), "refused with 503");
    for (const text of ["gone", "null", "[]", '{"name":7}']) assert.equal(wordsOf(4002, text), text);
    assert.deepEqual([wordsOf(1000, ""), wordsOf(null, "")], ["the server closed the connection (1000)", ""]);
  });
});

describe("servers", () => {
  test("a malformed address is refused when the client is made", () => {
    for (const url of ["ws://", "ws://:8800", "ws://a:port", "ws://a:70000", "ws://a b", "ws://a/#x", "ws://[::1", "ws://a\n"]) {
      assert.throws(() => new ServerList(["ws://good", url]), /server address/, JSON.stringify(url));
    }
  });

  test("a password in an address is refused and never shown", () => {
    for (const url of ["ws://user:hunter2@a:1", "ws://user:hunter2@a:1/v1/live", "http://user:hunter2@a:1"]) {
      assert.throws(() => new ServerList(url), ({ message }) => message.includes("a:1") && !message.includes("hunter2"));
    }
  });

  test("an address without a path has the node's own", () => {
    for (const url of ["ws://a:1", "ws://a:1/"]) assert.equal(new ServerList(url).choose(0), "ws://a:1/v1/live");
  });

  test("each is tried once a round, by weight, and a reserve last", () => {
    const list = new ServerList([["ws://a", 3], "ws://b:1/own", ["ws://c", 0]]);
    const round = (...randoms) => randoms.map((random) => list.choose(random));
    assert.deepEqual(round(0.7, 0.99, 0.5), ["ws://a/v1/live", "ws://b:1/own", "ws://c/v1/live"]);
    assert.deepEqual(round(0.76, 0.5, 0.5), ["ws://b:1/own", "ws://a/v1/live", "ws://c/v1/live"]);
    list.choose(0.1);
    list.succeeded();
    assert.equal(list.choose(0.1), "ws://a/v1/live");
  });

  test("an address is shown without a user, a password and a query", () => {
    const shown = {
      "ws://a:8800/v1/live": "ws://a:8800/v1/live", "ws://a/v1/live?token=s3cret": "ws://a/v1/live?...", "wss://a#s3cret": "wss://a#...",
      "ws//u:s3cret@a": "a", "ws://u:s3?cret@a": "ws://...", "ws://a?t=s3@cret": "ws://...", "x?s3@cret": "...",
    };
    for (const [url, expected] of Object.entries(shown)) assert.equal(shownAddress(url), expected);
    for (const url of ["ws:/a?s3cret", "ws://u:s3?cret@a", "ws://a:x/?s3cret", "u:s3cret@a", "ws://u:s3cret@a", ["ws://a?s3cret", -1]]) {
      assert.throws(() => new ServerList([url]), (error) => !/s3|cret/.test(error.message));
    }
    const lines = [];
    const note = (line) => lines.push(line);
    const losses = new Losses({ info: note, warn: note });
    for (const wasWelcome of [false, true]) losses.tell("ws://a/v1/live?s3cret", "gone", wasWelcome, 1);
    assert.deepEqual(lines, ["godwit: cannot connect to ws://a/v1/live?...: gone; retrying", "godwit: disconnected from ws://a/v1/live?... (gone); next try in 1 ms"]);
  });

  test("an address that is not a server is refused at once", () => {
    for (const servers of [[], "http://a", "ws://", "a:8800", [["ws://a", -1]], [["ws://a", NaN]], [["ws://a", Infinity]]]) {
      assert.throws(() => new ServerList(/** @type {any} */ (servers)), RangeError, JSON.stringify(servers));
    }
  });
});

describe("the item queue", () => {
  const at = (sequence) => new Position(7, sequence);
  const newQueue = (itemsMax = 4, selector = "/a") => new ItemQueue(itemsMax, new PositionTracker(selector, selector !== "/a", 10));
  const message = (sequence) => messageOf("/a", "1", { position: at(sequence) });

  test("an item is handled when the next one is requested", () => {
    const queue = newQueue();
    queue.put(message(1));
    queue.put(message(2));
    queue.take();
    assert.equal(queue.handled.position("/a"), undefined);
    queue.take();
    assert.deepEqual(queue.handled.position("/a"), at(1));
    assert.equal(queue.take(), null);
    assert.deepEqual(queue.handled.position("/a"), at(2));
  });

  test("it is full at its limit and has room again at half of it", () => {
    const queue = newQueue();
    for (let n = 1; n <= 4; n++) queue.put(message(n));
    assert.deepEqual([queue.isFull, queue.hasRoom], [true, false]);
    queue.take();
    assert.deepEqual([queue.isFull, queue.hasRoom], [false, false]);
    queue.take();
    assert.equal(queue.hasRoom, true);
  });

  test("fields count toward the limit in bytes", () => {
    const budget = new Budget();
    const queue = new ItemQueue(100, new PositionTracker("/a", false, 10), 1_000, budget);
    queue.put(messageOf("/a", "1", { position: at(1), fields: { map: new Uint8Array(2_000) } }));
    assert.deepEqual([queue.isFull, budget.bytes], [true, 2_004]);
    queue.take();
    assert.deepEqual([queue.isFull, budget.bytes], [false, 0]);
  });

  test("resume tokens and statuses are folded into their like", () => {
    const queue = newQueue(4, "/a/*");
    for (const resumeToken of ["1", "2"]) queue.put({ type: "marked", resumeToken, pattern: "/a/*", node: "n" });
    queue.put(new Status("/a/*", "subscribed", "live", at(3), 5));
    queue.put(new Status("/a/*", "disconnected", null, null, 0, "gone"));
    assert.equal(queue.size, 2);
    const status = queue.take();
    assert.deepEqual([queue.handled.resumePoint.since, status.state, status.count], ["2", "disconnected", 5]);
  });

  test("a join that a resync ends does not take the reader back to where it was to end", () => {
    const queue = newQueue(9);
    queue.put(new Status("/a", "subscribed", "recovered", at(2), 2));
    queue.put(message(1));
    queue.put(new Status("/a", "disconnected"));
    queue.put(new Status("/a", "subscribed", "resync", new Position(8, 3)));
    queue.put(new Gap("/a", new Position(8, 3), at(1), "epoch", null));
    queue.put(messageOf("/a", "1", { position: new Position(8, 3), isSnapshot: true }));
    while (queue.take() !== null);
    assert.deepEqual(queue.handled.position("/a"), new Position(8, 3));
  });

  test("a connection cut between a resync and its gap does not set the position after the gap", () => {
    const queue = newQueue();
    queue.put(new Status("/a", "subscribed", "resync", new Position(8, 3)));
    queue.put(new Status("/a", "disconnected"));
    while (queue.take() !== null);
    assert.equal(queue.handled.position("/a"), undefined);
  });

  test("thousands pass through in order", () => {
    const queue = newQueue(100_000);
    const seen = [];
    for (let n = 1; n <= 5_000; n++) {
      queue.put(message(n));
      if (n % 3 > 0) seen.push(Number(queue.take().position.sequence));
    }
    for (let item = queue.take(); item; item = queue.take()) seen.push(Number(item.position.sequence));
    assert.deepEqual(seen, Array.from({ length: 5_000 }, (_, n) => n + 1));
  });
});

describe("a watch", () => {
  const taken = (watching) => {
    const found = [];
    for (let change = watching.take(); change; change = watching.take()) found.push([change.subject, change.hasSubscribers]);
    return found;
  };

  test("only changes are reported, the latest of each", () => {
    const watching = new Watching("/a/**");
    for (const [subject, listens] of [["/a/1", true], ["/a/1", true], ["/a/2", true], ["/a/2", false], ["/b", true]]) {
      watching.handle(new Interest(subject, listens));
    }
    assert.deepEqual(taken(watching), [["/a/1", true]]);
    watching.handle(new Interest("/a/1", true));
    assert.deepEqual(taken(watching), []);
  });

  test("a selector that is not between the marks of a state has no subscribers", () => {
    const watching = new Watching("/a/**");
    for (const subject of ["/a/1", "/a/2"]) watching.handle(new Interest(subject, true));
    taken(watching);
    watching.ask(9);
    watching.stateReported(false);
    watching.handle(new Interest("/a/2", true));
    assert.deepEqual(taken(watching), []);
    watching.stateReported(true);
    assert.deepEqual(taken(watching), [["/a/1", false]]);
    watching.stateReported(true);
    assert.deepEqual(taken(watching), []);
  });

  test("a state that is cut off reports no end of interest", () => {
    const watching = new Watching("/a/**");
    watching.handle(new Interest("/a/1", true));
    watching.stateReported(false);
    watching.stateReported(false); // of another connection
    for (const subject of ["/a/2", "/a/1"]) watching.handle(new Interest(subject, true));
    watching.stateReported(true);
    assert.deepEqual(taken(watching).sort(), [["/a/1", true], ["/a/2", true]]);
  });

  test("two selectors meet where some subject is taken by both", () => {
    for (const [one, other, does] of [
      ...[["/a", "/a", true], ["/a", "/b", false], ["/a/*", "/*/b", true], ["/a/**", "/a", true], ["/**", "/a/b", true]],
      ...[["/**", "/$node/x", false], ["/*/x", "/$node/x", false], ["/a/*", "/a", false], ["/$node/**", "/$node/*", true]],
    ]) {
      assert.equal(meets(one, other), does, `${one} ${other}`);
      assert.equal(meets(other, one), does, `${other} ${one}`);
    }
  });

  test("its end is reported", () => {
    const watching = new Watching("/a");
    const error = new ClientClosed();
    watching.end(error);
    assert.deepEqual([watching.isEnded, watching.error], [true, error]);
  });
});

test("settings have bounds and names", () => {
  assert.equal(settingsOf({ itemsMax: 7 }).itemsMax, 7);
  assert.equal(settingsOf({}).reconnectMaxMs, 20_000);
  assert.equal(settingsOf({ reconnectMaxMs: Infinity }).reconnectMaxMs, Infinity);
  for (const chosen of [{ itemsMax: 0 }, { itemsMax: 1.5 }, { itemsMax: "7" }, { item: 7 }, { itemsMax: Infinity }, { pingIntervalMs: NaN }]) {
    assert.throws(() => settingsOf(/** @type {any} */ (chosen)), RangeError);
  }
});

test("a time may be any number, also one that never ends", () => {
  for (const value of [1, 1.5, 1e9, 2 ** 31, 2 ** 40, Infinity]) {
    const { connectTimeoutMs, positionsSaveMs } = settingsOf({ connectTimeoutMs: value, positionsSaveMs: value });
    assert.deepEqual([connectTimeoutMs, positionsSaveMs], [value, value]);
  }
  for (const value of [0, -1, NaN, true, "1", null, undefined]) assert.throws(() => settingsOf({ connectTimeoutMs: value }), RangeError);
  assert.throws(() => settingsOf({ itemsMax: 1.5 }), RangeError);
});
