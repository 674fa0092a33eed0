// What the server sends besides messages, gaps, drops and interest (model.js): replies, refusals and notices, as values.
//
// Each has a `type`, so that one switch handles everything that a frame can hold.

/** @typedef {import("../model.js").Ack} Ack */
/** @typedef {import("../model.js").Outcome} Outcome */
/** @typedef {import("../model.js").Position} Position */

/**
 * @typedef {object} Reply a command was carried out; each kind of reply fills the fields it has
 * @property {"reply"} type
 * @property {number | null} id
 * @property {string} ok connected, subscribed, unsubscribed, published, pong, watching, unwatched
 * @property {Position | null} position
 * @property {Outcome | null} outcome
 * @property {number | null} count null: not known before the messages arrive
 * @property {boolean} isDuplicate
 * @property {Ack | null} ack
 * @property {string | null} session
 * @property {string | null} node
 * @property {number | null} pingIntervalMs
 * @property {boolean} hasPublisher false: the server has no room for this client's numbers
 */

/**
 * @param {number | null} id
 * @param {string} ok
 * @param {Partial<Reply>} [fields]
 * @returns {Reply}
 */
export function replyOf(id, ok, fields) {
  return {
    ...{ type: "reply", id, ok, position: null, outcome: null, count: null, isDuplicate: false },
    ...{ ack: null, session: null, node: null, pingIntervalMs: null, hasPublisher: true },
    ...fields,
  };
}

/**
 * @typedef {{ type: "refusal", id: number | null, code: number, codeName: string, reason: string, retry: boolean }} Refusal
 *   a command was refused, with a code of protocol/codes.toml
 */
/**
 * @typedef {{ type: "marked", resumeToken: string, pattern: string, node: string | null }} Marked
 *   a wildcard subscription has been sent everything up to this resume token; the session knows which node gave it
 */
/**
 * @typedef {{ type: "epochs", subject: string, order: bigint[], pattern: string | null }} Epochs
 *   the order of a subject's epochs: messages of an epoch before the client's own are duplicates
 */
/** @typedef {{ type: "ended", selector: string, code: number, reason: string }} Ended the server ended a subscription */
/**
 * @typedef {{ type: "notice", name: string, inMs: number | null, reconnectAfterMs: number | null }} Notice
 *   something is about to happen: token_expiring (inMs), draining (reconnectAfterMs)
 */
/**
 * @typedef {{ type: "interest_state", selector: string, isComplete: boolean }} InterestState
 *   the state of a watch begins here, or is complete
 */

/** @typedef {import("../model.js").Message} Message */
/** @typedef {import("../model.js").Gap} Gap */
/** @typedef {import("../model.js").Dropped} Dropped */
/** @typedef {import("../model.js").Interest} Interest */
/** @typedef {Message | Marked | Epochs | Reply | Refusal | Gap | Dropped | Interest | InterestState | Ended | Notice} Received everything that a frame can hold */

/** @type {readonly Outcome[]} */
export const OUTCOMES = ["snapshot", "recovered", "history", "live", "resync"];
/** @type {readonly import("../model.js").GapReason[]} */
export const REASONS = ["expired", "overrun", "epoch", "ahead", "unknown", "too_large"];
/** @type {readonly Ack[]} */
export const ACKS = ["cached", "replicated", "disk"];

/**
 * The word, if it is one of these; a word that this client does not know is unknown to it.
 * @template {string} W
 * @param {readonly W[]} words
 * @param {string | null} text
 * @returns {W | null}
 */
export function wordOf(words, text) {
  return words.find((word) => word === text) ?? null;
}
