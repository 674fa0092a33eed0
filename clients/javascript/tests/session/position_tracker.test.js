// The position of a subscription: tables for the rules of the protocol, and a model in which connections break anywhere.

import assert from "node:assert/strict";
import { test } from "node:test";

import fc from "fast-check";

import { PositionInvalid } from "../../src/errors.js";
import { Gap, Position } from "../../src/model.js";
import { ResumePoint } from "../../src/session/resume_point.js";
import { PositionTracker } from "../../src/session/position_tracker.js";
import { messageOf } from "./model_node.js";

const SUBJECT = "/a/b";
const at = (text) => (text ? Position.parse(text) : null);
const message = (text, { subject = SUBJECT, after = null, isSnapshot = false } = {}) =>
  messageOf(subject, "1", { position: at(text), after: at(after), isSnapshot });
const gap = (text, missed = null, subject = SUBJECT) => new Gap(subject, at(text), null, "expired", missed);
const newPositionTracker = (text = null, isPattern = false, subjectsMax = 10) =>
  new PositionTracker(isPattern ? "/a/**" : SUBJECT, isPattern, subjectsMax, text ? new ResumePoint(new Map([[SUBJECT, at(text)]])) : null);

for (const [resumePoint, given, verdict, then] of [
  [null, message("7.5"), "new", "7.5"],
  ["7.4", message("7.5"), "new", "7.5"],
  ["7.5", message("7.5"), "duplicate", "7.5"],
  ["7.5", message("7.2"), "duplicate", "7.5"],
  ["7.4", message("7.6"), "missing", "7.6"],
  ["7.4", message("7.9", { after: "7.4" }), "new", "7.9"],
  ["7.4", message("7.9", { after: "7.2" }), "new", "7.9"],
  ["7.4", message("7.9", { after: "7.5" }), "missing", "7.9"],
  ["7.4", message("3.1"), "new", "3.1"],
  ["7.4", message("7.8", { isSnapshot: true }), "new", "7.8"],
  ["7.8", message("7.8", { isSnapshot: true }), "duplicate", "7.8"],
]) {
  test(`at ${resumePoint}, message ${given.position} after ${given.after}: ${verdict}`, () => {
    const tracker = newPositionTracker(resumePoint);
    assert.equal(tracker.judge(given), verdict);
    assert.equal(String(tracker.position(SUBJECT)), then);
  });
}

test("a standard message is always new and moves nothing", () => {
  const tracker = newPositionTracker("7.4");
  assert.equal(tracker.judge(messageOf(SUBJECT, "1")), "new");
  assert.equal(String(tracker.position(SUBJECT)), "7.4");
});

test("the snapshot after a gap is no repeat", () => {
  const tracker = newPositionTracker("7.4");
  tracker.place(gap("7.9"));
  assert.equal(tracker.judge(message("7.9", { isSnapshot: true })), "new");
  assert.equal(tracker.judge(message("7.9", { isSnapshot: true })), "duplicate");
  assert.equal(tracker.judge(message("7.10")), "new");
});

for (const [after, text, reason, isIgnored] of [
  [null, "7.3", "expired", true],
  [null, "7.4", "overrun", true],
  ["7.9", "7.2", "epoch", true],
  ["6.9", "7.4", "epoch", false],
  [null, "7.5", "expired", false],
  ["7.4", "7.2", "ahead", false],
  ["7.2", "7.2", "ahead", false],
  [null, "8.1", "epoch", false],
  [null, "6.9", "epoch", false],
]) {
  test(`a client at 7.4 ${isIgnored ? "ignores" : "takes"} a gap to ${text} after ${after}, ${reason}`, () => {
    const found = newPositionTracker("7.4").refine(new Gap(SUBJECT, at(text), at(after), reason, null));
    assert.equal(found === null, isIgnored);
  });
}

test("a gap to another run sets the position even if it is smaller", () => {
  const tracker = newPositionTracker("7.400");
  tracker.place(gap("3.2"));
  assert.equal(tracker.judge(message("3.2", { isSnapshot: true })), "new");
  assert.equal(tracker.judge(message("3.3")), "new");
});

test("a live join has the server's position before any message", () => {
  const tracker = newPositionTracker();
  tracker.joined(at("7.58"), 0);
  assert.equal(String(tracker.resumePoint.after.get(SUBJECT)), "7.58");
  assert.equal(tracker.judge(message("7.58")), "duplicate");
});

test("history that ends before the head leaves the position at the head", () => {
  const tracker = newPositionTracker();
  tracker.joined(at("7.58"), 2);
  for (const text of ["7.49", "7.50"]) tracker.judge(message(text));
  assert.equal(String(tracker.position(SUBJECT)), "7.58");
});

test("a gap of a whole pattern forgets every position", () => {
  const tracker = newPositionTracker("7.4", true);
  tracker.resumeToken("1.2.3", null);
  tracker.place(new Gap("/a/**", null, null, "epoch", null, "/a/**"));
  assert.equal(tracker.resumePoint.isSomewhere, false);
  assert.equal(tracker.judge(message("7.4", { isSnapshot: true })), "new");
});

test("a pattern forgets the longest untouched subject and then resumes by its resume token and the later positions", () => {
  const tracker = newPositionTracker(null, true, 2);
  tracker.judge(message("7.1", { subject: "/a/1" }));
  tracker.resumeToken("1.1.1", "n");
  tracker.judge(message("7.1", { subject: "/a/2" }));
  assert.deepEqual(tracker.resumePoint.toJSON(), { after: { "/a/1": "7.1", "/a/2": "7.1" }, since: "1.1.1", node: "n", recent: 1 });
  tracker.judge(message("7.1", { subject: "/a/3" }));
  assert.deepEqual(tracker.resumePoint.toJSON(), { after: { "/a/2": "7.1", "/a/3": "7.1" }, since: "1.1.1", node: "n", recent: 2, whole: false });
  const later = new PositionTracker("/a/**", true, 2, ResumePoint.fromJSON(JSON.parse(JSON.stringify(tracker.resumePoint))));
  assert.deepEqual(later.resumePoint, tracker.resumePoint);
  assert.deepEqual(later.resumePoint.forNode("other").toJSON(), { since: "1.1.1" }, "so that the node says what is missing");
  assert.equal(tracker.position("/a/1"), undefined);
});

test("what came after the last resume token is never forgotten", () => {
  const tracker = newPositionTracker(null, true, 2);
  tracker.resumeToken("1.1.1", "n");
  const all = Array.from({ length: 9 }, (_, n) => message("7.1", { subject: `/a/${n}` }));
  for (const each of all) tracker.judge(each);
  assert.ok(all.every((each) => tracker.judge(each) === "duplicate"));
});

for (const [after, upto, missed, refined] of [
  ["7.4", "7.9", 5, ["7.4", 5]],
  ["7.2", "7.9", 7, ["7.4", 5]],
  ["7.2", "7.9", null, ["7.4", null]],
  ["7.2", "7.4", 2, null],
  ["7.2", "7.3", 1, null],
  ["7.2", "8.1", null, ["7.4", null]],
  ["6.9", "7.9", null, ["6.9", null]],
]) {
  test(`a gap from ${after} to ${upto} is cut to what was not seen at 7.4`, () => {
    const found = newPositionTracker("7.4", true).refine(new Gap(SUBJECT, at(upto), at(after), "overrun", missed));
    assert.deepEqual(found && [String(found.after), found.missed], refined);
  });
}

test("the node that gave the resume token needs only the positions beyond it, another all of them and no resume token", () => {
  const resumePoint = new ResumePoint(new Map([["/a/0", at("7.3")], [SUBJECT, at("7.1")]]), "1.1.1", "n");
  assert.deepEqual(resumePoint.forNode("n").toJSON(), { since: "1.1.1" });
  assert.deepEqual(resumePoint.forNode("other").toJSON(), { after: { "/a/0": "7.3", [SUBJECT]: "7.1" } });
  const beyond = new ResumePoint(resumePoint.after, "1.1.1", "n", 1);
  assert.deepEqual(beyond.forNode("n").toJSON(), { after: { [SUBJECT]: "7.1" }, since: "1.1.1" });
  assert.deepEqual(new ResumePoint(new Map(), "1.1.1", "n").forNode("other").toJSON(), { since: "1.1.1" });
  const given = new ResumePoint(resumePoint.after, "1.1.1");
  assert.deepEqual(given.forNode("n").toJSON(), { after: { "/a/0": "7.3", [SUBJECT]: "7.1" }, since: "1.1.1" }, "of a node that nobody named");
  const unmarked = new ResumePoint(resumePoint.after);
  assert.equal(unmarked.forNode("n"), unmarked);
});

test("a question that the server would not take is left to the resume token", () => {
  const many = (count, length) => new Map(Array.from({ length: count }, (_, n) => [`/${n}${"x".repeat(length)}`, at("7.1")]));
  for (const after of [many(4_001, 0), many(300, 900)]) {
    assert.deepEqual(new ResumePoint(after, "1.1.1", "n").forNode("other").toJSON(), { since: "1.1.1" });
  }
  assert.equal(new ResumePoint(many(4_000, 0), "1.1.1", "n").forNode("other").after.size, 4_000);
});

test("a tracker made from a resume point knows what is beyond its resume token", () => {
  const first = newPositionTracker(null, true);
  first.judge(message("7.1", { subject: "/a/1" }));
  first.resumeToken("1.1.1", "n");
  first.judge(message("7.1", { subject: "/a/2" }));
  const second = new PositionTracker("/a/**", true, 10, ResumePoint.fromJSON(JSON.parse(JSON.stringify(first.resumePoint))));
  second.judge(message("7.2", { subject: "/a/1" }));
  assert.deepEqual(second.resumePoint.forNode("n").toJSON(), { after: { "/a/2": "7.1", "/a/1": "7.2" }, since: "1.1.1" });
  second.place(new Gap("/a/2", null, null, "unknown", null, "/a/**"));
  assert.deepEqual(second.resumePoint.forNode("n").toJSON(), { after: { "/a/1": "7.2" }, since: "1.1.1" });
});

test("a resume point is read from what was saved, and anything else is refused", () => {
  const resumePoint = new ResumePoint(new Map([[SUBJECT, at("7.18446744073709551615")]]), "1.1.1", "n");
  assert.deepEqual(ResumePoint.fromJSON(JSON.parse(JSON.stringify(resumePoint))), resumePoint);
  assert.equal(ResumePoint.fromJSON({ after: { "/a": "7.1" }, recent: 9 }).recent, 1);
  for (const saved of [null, 7, "7.1", [], { after: [] }, { after: { "/a": 1 } }, { since: 1 }, { after: null }]) {
    assert.throws(() => ResumePoint.fromJSON(saved), PositionInvalid, JSON.stringify(saved));
  }
  for (const text of ["", "7", "7.01", "07.1", "-1.1", "7.1 ", "7.18446744073709551616"]) {
    assert.throws(() => Position.parse(text), PositionInvalid, text);
  }
});

test("a position is read alike whatever was read before it", () => {
  const number = fc.oneof(fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }), fc.constantFrom(0n, 1n, 10n, 10n ** 15n, (1n << 53n) + 1n));
  const texts = fc.array(fc.tuple(fc.constantFrom(0n, 1n, 12n, 123n, (1n << 64n) - 1n), number), { minLength: 2, maxLength: 20 });
  fc.assert(
    fc.property(texts, (pairs) => {
      for (const [epoch, sequence] of pairs) {
        const text = `${epoch}.${sequence}`;
        const { epoch: readEpoch, sequence: readSequence } = Position.parse(text);
        assert.deepEqual([readEpoch, readSequence], [epoch, sequence], text);
        for (const wrong of [`${text} `, `${epoch}.0${sequence}`, `${text}x`, `${epoch}:${sequence}`, `${epoch}.`, `${epoch}.-1`]) {
          assert.throws(() => Position.parse(wrong), PositionInvalid, wrong);
        }
      }
    }),
  );
});

test("wherever a connection breaks everything comes once", () => {
  const lives = fc.tuple(fc.array(fc.nat({ max: 40 }), { maxLength: 30 }), fc.integer({ min: 1, max: 40 }));
  fc.assert(
    fc.property(lives, ([cuts, total]) => {
      const [tracker, seen] = [newPositionTracker("7.0"), []];
      for (const cut of [...cuts, total]) {
        const asked = Number(tracker.resumePoint.after.get(SUBJECT)?.sequence);
        const start = Math.max(1, asked - (cut % 3)); // the server may send some again
        const end = cut === total ? total : Math.min(start + cut + 2, total);
        for (let sequence = start; sequence <= end; sequence++) {
          const verdict = tracker.judge(message(`7.${sequence}`));
          assert.notEqual(verdict, "missing");
          if (verdict === "new") seen.push(sequence);
        }
      }
      assert.deepEqual(seen, Array.from({ length: total }, (_, n) => n + 1));
    }),
  );
});
