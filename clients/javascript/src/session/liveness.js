// Whether the server is alive: anything received proves it; after silence a ping is sent, and then the connection is dead.
//
// Times are parameters; nothing here reads a clock.

/** @typedef {"fine" | "ping due" | "dead"} Health */

export class Liveness {
  pingIntervalMs;
  isHeld = false;
  #answerTimeoutMs;
  #receivedAt = 0;
  /** @type {number | null} */
  #pingedAt = null;

  /**
   * @param {number} pingIntervalMs
   * @param {number} answerTimeoutMs
   */
  constructor(pingIntervalMs, answerTimeoutMs) {
    this.pingIntervalMs = pingIntervalMs;
    this.#answerTimeoutMs = answerTimeoutMs;
  }

  /** The shortest time that is watched here. */
  get shortestMs() {
    return Math.min(this.pingIntervalMs, this.#answerTimeoutMs);
  }

  /** @param {number} now */
  received(now) {
    this.#receivedAt = now;
    this.#pingedAt = null;
  }

  /**
   * This side stops reading, or reads again. Silence in between does not mean that the server is dead.
   * @param {number} now
   * @param {boolean} isHeld
   */
  hold(now, isHeld) {
    this.isHeld = isHeld;
    this.received(now);
  }

  /** @param {number} now */
  pinged(now) {
    this.#pingedAt = now;
  }

  /** Something happened that often ends connections unseen: do not wait for the silence to grow. */
  doubt() {
    this.#receivedAt = -Infinity;
  }

  /**
   * @param {number} now
   * @returns {Health}
   */
  judge(now) {
    if (this.isHeld) return "fine";
    if (this.#pingedAt !== null) return now - this.#pingedAt >= this.#answerTimeoutMs ? "dead" : "fine";
    return now - this.#receivedAt >= this.pingIntervalMs ? "ping due" : "fine";
  }
}
