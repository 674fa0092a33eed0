// Subjects and patterns: which are valid, and which pattern matches which subject.
//
// A subject is one or more segments, each after a slash, which may be empty as levels of MQTT's topics may; `*` (any one segment)
// and `**` (any rest, also none) are wildcards when they are a whole segment, `**` only last. `/$…` is the server's own: no leading wildcard matches it.
// Pure; the Rust core and the Python client have the same rules, and protocol/vectors tests them all.

import { utf8Length } from "./content.js";
import { SubjectInvalid } from "./errors.js";
import { shown } from "./shown.js";

/** The contract's limit on a subject or pattern, in UTF-8 bytes; not to be configured. */
export const SUBJECT_BYTES_MAX = 1024;

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Returns the subject; throws SubjectInvalid with the rule that it breaks.
 * @param {string} subject
 */
export function checkSubject(subject) {
  if (checkedSegments(subject).some((segment) => segment === "*" || segment === "**")) {
    throw new SubjectInvalid(subject, "has a wildcard segment, which only a pattern may have");
  }
  return subject;
}

/**
 * Returns the pattern (a subject is one, too); throws SubjectInvalid with the rule that it breaks.
 * @param {string} pattern
 */
export function checkPattern(pattern) {
  if (checkedSegments(pattern).slice(0, -1).includes("**")) {
    throw new SubjectInvalid(pattern, "has ** before its last segment, where only * is allowed");
  }
  return pattern;
}

/**
 * Whether a valid pattern has a wildcard and can match many subjects.
 * @param {string} text
 */
export function isPattern(text) {
  return text.split("/").some((segment) => segment === "*" || segment === "**");
}

/**
 * Whether a valid pattern matches a valid subject.
 * @param {string} pattern
 * @param {string} subject
 */
export function matches(pattern, subject) {
  const wanted = pattern.split("/").slice(1);
  let given = subject.split("/").slice(1);
  if (given[0]?.startsWith("$") && (wanted[0] === "*" || wanted[0] === "**")) return false;
  if (wanted[wanted.length - 1] === "**") {
    wanted.pop();
    given = given.slice(0, Math.max(wanted.length, 0));
  }
  return wanted.length === given.length && wanted.every((segment, place) => segment === "*" || segment === given[place]);
}

/** @param {string} text */
function checkedSegments(text) {
  if (typeof text !== "string") throw new SubjectInvalid(shown(text), "is not a string");
  if (!text.startsWith("/")) throw new SubjectInvalid(text, "does not begin with a slash");
  if (LONE_SURROGATE.test(text)) throw new SubjectInvalid(text, "is not UTF-8");
  const size = utf8Length(text);
  if (size > SUBJECT_BYTES_MAX) {
    throw new SubjectInvalid(text, `is ${size} bytes long, ${SUBJECT_BYTES_MAX} are allowed`);
  }
  const segments = text.split("/").slice(1);
  if (text === "/") throw new SubjectInvalid(text, "has no segment");
  if (CONTROL.test(text)) throw new SubjectInvalid(text, "has a control character");
  return segments;
}
