// What is a subject, what is a pattern, and which holds which: protocol/vectors/subjects.json.

import assert from "node:assert/strict";
import { test } from "node:test";

import { SubjectInvalid } from "../../src/errors.js";
import { checkPattern, checkSubject, isPattern, matches } from "../../src/subject.js";
import { vectors } from "../vectors.js";

const CASES = vectors("subjects");

test("valid subjects are subjects and patterns", () => {
  for (const subject of [...CASES.valid_subjects, ...CASES.with_empty_segments]) {
    assert.equal(checkSubject(subject), subject);
    assert.equal(checkPattern(subject), subject);
    assert.equal(isPattern(subject), false, subject);
  }
});

test("what breaks a rule is no subject", () => {
  assert.ok(CASES.invalid_subjects.length > 10);
  for (const subject of CASES.invalid_subjects) assert.throws(() => checkSubject(subject), SubjectInvalid, subject);
});

test("valid patterns are patterns and no subjects", () => {
  for (const pattern of CASES.valid_patterns) {
    assert.equal(checkPattern(pattern), pattern);
    if (isPattern(pattern)) assert.throws(() => checkSubject(pattern), SubjectInvalid, pattern);
  }
});

test("what breaks a rule is no pattern", () => {
  for (const pattern of CASES.invalid_patterns) assert.throws(() => checkPattern(pattern), SubjectInvalid, pattern);
});

test("a lone surrogate, and what is no text, are refused", () => {
  for (const subject of ["/a\ud800", "/\udc00b", null, 7]) {
    assert.throws(() => checkSubject(/** @type {string} */ (subject)), SubjectInvalid);
  }
});

test("patterns match as in the table", () => {
  assert.ok(CASES.matches.length > 10);
  for (const { pattern, subject, holds, matches: does = holds } of CASES.matches.map(asObject)) {
    assert.equal(matches(pattern, subject), does, `${pattern} ${subject}`);
  }
});

/** A row may be an array. */
const asObject = (row) => (Array.isArray(row) ? { pattern: row[0], subject: row[1], matches: row[2] } : row);
