// One link from its opening to its end: frames go to the session, its commands to the link, and timers run.
//
// While a reader's queue is full nothing is read. If the link cannot stop, or after 100 ms if another subscription,
// watch, request or publish could continue, that subscription is paused: it is unsubscribed, and subscribed again from its
// position later.

import { checkToken } from "./arguments.js";
import { after } from "./signal.js";
import { ClientError, FrameInvalid, Unauthorized } from "./errors.js";
import { newEncoding } from "./codec/encodings.js";
import { framesOf } from "./session/batches.js";
import { shownAddress } from "./session/servers.js";

/** @typedef {import("./session/session.js").Session} Session */
/** @typedef {import("./transport/transport.js").Link} Link */
/** @typedef {import("./transport/transport.js").LinkEnd} LinkEnd */
/** @typedef {LinkEnd & { fault?: string | null }} Loss `fault`: what was wrong with the frame that broke it, a sentence */
/** @typedef {import("./codec/encodings.js").Encoding} Encoding */
/** @typedef {import("./transport_choice.js").TransportOption} TransportOption */
/** @typedef {Pick<Console, "info" | "warn" | "error">} Log */

/**
 * @typedef {object} Means what a connection needs from outside
 * @property {() => number} now
 * @property {() => Promise<string | null>} token
 * @property {Log} log
 */

const GOOD_ORDER = 1000; // the close code
const UNREAD_MS = 100; // a queue that stays full this long is paused if another subscription could continue
const WARN_AGAIN_MS = 60_000;
const TOKEN_MS = 10_000; // for a token function to answer
const TOKEN_AGAIN_MS = 1_000; // after it was asked; doubles with each failure
const TOKEN_AGAIN_MS_MAX = 60_000;

/** Carries a session over one link at a time; `wake` and `took` are how the user's side stirs it. */
export class Connection {
  #session;
  #means;
  /** @type {Link | null} */
  #link = null;
  #isOpen = false;
  #leftFor = ""; // why this side ended the link
  #stopWaiting = () => {}; // for a token
  #isBlocked = false; // the link wants no more for now
  #isFlushDue = false;
  #warnAt = -Infinity; // no warning of unread subscriptions before
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #unreadTimer;
  #tokenFailures = 0; // since the last token
  #isAsking = false; // for a token
  #tokenAt = 0; // not asked for again before
  /** @type {Encoding} */
  #encoding = newEncoding("json");
  /** @type {(end: LinkEnd) => void} */
  #settle = () => {};
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {Session} session
   * @param {Means} means
   */
  constructor(session, means) {
    this.#session = session;
    this.#means = means;
  }

  /** The session may have something to send, or nothing more to do. */
  wake() {
    this.#stir();
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    queueMicrotask(() => {
      this.#isFlushDue = false;
      if (this.#session.isOver) this.leave("");
      else this.#guard(() => this.#flush());
    });
  }

  now() {
    return this.#means.now();
  }

  /** A reader took from its queue. */
  took() {
    this.#stir();
  }

  /**
   * End the link in good order, if there is one.
   * @param {string} reason
   */
  leave(reason) {
    this.#leftFor = reason;
    this.#stopWaiting();
    if (this.#isOpen) this.#link?.close(GOOD_ORDER, reason);
    else this.#link?.abort();
  }

  /**
   * Open, carry, and end one link; always returns how it ended.
   * @param {string} url
   * @param {TransportOption} option
   * @param {() => boolean} isWanted whether it is still wanted once there is a token
   * @returns {Promise<Loss>}
   */
  async live(url, option, isWanted) {
    /** @type {string | null} */
    let token = null;
    let isLeft = false;
    try {
      // The token may wait for a person to log in; closing the client does not wait for it.
      const left = new Promise((resolve) => (this.#stopWaiting = () => resolve(null))).then(() => ((isLeft = true), null));
      await this.#tokenPause(left);
      if (!isLeft) token = await Promise.race([this.#askToken(), left]);
    } catch (error) {
      if (error instanceof Unauthorized) this.#session.close(error);
      this.#means.log.error("godwit: no token", error); // the user's own code
      return { code: null, reason: `no token: ${error}`, isUntried: true };
    }
    if (isLeft || !isWanted()) return { code: null, reason: "not wanted", isUntried: true };
    this.#leftFor = "";
    const end = await this.#carry(url, option, token);
    if (this.#leftFor && (end.code === null || end.code === GOOD_ORDER)) end.reason = this.#leftFor; // a socket reports only the peer's reason
    clearTimeout(this.#timer);
    clearTimeout(this.#unreadTimer);
    this.#link = null;
    this.#isOpen = this.#isBlocked = false;
    if (end.isWrongPort) this.#session.close(new ClientError(end.reason));
    return { ...end, fault: this.#faultOf(end) };
  }

  /** @param {LinkEnd} end */
  #faultOf({ reason, isTooLarge = false, isInvalid = false }) {
    if (isTooLarge) return `the server sent a frame of more than ${this.#session.settings.frameBytesMax} bytes (frameBytesMax)`;
    return isInvalid ? (this.#session.misread ?? `the server sent a frame that this client cannot read (${reason})`) : null;
  }

  /**
   * @param {string} url
   * @param {TransportOption} option
   * @param {string | null} token
   * @returns {Promise<LinkEnd>}
   */
  #carry(url, { name, open, encoding, connectTimeoutMs }, token) {
    const { now } = this.#means;
    const { frameBytesMax, streamTimeoutMs, pingIntervalMs, answerTimeoutMs } = this.#session.settings;
    const silenceMs = pingIntervalMs + answerTimeoutMs + streamTimeoutMs;
    this.#encoding = newEncoding(encoding);
    return new Promise((resolve) => {
      let isOver = false; // what still arrives while it closes does not belong to the next one
      /** @param {LinkEnd} end */
      const settle = (end) => {
        isOver = true;
        resolve(end);
      };
      this.#settle = settle;
      try {
        this.#link = open(url, { subprotocol: this.#encoding.subprotocol, frameBytesMax, streamTimeoutMs, pingIntervalMs, silenceMs }, {
          opened: () => {
            if (isOver) return;
            this.#isOpen = true;
            this.#session.transport = name;
            this.#session.opened(now(), token);
            this.#guard(() => this.#flush());
            this.#watchClock();
          },
          frame: (frame) => isOver || this.#guard(() => this.#take(frame)),
          drained: () => {
            if (isOver) return;
            this.#isBlocked = false;
            this.#guard(() => this.#flush());
          },
          closed: ({ reason, ...end }) => {
            settle({ ...end, reason: this.#isOpen ? reason : `cannot connect to ${shownAddress(url)}: ${reason}` });
          },
        });
        this.#timer = after(connectTimeoutMs, () => this.#giveUp(`cannot connect to ${shownAddress(url)}: no answer`));
      } catch (error) {
        settle({ code: null, reason: `cannot connect to ${shownAddress(url)}: ${error}` });
      }
    });
  }

  /**
   * An internal error of the client ends the connection with a message, and never propagates into an event handler of the user.
   * @param {() => void} step
   */
  #guard(step) {
    try {
      step();
    } catch (error) {
      if (!(error instanceof FrameInvalid)) this.#means.log.error("godwit: internal error in the client", error);
      this.#link?.close(1002, String(error));
      this.#settle({ code: null, reason: String(error), isInvalid: true });
    }
  }

  /** @param {string | Uint8Array} frame */
  #take(frame) {
    const session = this.#session;
    if (this.#link === null || session.isOver) return;
    session.receive(this.#encoding.decode(frame), this.#means.now());
    if (session.isOver) this.leave("");
    if (session.misread !== null) return this.#misread(session.misread);
    if (session.hasCommands) this.#flush();
    if (session.subscriptions.behind().size > 0) this.#waitForReaders();
  }

  /** @param {string} reason each publish that may have been in the frame gets its own answer next */
  #misread(reason) {
    const isInvalid = !this.#session.publishes.sendAlone();
    this.#link?.close(GOOD_ORDER, "");
    this.#settle({ code: null, reason, isInvalid });
  }

  #waitForReaders() {
    const session = this.#session;
    const link = this.#link;
    if (link?.pause) {
      link.pause();
      session.liveness.hold(this.#means.now(), true);
      this.#watchUnread();
      return;
    }
    this.#pauseUnread();
    this.#flush();
  }

  #pauseUnread() {
    const now = this.#means.now();
    const behind = [...this.#session.subscriptions.behind()].filter(({ canPause }) => canPause || !this.#link?.pause);
    for (const subscribing of behind) this.#session.pause(subscribing, now);
    if (behind.length === 0 || now < this.#warnAt) return;
    this.#warnAt = now + WARN_AGAIN_MS;
    const names = behind.slice(0, 5).map(({ selector }) => selector);
    this.#means.log.warn(`godwit: paused subscriptions whose items are not read while others wait: ${names.join(", ")}`);
  }

  /** Pauses a subscription whose queue stays full, if another subscription or watch could continue. */
  #watchUnread() {
    clearTimeout(this.#unreadTimer);
    this.#unreadTimer = setTimeout(() => {
      const session = this.#session;
      if (!session.liveness.isHeld || this.#link === null) return;
      if (session.couldGoOn) this.#pauseUnread();
      this.#guard(() => this.#stir());
      if (session.liveness.isHeld) this.#watchUnread();
    }, UNREAD_MS);
  }

  /** Reads on, unless a queue is still full. */
  #stir() {
    const session = this.#session;
    if (!session.liveness.isHeld || this.#link === null) return;
    if (session.subscriptions.behind().size > 0) return;
    session.liveness.hold(this.#means.now(), false);
    this.#link.resume?.();
    this.#flush();
  }

  #flush() {
    if (this.#link === null || !this.#isOpen || this.#isBlocked || !this.#session.hasCommands) return;
    for (const frame of framesOf(this.#session, this.#encoding, this.#means.now())) {
      if (!this.#link.send(frame)) this.#isBlocked = true;
    }
  }

  #watchClock() {
    clearTimeout(this.#timer);
    this.#timer = after(this.#session.tickMs, () => this.#guard(() => this.#tick()));
  }

  #tick() {
    const session = this.#session;
    const reason = session.tick(this.#means.now());
    if (reason !== null) {
      if (session.phase === "draining") this.#link?.close(1000, "");
      this.#giveUp(reason);
      return;
    }
    if (session.wantsToken && this.#means.now() >= this.#tokenAt) this.#renew();
    this.#flush();
    this.#watchClock();
  }

  /** @param {string} reason */
  #giveUp(reason) {
    if (this.#session.phase !== "draining") this.#link?.abort(); // the peer does not answer a close
    this.#settle({ code: null, reason });
  }

  async #renew() {
    const { log } = this.#means;
    if (this.#isAsking) return;
    const link = this.#link;
    try {
      const fresh = await this.#askToken();
      if (fresh === null || this.#link !== link) return;
      this.#session.renew(fresh);
      this.#flush();
    } catch (error) {
      if (error instanceof Unauthorized) {
        this.#session.close(error);
        this.leave("");
      } else log.warn("godwit: could not renew the token, retrying", error); // the user's own code
    }
  }

  /** After a failure, until the function may be called again. */
  async #tokenPause(/** @type {Promise<null>} */ left) {
    const waitMs = this.#tokenFailures === 0 ? 0 : this.#tokenAt - this.#means.now();
    if (waitMs <= 0) return;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const over = new Promise((resolve) => (timer = setTimeout(resolve, waitMs)));
    await Promise.race([over, left]).finally(() => clearTimeout(timer)); // else Node would not end before
  }

  /** The token, within its time; a later answer is dropped. */
  async #askToken() {
    const { token, now } = this.#means;
    this.#isAsking = true;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new ClientError(`the token function did not answer within ${TOKEN_MS} ms`)), TOKEN_MS);
    });
    try {
      const given = /** @type {string | null} */ (await Promise.race([token(), late]));
      if (given !== null) checkToken(given);
      this.#tokenFailures = 0;
      return given;
    } catch (error) {
      this.#tokenFailures++;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#isAsking = false;
      const againMs = TOKEN_AGAIN_MS * 2 ** Math.max(this.#tokenFailures - 1, 0);
      this.#tokenAt = now() + Math.min(againMs, TOKEN_AGAIN_MS_MAX);
    }
  }
}
