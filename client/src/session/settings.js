// What a client may be told about itself; every quantity has a unit, a bound and a default.

const FRAME_BYTES_MIN = 8_192;
const FRAME_BYTES_TOP = 1_073_741_824;

const DEFAULTS = Object.freeze({
  /** of one subscription between wire and reader; beyond it nothing is read for it */
  itemsMax: 1_000,
  /** and the bytes of their content; one message is always taken */
  itemsBytesMax: 8 << 20,
  /** of all subscriptions of one client */
  itemsTotalBytesMax: 64 << 20,
  /** publishes without an answer */
  publishQueueMax: 10_000,
  /** and their bytes */
  publishQueueBytesMax: 16 << 20,
  /** of these on the wire; the server allows 1,000 commands */
  publishInFlightMax: 500,
  /** positions kept of one pattern, beside its resume token */
  subjectsMax: 4_000,
  /** of one frame received, from 8,192 to 1,073,741,824; the server is told, and sends a gap in place of a longer one */
  frameBytesMax: 16 << 20,
  /** to open a connection and be answered */
  connectTimeoutMs: 10_000,
  /** the first event of a stream over HTTP; past it something between keeps events back */
  streamTimeoutMs: 5_000,
  /** while connected over HTTP, before a WebSocket is tried again; doubles with each failure up to an hour */
  webSocketAgainMs: 60_000,
  /** to answer a ping, else the peer is dead */
  answerTimeoutMs: 10_000,
  /** silence before a ping, where the server names none; over HTTP how often it has to say something */
  pingIntervalMs: 25_000,
  /** the first try to come back comes within this */
  reconnectFirstMs: 1_000,
  /** and a later one within this */
  reconnectMaxMs: 20_000,
  /** between two savings of positions */
  positionsSaveMs: 1_000,
  /** for a publish whose answer was lost and that the server no longer knows: "resend" publishes it again, perhaps as a second message; "raise" rejects with AnswerLost */
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
    if (!(name in DEFAULTS)) throw new RangeError(`${name} is no setting; there are ${Object.keys(DEFAULTS).join(", ")}`);
    if (name === "onUnknownPublish") {
      if (value !== "resend" && value !== "raise") throw new RangeError(`${name} is ${String(value)}; it must be resend or raise`);
      continue;
    }
    const isTime = name.endsWith("Ms");
    if (isTime ? !(typeof value === "number" && value >= 1) : !(Number.isSafeInteger(value) && Number(value) >= 1)) {
      throw new RangeError(`${name} is ${String(value)}; it must be a ${isTime ? "number" : "whole number"} from 1 up`);
    }
  }
  const { frameBytesMax = DEFAULTS.frameBytesMax } = chosen;
  if (frameBytesMax < FRAME_BYTES_MIN || frameBytesMax > FRAME_BYTES_TOP) {
    throw new RangeError(`frameBytesMax is ${frameBytesMax}; it must be from ${FRAME_BYTES_MIN} to ${FRAME_BYTES_TOP}`);
  }
  return Object.freeze({ ...DEFAULTS, ...chosen });
}
