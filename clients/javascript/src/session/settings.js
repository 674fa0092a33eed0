// The settings of a client; every quantity has a unit, a bound and a default.

import { shown } from "../shown.js";

const FRAME_BYTES_MIN = 8_192;
const FRAME_BYTES_TOP = 1_073_741_824;

const DEFAULTS = Object.freeze({
  /** Items of one subscription that wait for the program. Beyond it the client stops reading for that subscription. */
  itemsMax: 1_000,
  /** Bytes of their content. One message is always accepted. */
  itemsBytesMax: 8 << 20,
  /** Bytes of waiting content of all subscriptions of the client. */
  itemsTotalBytesMax: 64 << 20,
  /** Publishes without an answer. Beyond it `publish` rejects with PublishQueueFull. */
  publishQueueMax: 10_000,
  /** Bytes of publishes without an answer. */
  publishQueueBytesMax: 16 << 20,
  /** Publishes that were sent and have no answer. The server allows 1,000 commands. */
  publishInFlightMax: 500,
  /** Positions kept of one pattern, in addition to its resume token. */
  subjectsMax: 4_000,
  /** Bytes of one frame received, from 8,192 to 1,073,741,824. In place of a longer message the server sends a gap `too_large`. */
  frameBytesMax: 16 << 20,
  /** Time to open a connection and to be answered. */
  connectTimeoutMs: 10_000,
  /** Time for the first event of a stream over HTTP. After it the client uses long polling. */
  streamTimeoutMs: 5_000,
  /** Time over HTTP before the client tries a WebSocket again. It doubles with each failure, up to an hour. */
  webSocketAgainMs: 60_000,
  /** Time for the answer to a ping. After it the connection is closed. */
  answerTimeoutMs: 10_000,
  /** Silence before a ping, if the server names no interval. Over HTTP: how often the server sends something by each stream. */
  pingIntervalMs: 25_000,
  /** Upper bound of the first wait before the client reconnects. */
  reconnectFirstMs: 1_000,
  /** Upper bound of later waits. */
  reconnectMaxMs: 20_000,
  /** Time between two savings of positions. */
  positionsSaveMs: 1_000,
  /** For a publish whose answer was lost and that the server no longer knows: "resend" publishes it again, perhaps as a second message; "raise" rejects it with AnswerLost. */
  onUnknownPublish: /** @type {"resend" | "raise"} */ ("resend"),
});

/**
 * @typedef {{ -readonly [name in Exclude<keyof typeof DEFAULTS, "onUnknownPublish">]: number } & { onUnknownPublish: "resend" | "raise" }} Settings
 *   limits and times of one client
 */

/**
 * All settings, from those that were chosen; throws RangeError for an unknown name or a value that is not allowed. A number of
 * bytes or items is a whole number from 1 up. A time is any number from 1 up; one that is longer than timers last never ends.
 * @param {Partial<Settings>} chosen
 * @returns {Readonly<Settings>}
 */
export function settingsOf(chosen) {
  for (const [name, value] of Object.entries(chosen)) {
    if (!Object.keys(DEFAULTS).includes(name)) throw new RangeError(`unknown setting ${name}: expected ${Object.keys(DEFAULTS).join(", ")}`);
    if (name === "onUnknownPublish") {
      if (value !== "resend" && value !== "raise") throw new RangeError(`${name} is ${shown(value)}: expected "resend" or "raise"`);
      continue;
    }
    const isTime = name.endsWith("Ms");
    if (isTime ? !(typeof value === "number" && value >= 1) : !(Number.isSafeInteger(value) && Number(value) >= 1)) {
      throw new RangeError(`${name} is ${typeof value === "number" ? value : shown(value)}: expected a ${isTime ? "number" : "whole number"} from 1 up`);
    }
  }
  const { frameBytesMax = DEFAULTS.frameBytesMax } = chosen;
  if (frameBytesMax < FRAME_BYTES_MIN || frameBytesMax > FRAME_BYTES_TOP) {
    throw new RangeError(`frameBytesMax is ${frameBytesMax}: expected ${FRAME_BYTES_MIN} to ${FRAME_BYTES_TOP}`);
  }
  return Object.freeze({ ...DEFAULTS, ...chosen });
}
