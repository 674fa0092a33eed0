// What a client may be told about itself; every quantity has a unit, a bound and a default.

const DEFAULTS = Object.freeze({
  /** of one subscription between wire and reader; beyond it nothing is read for it */
  itemsMax: 1_000,
  /** publishes without an answer */
  publishQueueMax: 10_000,
  /** and their bytes */
  publishQueueBytesMax: 16 << 20,
  /** of these on the wire; the server allows 1,000 commands */
  publishInFlightMax: 500,
  /** positions kept of one pattern, beside its resume token */
  subjectsMax: 4_000,
  /** of one frame received (browsers have a bound of their own) */
  frameBytesMax: 2 << 20,
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
  reconnectMaxMs: 120_000,
  /** between two savings of positions */
  positionsSaveMs: 1_000,
});

/** @typedef {{ -readonly [name in keyof typeof DEFAULTS]: number }} Settings limits and times of one client */

/**
 * All settings, from those that were chosen; throws RangeError for an unknown name, or for a value
 * that is not a whole number from 1 up. A time of 2^31 ms or more never ends.
 * @param {Partial<Settings>} chosen
 * @returns {Readonly<Settings>}
 */
export function settingsOf(chosen) {
  for (const [name, value] of Object.entries(chosen)) {
    if (!(name in DEFAULTS)) throw new RangeError(`${name} is no setting; there are ${Object.keys(DEFAULTS).join(", ")}`);
    const isEndless = value === Infinity && name.endsWith("Ms");
    if (!isEndless && (!Number.isSafeInteger(value) || value < 1)) {
      throw new RangeError(`${name} is ${value}; it must be a whole number from 1 up${name.endsWith("Ms") ? ", or Infinity" : ""}`);
    }
  }
  return Object.freeze({ ...DEFAULTS, ...chosen });
}
