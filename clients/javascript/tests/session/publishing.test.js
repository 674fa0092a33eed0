// The publish queue: order, limits, and each exactly once settled.

import assert from "node:assert/strict";
import { test } from "node:test";

import fc from "fast-check";

import { AnswerLost, ClientClosed, CommandRefused, PublishQueueFull } from "../../src/errors.js";
import { Published } from "../../src/model.js";
import { ENTRY_BYTES, PublishQueue } from "../../src/session/publishing.js";
import { SentFrames } from "../../src/session/sent_frames.js";
import { Draft } from "../../src/codec/command.js";

const draft = (content = "1", key = "k") => new Draft("/a", "json", content, { key });
const newQueue = (countMax = 100, bytesMax = 1 << 20, inFlightMax = 10) =>
  new PublishQueue({ publishQueueMax: countMax, publishQueueBytesMax: bytesMax, publishInFlightMax: inFlightMax, onUnknownPublish: "resend" });
const ids = () => {
  let last = 0;
  return () => ++last;
};
const ignore = () => {};

test("no more than the window is on the wire", () => {
  const [queue, takeId, settled] = [newQueue(100, 1 << 20, 2), ids(), []];
  for (let n = 0; n < 3; n++) queue.add(draft(), (outcome) => settled.push(outcome));
  assert.deepEqual(queue.send(takeId).map(({ id }) => id), [1, 2]);
  assert.deepEqual(queue.send(takeId), []);
  assert.equal(queue.answer(1, new Published(null)), true);
  assert.deepEqual(queue.send(takeId).map(({ id }) => id), [3]);
  assert.equal(queue.answer(1, new Published(null)), false);
  assert.equal(settled.length, 1);
});

for (const [queue, limit] of /** @type {const} */ ([
  [newQueue(2), "publishQueueMax"],
  [newQueue(100, 2 * ENTRY_BYTES + 2), "publishQueueBytesMax"],
])) {
  test(`at ${limit} one is refused and nothing of it kept`, () => {
    for (let n = 0; n < 2; n++) queue.add(draft(), ignore);
    assert.throws(() => queue.add(draft(), ignore), (error) => error instanceof PublishQueueFull && error.limit === limit);
    assert.equal(queue.size, 2);
  });
}

test("one publish larger than the byte limit goes alone", () => {
  const queue = newQueue(100, 300);
  queue.add(draft("x".repeat(1_000)), ignore);
  assert.throws(() => queue.add(draft(), ignore), PublishQueueFull);
});

test("text counts by its bytes", () => {
  assert.deepEqual(["é", "€", "😀", "a"].map((text) => draft(text).size), [2, 3, 4, 1]);
});

test("after a loss the same keys go first and in order", () => {
  const [queue, takeId] = [newQueue(100, 1 << 20, 2), ids()];
  for (const key of "abc") queue.add(draft("1", key), ignore);
  queue.send(takeId);
  queue.lost();
  assert.deepEqual(queue.send(takeId).map(({ id, draft }) => [id, draft.key]), [[3, "a"], [4, "b"]]);
});

test("without a key a lost answer is an error and nothing is sent twice", () => {
  const [queue, settled] = [newQueue(), []];
  queue.add(draft("1", null), (outcome) => settled.push(outcome));
  queue.send(ids());
  queue.lost();
  assert.ok(settled[0] instanceof AnswerLost);
  assert.equal(queue.size, 0);
});

test("a publish that the server did not accept returns to its place in the order", () => {
  const [queue, takeId] = [newQueue(100, 1 << 20, 2), ids()];
  for (const key of "abc") queue.add(draft("1", key), ignore);
  queue.send(takeId);
  queue.putBack(1);
  queue.putBack(2);
  assert.deepEqual(queue.send(takeId).map(({ draft }) => draft.key), ["a", "b"]);
});

test("too big a message is not tried for ever", () => {
  const [queue, settled] = [newQueue(), []];
  queue.add(draft("small"), ignore);
  queue.add(draft("x".repeat(9_000)), (outcome) => settled.push(outcome));
  queue.send(ids());
  queue.refuseTooBig({ size: 9_044, ids: [2], isMixed: false });
  queue.lost();
  assert.ok(settled[0] instanceof CommandRefused);
  assert.match(settled[0].message, /9044 bytes as sent/);
  assert.equal(queue.size, 1);
});

test("a frame of several that is too big is sent one by one", () => {
  const [queue, takeId] = [newQueue(), ids()];
  for (let n = 0; n < 3; n++) queue.add(draft("x".repeat(600)), assert.fail);
  queue.send(takeId);
  queue.refuseTooBig({ size: 2_000, ids: [1, 2, 3], isMixed: true });
  queue.lost();
  assert.deepEqual(queue.send(takeId).map(({ isAlone }) => isAlone), [true, true, true]);
});

test("given up before it was sent it is never sent", () => {
  const queue = newQueue();
  queue.giveUp(queue.add(draft(), ignore));
  assert.deepEqual(queue.send(ids()), []);
  assert.deepEqual([queue.size, queue.bytes], [0, 0]);
});

test("an abandoned publish frees its slot at once, and is not sent again", () => {
  const queue = newQueue(2);
  for (let n = 0; n < 1_000; n++) queue.giveUp(queue.add(draft(), ignore));
  queue.giveUp(queue.add(draft(), ignore));
  const sent = queue.add(draft(), ignore);
  assert.equal(queue.size, 1);
  const takeId = ids();
  assert.equal(queue.send(takeId).length, 1);
  queue.giveUp(sent);
  assert.equal(queue.size, 1);
  queue.lost();
  assert.deepEqual([queue.send(takeId), queue.size, queue.bytes, queue.canSend], [[], 0, 0, false]);
});

test("everything is settled once and the bytes return to nothing", () => {
  const steps = fc.array(fc.constantFrom("add", "send", "answer", "lose", "back", "give up"), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const [queue, takeId, live] = [newQueue(100, 1 << 20, 3), ids(), []];
      const settled = new Map();
      let [sent, added, givenUp] = [[], 0, 0];
      for (const step of all) {
        if (step === "add") {
          const order = added++;
          live.push(queue.add(draft("1", String(order)), () => settled.set(order, (settled.get(order) ?? 0) + 1)));
        } else if (step === "send") sent.push(...queue.send(takeId).map(({ id }) => id));
        else if (step === "answer" && sent.length > 0) queue.answer(sent.shift(), new Published(null));
        else if (step === "back" && sent.length > 0) queue.putBack(sent.pop());
        else if (step === "lose") {
          queue.lost();
          sent = [];
        } else if (step === "give up" && live.length > 0) {
          queue.giveUp(live.pop());
          givenUp++;
        }
      }
      queue.close(new ClientClosed());
      assert.deepEqual([queue.size, queue.bytes], [0, 0]);
      assert.ok([...settled.values()].every((times) => times === 1));
      assert.ok(added - givenUp <= settled.size && settled.size <= added);
    }),
  );
});

test("fields are those of the call, whatever becomes of the caller's buffers", () => {
  for (const buffer of [Uint8Array.of(1, 2), Buffer.from([1, 2])]) {
    const fields = { map: buffer, name: "x" };
    const sent = new Draft("/a", "json", "1", { key: "k", fields });
    buffer.fill(9);
    fields.name = "y";
    assert.deepEqual(sent.fields, { map: Uint8Array.of(1, 2), name: "x" });
  }
});

test("nothing else is sent until those sent alone are answered", () => {
  const [queue, takeId] = [newQueue(), ids()];
  for (let n = 0; n < 2; n++) queue.add(draft(), ignore);
  queue.send(takeId);
  queue.add(draft("later"), ignore);
  assert.ok(queue.sendAlone());
  queue.lost();
  const again = queue.send(takeId);
  assert.deepEqual(again.map(({ isAlone }) => isAlone), [true, true]);
  queue.answer(again[0].id, new Published(null));
  assert.deepEqual([queue.canSend, queue.send(takeId)], [false, []]);
  queue.answer(again[1].id, new Published(null));
  assert.equal(queue.canSend, true);
  assert.deepEqual(queue.send(takeId).map(({ draft: { content } }) => content), ["later"]);
});

test("a size that was refused is not sent again for a minute, or until another loss", () => {
  const [frames, queue] = [new SentFrames(), newQueue()];
  frames.sent([{ verb: "publish", id: 1, draft: draft(), isAlone: true, numbered: null }], 500);
  assert.equal(frames.lost(1009, queue, 1_000), null);
  assert.ok(frames.wasRefused);
  const sizes = /** @type {const} */ ([[436, 1_000], [437, 1_000], [500, 60_999], [500, 61_000]]);
  assert.deepEqual(sizes.map(([size, now]) => frames.isTooLarge(size, now)), [false, true, true, false]);
  assert.equal(frames.lost(null, queue, 2_000), null);
  assert.ok(!frames.wasRefused && !frames.isTooLarge(500, 2_000));
});

test("a publish that the server may have is not refused before it is sent", () => {
  const [queue, takeId, settled] = [newQueue(), ids(), []];
  queue.add(draft("1", "a"), (outcome) => settled.push(outcome));
  queue.send(takeId);
  queue.lost();
  queue.add(draft("1", "b"), (outcome) => settled.push(outcome));
  queue.send(takeId);
  assert.deepEqual([2, 3, 4].map((id) => queue.refuseUnsent(id, 500)), [false, true, false]);
  assert.ok(settled.length === 1 && settled[0] instanceof CommandRefused);
  assert.equal(queue.size, 1);
});
