// How HTTP requests one subscription: its query, its position, and when it is too long.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Watched } from "../../src/transport/http/watched.js";
import { Wanted, bodyOf, gapOf, isRoomFor, resumeTokenOf, queryOf } from "../../src/transport/http/wanted.js";

const RESUME_TOKEN = "a1.7.99";
const want = (subscribe, rest = {}) => new Wanted({ id: 1, subscribe, ...rest });

test("a subject is requested from its position, a pattern from its resume token or its map", () => {
  const cases = [
    [want("/a/b"), "subject=/a/b"],
    [want("/a b?&é"), "subject=/a%20b%3F%26%C3%A9"],
    [want("/a", { after: "7.42" }), "subject=/a&after=7.42"],
    [want("/a/**", { since: RESUME_TOKEN }), `subject=/a/**&since=${RESUME_TOKEN}`],
    [want("/a/*", { after: { "/a/b": "7.1" } }), `subject=/a/*&after=${encodeURIComponent('{"/a/b":"7.1"}').replaceAll("%2F", "/").replaceAll("%3A", ":")}`],
  ];
  for (const [wanted, query] of cases) assert.equal(queryOf([wanted]), query);
  const both = [want("/a", { on_gap: "oldest" }), want("/b", { on_gap: "oldest" })];
  assert.equal(queryOf(both), "subject=/a&subject=/b&on_gap=oldest");
});

test("its position follows the received messages, and a gap of a whole pattern removes it", () => {
  const subject = want("/a", { after: "7.1" });
  subject.passed({ message: "/a", at: "7.2" });
  subject.passed({ message: "/a" });
  assert.equal(subject.place, "7.2");
  const pattern = want("/a/*", { since: RESUME_TOKEN });
  pattern.passed({ message: "/a/b", at: "7.3", pattern: "/a/*" });
  assert.equal(pattern.place, RESUME_TOKEN, "a pattern's place is a resume token");
  pattern.passed({ gap: "/a/b", at: "7.9", pattern: "/a/*" });
  assert.equal(pattern.place, RESUME_TOKEN, "the gap of one subject leaves it");
  pattern.passed({ gap: "/a/*", pattern: "/a/*" });
  assert.equal(pattern.place, null);
});

test("a map that is too long for a request is left out and reported as a gap", () => {
  const places = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`/long/subject/${n}`, "7.1"]));
  const pattern = want("/long/**", { after: places });
  assert.equal(queryOf([pattern]), "subject=/long/**");
  assert.equal(pattern.isCut, true);
  assert.deepEqual(JSON.parse(gapOf("/long/**")), { gap: "/long/**", reason: "unknown", missed: null, pattern: "/long/**" });
  pattern.isServed = true;
  assert.equal(queryOf([pattern]), "subject=/long/**", "a map is for the join alone");
  assert.equal(isRoomFor(Array.from({ length: 100 }, () => want("/a"))), true);
  assert.equal(isRoomFor(Array.from({ length: 400 }, () => want("/a"))), false);
});

test("an id of several subscriptions holds a resume token, one of a subject does not", () => {
  assert.equal(resumeTokenOf(`${RESUME_TOKEN}.0badcafe`), RESUME_TOKEN);
  for (const id of [null, "", "7.42", RESUME_TOKEN, `${RESUME_TOKEN}.a.b`]) assert.equal(resumeTokenOf(id), null);
});

test("subscriptions share a long poll where gaps are treated alike", () => {
  assert.equal(want("/a", { last: 3 }).groupKey, want("/b").groupKey);
  assert.notEqual(want("/a").groupKey, want("/b", { on_gap: "oldest" }).groupKey);
});

test("a stream requests each command as it was given, and later from its position", () => {
  const subject = want("/a", { last: 3, on_gap: "oldest", conflate_ms: 100 });
  const pattern = want("/b/*", { after: { "/b/x": "7.1" }, snapshot: false });
  const written = () => JSON.parse(bodyOf([subject, pattern], [new Watched({ id: 9, watch: "/c" })]));
  const watch = { id: 9, watch: "/c" };
  assert.deepEqual(written(), [subject.command, pattern.command, watch]);
  for (const [each, place] of [[subject, "7.4"], [pattern, RESUME_TOKEN]]) [each.isServed, each.place] = [true, place];
  const common = { id: 1, subscribe: "/a", on_gap: "oldest", conflate_ms: 100, after: "7.4" };
  assert.deepEqual(written(), [common, { id: 1, subscribe: "/b/*", since: RESUME_TOKEN }, watch]);
});

test("a body that is too long leaves the maps out, and owes a gap", () => {
  const places = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`/long/subject/${n}`, "7.1"]));
  const pattern = want("/long/**", { after: places });
  assert.deepEqual(JSON.parse(bodyOf([pattern], [])), [{ id: 1, subscribe: "/long/**" }]);
  assert.equal(pattern.isCut, true);
});
