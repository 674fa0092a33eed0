// Another token for a client, without a server: when each is sent, and how an earlier call ends.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { ClientError } from "../../src/errors.js";
import { Handover } from "../../src/session/handover.js";

const HANDOVER_MS = 10_000;
let handover, publishes, calls, settled;

beforeEach(() => {
  [calls, settled] = [[], []];
  const note = (name) => () => calls.push(name);
  publishes = { hasEarlier: false, holdLater: note("hold"), releaseLater: note("release"), failEarlier: note("fail") };
  handover = new Handover(publishes);
});

const begin = (token, now = 0) => handover.begin(token, now, (error) => settled.push([token, error === null ? "taken" : error.message]));

test("it waits for what was published before, for ten seconds at most", () => {
  publishes.hasEarlier = true;
  begin("a");
  assert.deepEqual([handover.isDue(0), handover.isDue(HANDOVER_MS - 1), handover.isDue(HANDOVER_MS)], [false, false, true]);
  publishes.hasEarlier = false;
  assert.equal(handover.isDue(1), true);
  assert.equal(handover.asked(), "a");
  assert.deepEqual(calls.slice(-1), ["fail"]); // what has no answer by now
  assert.equal(handover.isDue(HANDOVER_MS), false, "the node is asked once");
  handover.taken("a");
  assert.deepEqual([settled, handover.isUnderWay, calls.at(-1)], [[["a", "taken"]], false, "release"]);
});

test("the last of two calls wins, whenever the answer to the first one comes", () => {
  begin("a");
  handover.asked();
  begin("b");
  assert.match(settled[0][1], /another token/);
  handover.taken("a"); // the answer to the first one: the second was not sent yet
  assert.equal(settled.length, 1);
  assert.equal(handover.asked(), "b");
  handover.taken("a");
  assert.equal(settled.length, 1);
  assert.equal(handover.isAnyAsked, true, "a close for another identity is still of one of the two");
  handover.taken("b");
  assert.deepEqual(settled[1], ["b", "taken"]);
  assert.equal(handover.isAnyAsked, false);
});

test("a connection that begins with the token has sent it, one with another has not", () => {
  begin("a");
  handover.opened("old");
  assert.deepEqual([handover.isAsked, handover.isDue(0)], [false, true]);
  handover.opened("a");
  assert.equal(handover.isAsked, true);
  handover.taken("a");
  assert.deepEqual(settled, [["a", "taken"]]);
  handover.opened("a");
  assert.equal(handover.isAnyAsked, false, "it is over");
});

test("a connection that was lost fails what was published before, and the next one asks again", () => {
  handover.lost();
  assert.deepEqual(calls, [], "there is none under way");
  begin("a");
  handover.asked();
  handover.lost();
  assert.equal(calls.at(-1), "fail");
  assert.deepEqual([handover.isUnderWay, handover.isAsked], [true, false]);
  handover.opened("a");
  handover.taken("a");
  assert.deepEqual(settled, [["a", "taken"]]);
});

test("a server that will not take it ends it with the reason", () => {
  begin("a");
  handover.end(new ClientError("refused"));
  assert.deepEqual(settled, [["a", "refused"]]);
  handover.end(new ClientError("again"));
  assert.equal(settled.length, 1, "it is told once");
});

test("a token that was handed over is the one of later connections, also in the midst of asking for one", async () => {
  assert.equal(await handover.tokenOr("own"), "own");
  assert.equal(await handover.tokenOr(undefined), null);
  const asking = handover.tokenOr(async () => "late");
  begin("a");
  assert.equal(await asking, "a");
  assert.equal(await handover.tokenOr(() => assert.fail("nobody is asked any more")), "a");
});

test("what was never sent waits for the first connection", () => {
  begin("a");
  handover.lost(); // it could not connect
  assert.ok(!calls.includes("fail"));
  handover.opened("a");
  handover.taken("a");
  begin("b");
  handover.lost();
  assert.equal(calls.at(-1), "fail", "a node may have had it, under another identity");
});
