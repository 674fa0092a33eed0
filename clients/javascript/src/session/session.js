// One client's side of the protocol, without I/O: the inputs are the server's pushes and the time, the outputs are commands.
//
//     away ──opened──▶ connecting ──connected──▶ live ──notice draining──▶ draining
//       ▲                  └────────────lost────────┴───────────┘
//       └── lost(code, reason)          closed, or a code that forbids coming back ──▶ over
//
// The shell calls `opened`, `receive`, `tick`, `lost`, and after each of these and after each wish of the user sends what
// `commands()` gives. Times are milliseconds of any clock that never runs backwards.

import { Code } from "../codes.js";
import { ClientClosed, CommandRefused, SessionClosed } from "../errors.js";
import { Published } from "../model.js";
import { Asking } from "./asking.js";
import { Backoff, WISH_MS_MAX, wishOf, wordsOf } from "./backoff.js";
import { Handover } from "./handover.js";
import { Liveness } from "./liveness.js";
import { Numbering } from "./numbering.js";
import { PublishQueue } from "./publishing.js";
import { Faults } from "./faults.js";
import { SentFrames } from "./sent_frames.js";
import { Subscriptions } from "./subscriptions.js";
import { Watches } from "./watches.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("../codec/command.js").Draft} Draft */
/** @typedef {import("../codec/push.js").Notice} Notice */
/** @typedef {import("../codec/push.js").Refusal} Refusal */
/** @typedef {import("../codec/push.js").Reply} Reply */
/** @typedef {import("../codec/push.js").Received} Received */
/** @typedef {import("./publishing.js").Settle} Settle */
/** @typedef {import("./settings.js").Settings} Settings */
/** @typedef {import("./subscribing.js").Subscribing} Subscribing */
/** @typedef {import("./watching.js").Watching} Watching */
/** @typedef {"away" | "connecting" | "live" | "draining" | "over"} Phase */

const CLIENT_NAME = "godwit-javascript/1";
const RESUME_LOOK_MS = 100; // how often to look whether a paused subscription may resume

/** Subscriptions, watches, publishes and the health of the connection that carries them. */
export class Session {
  /** @type {Phase} */
  phase = "away";
  /** @type {GodwitError | null} why it ended */
  error = null;
  /** @type {string | null} the server's name for the session */
  id = null;
  /** @type {string | null} and for itself */
  node = null;
  wantsToken = false; // the server asked for a new one
  misread = /** @type {string | null} */ (null); // why the server could not read a frame of this connection
  /** @type {string | null} the transport's name, while there is a connection */
  transport = null;
  changed = () => {}; // called when the phase becomes live or over
  frames = new SentFrames();
  subscriptions = new Subscriptions();
  #asking = new Asking();
  watches = new Watches(this.#asking);
  #canRenew;
  #now = 0;
  #openedAt = 0;
  #faults = new Faults();
  /** @type {number | null} when a draining server wants this client gone */
  #leaveAt = null;

  /**
   * @param {Readonly<Settings>} settings
   * @param {boolean} [canRenew] there is a source of fresh tokens @param {Numbering} [numbering]
   */
  constructor(settings, canRenew = false, numbering = new Numbering()) {
    this.settings = settings;
    this.#canRenew = canRenew;
    this.numbering = numbering;
    this.publishes = new PublishQueue(settings, this.numbering);
    this.handover = new Handover(this.publishes);
    this.liveness = new Liveness(settings.pingIntervalMs, settings.answerTimeoutMs);
    this.backoff = new Backoff(settings.reconnectFirstMs, settings.reconnectMaxMs);
  }

  // What the user wants

  /** @param {Subscribing} subscribing */
  subscribe(subscribing) {
    this.#checkOpen();
    this.subscriptions.add(subscribing);
    this.#ask(subscribing);
  }

  /** @param {Subscribing} subscribing */
  unsubscribe(subscribing) {
    if (this.subscriptions.remove(subscribing)) this.#leave(subscribing.pauseNow(), subscribing.selector);
    subscribing.end(null);
  }

  /**
   * Pause a subscription whose reader is behind, so that the connection can be read.
   * @param {Subscribing} subscribing
   * @param {number} now
   */
  pause(subscribing, now) {
    this.#leave(subscribing.pause(now), subscribing.selector);
    this.subscriptions.paused.add(subscribing);
  }

  /**
   * Its reader has caught up; where it was paused a moment ago, the clock takes it up.
   * @param {Subscribing} subscribing
   * @param {number} now
   */
  takeUp(subscribing, now) {
    if (!subscribing.mayResume(now)) return;
    if (this.couldGoOn) subscribing.resumedAt = now; // else it is the only one, of a link that cannot stop: as fast as it can
    this.#ask(subscribing);
  }

  /** @param {Watching} watching */
  watch(watching) {
    this.#checkOpen();
    this.watches.add(watching);
    if (this.isWelcome) this.watches.ask(watching);
  }

  /** @param {Watching} watching */
  unwatch(watching) {
    this.watches.remove(watching, this.isWelcome);
  }

  /**
   * @param {Draft} draft
   * @param {Settle} settle
   * @param {boolean} [isNumbered]
   */
  publish(draft, settle, isNumbered = false) {
    this.#checkOpen();
    return this.publishes.add(draft, settle, isNumbered);
  }

  /**
   * Give the server a new token on this connection.
   * @param {string} token
   */
  renew(token) {
    this.wantsToken = false;
    if (this.isWelcome) this.#connect(token);
  }

  /**
   * Another token, for this connection and later ones; `settle` is called when the server has taken it or will not.
   * @param {string} token
   * @param {number} now
   * @param {import("./handover.js").Settled} settle
   */
  handOver(token, now, settle) {
    this.#checkOpen();
    this.#canRenew = false;
    this.handover.begin(token, now, settle);
    if (this.phase !== "away") this.#moveHandover();
    else this.handover.lost(); // waiting publishes may have been sent under the old token
  }

  /**
   * Nothing more: every wait ends, with `error` or as closed.
   * @param {GodwitError | null} [error]
   */
  close(error = null) {
    if (this.phase === "over") return;
    this.phase = "over";
    this.error = error ?? new ClientClosed();
    this.#asking.clear();
    this.publishes.close(this.error);
    this.handover.end(this.error);
    this.subscriptions.end(error);
    this.watches.end(error);
    this.changed();
  }

  // What the connection brings

  /**
   * The connection is open; the first command introduces this client.
   * @param {number} now
   * @param {string | null} token
   */
  opened(now, token) {
    this.phase = "connecting";
    this.#now = this.#openedAt = now;
    this.#leaveAt = null;
    this.frames.clear();
    this.liveness.hold(now, false);
    this.handover.opened(token);
    this.#connect(token);
  }

  /**
   * Handle what one frame held; messages first: this runs once per message.
   * @param {Received[]} pushes
   * @param {number} now
   */
  receive(pushes, now) {
    this.#now = now;
    this.liveness.received(now);
    for (const push of pushes) {
      if (push.type === "message") this.subscriptions.message(push);
      else this.#handle(push);
    }
  }

  /**
   * Look at the clock, at least once a second; returns why the connection is to be given up, if it is.
   * @param {number} now
   * @returns {string | null}
   */
  tick(now) {
    this.#now = now;
    if (this.phase === "connecting" && now - this.#openedAt >= this.settings.connectTimeoutMs) {
      return "the server did not answer connect";
    }
    const isDue = this.#leaveAt !== null && now >= this.#leaveAt;
    if (this.phase === "draining" && isDue && this.publishes.inFlight === 0) return "the server is draining";
    if (!this.isWelcome) return null;
    this.#moveHandover();
    for (const subscribing of this.subscriptions.toAskAgain(now)) this.#ask(subscribing);
    for (const subscribing of this.subscriptions.toResume(now)) this.takeUp(subscribing, now);
    const health = this.liveness.judge(now);
    if (health === "dead") return "the server does not answer";
    if (health === "ping due") {
      this.liveness.pinged(now);
      this.#asking.ping();
    }
    return null;
  }

  /**
   * The connection is gone, or could not be made; `code` is the close code, if one was received.
   * @param {number} now
   * @param {number | null} [code]
   * @param {string} [reason]
   * @param {string | null} [fault] the frame that broke it, in words
   */
  lost(now, code = null, reason = "", fault = null) {
    if (this.phase === "over") return;
    this.#now = now;
    const refused = this.frames.lost(code, this.publishes, now);
    const end = refused ?? this.#faults.lost(fault, this.isWelcome ? now - this.#openedAt : null);
    if (end !== null) return this.close(end);
    const isFresh = code === Code.TokenExpired && this.#canRenew && this.isWelcome; // it slept past its token's end
    const isOther = code === Code.TokenInvalid && this.handover.isAnyAsked && this.isWelcome; // of another identity
    if (code !== null && code >= 4000 && code <= 4099 && !isFresh && !isOther) {
      return this.close(new SessionClosed(code, wordsOf(code, reason)));
    }
    const wish = this.#faults.isFirstMisread(this.misread !== null, this.isWelcome) || isOther || this.frames.wasRefused ? 0 : (wishOf(reason) ?? (this.#leaveAt === null ? null : Math.max(0, this.#leaveAt - now)));
    this.backoff.lost(this.frames.wasRefused ? Infinity : this.isWelcome ? now - this.#openedAt : null, wish);
    this.phase = "away";
    this.transport = this.#leaveAt = this.misread = null;
    this.#asking.clear();
    this.handover.lost();
    this.publishes.lost();
    this.subscriptions.lost(wordsOf(code, reason));
  }

  // What goes out

  /** The commands to send now, in order. */
  commands() {
    const out = this.#asking.takeOut();
    return this.phase === "live" ? [...out, ...this.publishes.send(this.#asking.takeId)] : out;
  }

  get hasCommands() {
    return this.#asking.hasOut || (this.phase === "live" && this.publishes.canSend);
  }

  get isOver() {
    return this.phase === "over";
  }

  /** The server has answered on this connection. */
  get isWelcome() {
    return this.phase === "live" || this.phase === "draining";
  }

  /** How often to look at the clock: often enough for the shortest time that is watched. */
  get tickMs() {
    const look = this.subscriptions.paused.size > 0 ? RESUME_LOOK_MS : 1_000;
    return Math.max(1, Math.min(look, Math.floor(Math.min(this.liveness.shortestMs, this.settings.connectTimeoutMs) / 4)));
  }

  /** Whether a watch, a subscription with space or a request waits for something that only further reading can bring. */
  get couldGoOn() {
    return this.#asking.isAwaiting || this.publishes.size > 0 || this.watches.size > 0 || this.subscriptions.hasOneWithRoom;
  }

  // Inside

  /**
   * @param {boolean} isTold
   * @param {string} selector
   */
  #leave(isTold, selector) {
    if (isTold && this.isWelcome) this.#asking.tell({ verb: "unsubscribe", id: this.#asking.takeId(), selector });
  }

  /** @param {Exclude<Received, import("../model.js").Message>} push */
  #handle(push) {
    switch (push.type) {
      default:
        this.subscriptions.handle(push, this.node, this.#now);
        break;
      case "reply":
      case "refusal":
        this.#answered(push);
        break;
      case "interest":
      case "interest_state":
        this.watches.handle(push);
        break;
      case "notice":
        this.#noticed(push);
    }
  }

  /** @param {Reply | Refusal} answer */
  #answered(answer) {
    if (answer.id === null && answer.type === "refusal") {
      this.misread = `the server cannot read a frame of this client (${answer.codeName}: ${answer.reason})`;
    }
    if (answer.id === null || this.#asking.answer(answer)) return;
    if (answer.type === "reply") {
      this.publishes.answer(answer.id, new Published(answer.position, answer.isDuplicate, answer.ack));
    } else if (answer.code === Code.NodeDraining) {
      this.publishes.putBack(answer.id);
      this.#drain(null);
    } else {
      this.publishes.refuse(answer.id, CommandRefused.of(answer));
    }
    this.#moveHandover();
  }

  #moveHandover() {
    if (this.phase !== "live" || !this.handover.isDue(this.#now)) return;
    this.#connect(this.handover.asked());
  }

  /** @param {Notice} notice */
  #noticed(notice) {
    if (notice.name === "token_expiring") this.wantsToken = true;
    else if (notice.name === "draining") this.#drain(notice.reconnectAfterMs);
  }

  /**
   * The server drains: hold what is not sent yet, and disconnect after its delay, unless it closes before.
   * @param {number | null} reconnectAfterMs
   */
  #drain(reconnectAfterMs) {
    if (this.phase === "live") this.phase = "draining";
    if (reconnectAfterMs !== null && this.phase === "draining") {
      this.#leaveAt = this.#now + Math.min(reconnectAfterMs, WISH_MS_MAX);
    }
  }

  /** @param {string | null} token */
  #connect(token) {
    this.#asking.ask(
      (id) => this.numbering.connect(id, token, CLIENT_NAME, this.settings.frameBytesMax),
      (answer) => this.#connected(answer, token),
    );
  }

  /** @param {Reply | Refusal} answer @param {string | null} token */
  #connected(answer, token) {
    if (answer.type === "refusal") {
      if (!answer.retry) this.close(new SessionClosed(answer.code, `${answer.codeName}: ${answer.reason}`));
      return; // else the connection is given up by the time limit, and tried again
    }
    this.handover.taken(token);
    if (answer.session !== null) [this.id, this.node] = [answer.session, answer.node];
    this.numbering.connected(answer.hasPublisher);
    if (answer.pingIntervalMs !== null) this.liveness.pingIntervalMs = Math.max(1, answer.pingIntervalMs);
    if (this.phase !== "connecting") return;
    this.phase = "live";
    this.changed();
    this.watches.askAll();
    for (const subscribing of this.subscriptions.toAsk()) this.#ask(subscribing);
  }

  /** @param {Subscribing} subscribing */
  #ask(subscribing) {
    if (subscribing.state === "ended" || !this.isWelcome) return;
    this.#asking.ask(
      (id) => subscribing.ask(id, this.node),
      (answer) => {
        if (answer.type === "reply") subscribing.reply(answer, this.transport);
        else if (subscribing.isAskedBy(answer.id)) this.subscriptions.refuse(subscribing, answer, this.#now);
      },
    );
  }

  #checkOpen() {
    if (this.error !== null) throw this.error;
  }
}
