// Another token for a client: earlier publishes are answered first, under the token they were made with.
//
// Whether the new token names the same identity only the node knows. The same one renews on the connection. For another one the
// node closes (4002), and the client comes with the new token on a new connection. What was published before the call and has no
// answer by then fails with AnswerLost, and is never sent under the new token.

import { ClientError } from "../errors.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("./publishing.js").PublishQueue} PublishQueue */
/** @typedef {(error: GodwitError | null) => void} Settled */

const HANDOVER_MS = 10_000; // for what was published before to be answered

/** At most one at a time: a later one replaces an earlier one, which fails. */
export class Handover {
  /** @type {string | null} the last one that was handed over, for this and later connections */
  token = null;
  isAsked = false; // the node has been given it, and has not answered
  isAnyAsked = false; // or an earlier one was sent, whose answer may still arrive
  #publishes;
  #until = 0;
  #wasServed = false; // a connection was established, and something may have been sent on it
  /** @type {Settled | null} */
  #settle = null;

  /** @param {PublishQueue} publishes */
  constructor(publishes) {
    this.#publishes = publishes;
  }

  get isUnderWay() {
    return this.#settle !== null;
  }

  /**
   * The token given to setToken last; otherwise the client's own, unless setToken is called meanwhile.
   * @param {string | null | undefined | (() => string | null | Promise<string | null>)} own
   * @returns {Promise<string | null>}
   */
  async tokenOr(own) {
    if (this.token !== null) return this.token;
    const given = typeof own === "function" ? await own() : (own ?? null);
    return this.token ?? given;
  }

  /**
   * @param {string} token
   * @param {number} now
   * @param {Settled} settle
   */
  begin(token, now, settle) {
    this.end(new ClientError("another token was set before the server accepted this one"));
    this.token = token;
    this.#until = now + HANDOVER_MS;
    this.#settle = settle;
    this.#publishes.holdLater();
  }

  /**
   * Whether earlier publishes have been answered, or have timed out.
   * @param {number} now
   */
  isDue(now) {
    if (!this.isUnderWay || this.isAsked) return false;
    return !this.#publishes.hasEarlier || now >= this.#until;
  }

  /**
   * A connection begins with this token.
   * @param {string | null} token
   */
  opened(token) {
    this.isAsked = this.isAnyAsked = this.isUnderWay && token === this.token;
  }

  /** Sends the token on an open connection. Earlier publishes that have timed out fail. */
  asked() {
    this.#publishes.failEarlier();
    this.isAsked = this.isAnyAsked = true;
    return this.token;
  }

  /**
   * The node took a token.
   * @param {string | null} token which may be an earlier one
   */
  taken(token) {
    this.#wasServed = true;
    if (!this.isAsked || token !== this.token) return;
    this.isAnyAsked = false;
    this.end(null);
  }

  /** The connection is lost, and the next one uses the new token: unanswered publishes are not sent under it. */
  lost() {
    if (this.isUnderWay && this.#wasServed) this.#publishes.failEarlier();
    this.isAsked = false;
  }

  /**
   * The server took the token, or it will not.
   * @param {GodwitError | null} error
   */
  end(error) {
    const settle = this.#settle;
    this.#settle = null;
    this.isAsked = false;
    this.#publishes.releaseLater();
    settle?.(error);
  }
}
