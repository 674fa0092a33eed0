// Numbered publishes: a repeated one keeps its number, is marked as repeated, and becomes one message or a reported uncertainty.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Draft } from "../../src/codec/command.js";
import { Code } from "../../src/codes.js";
import { AnswerLost, CommandRefused } from "../../src/errors.js";
import { Published } from "../../src/model.js";
import { Numbering } from "../../src/session/numbering.js";
import { PublishQueue } from "../../src/session/publishing.js";

/** @param {"resend" | "raise"} [onUnknownPublish] */
function rig(onUnknownPublish = "resend") {
  const numbering = new Numbering("0123456789abcdef0123456789abcdef");
  numbering.connected(true);
  const limits = { publishQueueMax: 100, publishQueueBytesMax: 1 << 20, publishInFlightMax: 10 };
  const queue = new PublishQueue({ ...limits, onUnknownPublish }, numbering);
  /** @type {unknown[]} */
  const settled = [];
  let lastId = 0;
  return {
    numbering,
    queue,
    settled,
    publish: () => queue.add(new Draft("/a", "json", "1"), (outcome) => settled.push(outcome), true),
    send: () => queue.send(() => ++lastId),
  };
}

/** @param {ReturnType<typeof rig>} of */
const sent = (of) => of.send().map(({ numbered }) => [numbered?.number, numbered?.floor, numbered?.isAgain]);

test("numbers rise, and after a loss a number is sent again with the floor of what is settled", () => {
  const one = rig();
  one.publish();
  one.publish();
  assert.deepEqual(sent(one), [[1, 1, false], [2, 1, false]]);
  one.queue.answer(1, new Published(null, false, null));
  one.queue.lost();
  one.publish();
  assert.deepEqual(sent(one), [[2, 2, true], [3, 2, false]]);
});

for (const code of [Code.RepeatUnknown, Code.NumberTooOld]) {
  test(`a publish that the server cannot know is sent again with a new number, or fails if so configured: ${code}`, () => {
    const [resends, raises] = [rig(), rig("raise")];
    for (const one of [resends, raises]) {
      one.publish();
      one.send();
      one.queue.lost();
      assert.deepEqual(sent(one), [[1, 1, true]]);
      one.queue.refuse(2, new CommandRefused(code, "", ""));
    }
    assert.deepEqual(sent(resends), [[2, 2, false]]);
    assert.deepEqual(resends.settled, []);
    assert.ok(raises.settled[0] instanceof AnswerLost);
  });
}

test("without room for numbers publishes have keys", () => {
  const one = rig();
  one.numbering.connected(false);
  one.publish();
  assert.deepEqual(one.send().map(({ draft, numbered }) => [draft.key, numbered]), [["0123456789abcdef.1", null]]);
});
