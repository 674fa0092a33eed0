// The commands of a session as frames: several commands go in one frame, bounded by number and by bytes.

import { utf8Length } from "../content.js";

/** @typedef {import("../codec/command.js").Command} Command */
/** @typedef {import("../codec/encodings.js").Encoding} Encoding */
/** @typedef {import("./session.js").Session} Session */

const BATCH_COMMANDS_MAX = 64;
const BATCH_BYTES_MAX = 65_536; // escaped as badly as can be, still below the server's limit for one message
const POSITION_BYTES = 30; // a position with its quotes

/**
 * The frames to send now. A publish that is too large, as far as the client has learned, is refused and not sent.
 * @param {Session} session
 * @param {Encoding} encoding
 * @param {number} now
 * @returns {Generator<string | Uint8Array, void>}
 */
export function* framesOf(session, encoding, now) {
  const { frames, publishes } = session;
  for (let isAnyRefused = true; isAnyRefused; ) {
    isAnyRefused = false; // if one is, others that waited for its answer follow
    const batches = batchesOf(session.commands());
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
      const frame = encoding.encode(batch);
      const size = typeof frame === "string" ? utf8Length(frame) : frame.byteLength;
      const isTooLarge = frames.isTooLarge(size, now);
      const [first] = batch;
      if (isTooLarge && batch.length > 1) batches.unshift(...batch.map((command) => [command]));
      else if (isTooLarge && first?.verb === "publish" && publishes.refuseUnsent(first.id, size)) isAnyRefused = true;
      else {
        frames.sent(batch, size);
        yield frame;
      }
    }
  }
}

/**
 * Commands that go together in one frame, bounded by number and by bytes.
 * @param {Command[]} commands
 */
function batchesOf(commands) {
  /** @type {Command[][]} */
  const batches = [];
  let size = 0;
  let wasAlone = true;
  /** @type {Command[]} */
  let batch = [];
  for (const command of commands) {
    const more = sizeOf(command);
    const isAlone = command.verb === "publish" && command.isAlone === true;
    if (isAlone || wasAlone || size + more >= BATCH_BYTES_MAX || batch.length >= BATCH_COMMANDS_MAX) {
      batch = [];
      batches.push(batch);
      size = 0;
    }
    size += more;
    wasAlone = isAlone;
    batch.push(command);
  }
  return batches;
}

/**
 * About how long it is: what a user gives, and the positions that a subscription resumes from.
 * @param {Command} command
 */
function sizeOf(command) {
  if (command.verb === "publish") return command.draft.size;
  if (command.verb !== "subscribe") return 0;
  return [...command.resumePoint.after.keys()].reduce((sum, subject) => sum + subject.length + POSITION_BYTES, 0);
}
