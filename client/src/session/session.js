// One client's side of the protocol, without I/O: what the server says and the time go in, commands come out.
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
import { Liveness } from "./liveness.js";
import { PublishQueue } from "./publishing.js";
import { Subscriptions } from "./subscriptions.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("../codec/command.js").Draft} Draft */
/** @typedef {import("../codec/push.js").Notice} Notice */
/** @typedef {import("../codec/push.js").Refusal} Refusal */
/** @typedef {import("../codec/push.js").Reply} Reply */
/** @typedef {import("../codec/push.js").Told} Told */
/** @typedef {import("./publishing.js").Settle} Settle */
/** @typedef {import("./settings.js").Settings} Settings */
/** @typedef {import("./subscribing.js").Subscribing} Subscribing */
/** @typedef {import("./watching.js").Watching} Watching */
/** @typedef {"away" | "connecting" | "live" | "draining" | "over"} Phase */

const CLIENT_NAME = "godwit-javascript/1";

/** Subscriptions, watches, publishes and the health of the connection that carries them. */
export class Session {
  /** @type {Phase} */
  phase = "away";
  /** @type {GodwitError | null} why it is over */
  error = null;
  /** @type {string | null} the server's name for the session */
  id = null;
  /** @type {string | null} and for itself */
  node = null;
  wantsToken = false; // the server asked for a new one
  /** @type {string | null} the transport's name, while there is a connection */
  transport = null;
  changed = () => {}; // called when the phase becomes live or over
  subscriptions = new Subscriptions();
  /** @type {Map<string, Watching>} */
  watches = new Map();
  #asking = new Asking();
  #canRenew;
  #now = 0;
  #openedAt = 0;
  /** @type {number | null} when a draining server wants this client gone */
  #leaveAt = null;

  /**
   * @param {Readonly<Settings>} settings
   * @param {boolean} [canRenew] there is a source of fresh tokens
   */
  constructor(settings, canRenew = false) {
    this.settings = settings;
    this.#canRenew = canRenew;
    const { publishQueueMax, publishQueueBytesMax, publishInFlightMax } = settings;
    this.publishes = new PublishQueue(publishQueueMax, publishQueueBytesMax, publishInFlightMax);
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
    if (this.subscriptions.remove(subscribing)) this.setAside(subscribing);
    subscribing.end(null);
  }

  /**
   * Its reader is behind, and the connection is to be read on: go on without it.
   * @param {Subscribing} subscribing
   */
  setAside(subscribing) {
    if (subscribing.setAside() && this.isWelcome) {
      this.#asking.tell({ verb: "unsubscribe", id: this.#asking.takeId(), selector: subscribing.selector });
    }
  }

  /**
   * Its reader has caught up.
   * @param {Subscribing} subscribing
   */
  takeUp(subscribing) {
    if (!subscribing.isAside) return;
    subscribing.isAside = false;
    this.#ask(subscribing);
  }

  /** @param {Watching} watching */
  watch(watching) {
    this.#checkOpen();
    this.watches.set(watching.selector, watching);
    this.#askWatch(watching);
  }

  /** @param {Watching} watching */
  unwatch(watching) {
    if (this.watches.get(watching.selector) === watching) {
      this.watches.delete(watching.selector);
      if (this.isWelcome) this.#asking.tell({ verb: "unwatch", id: this.#asking.takeId(), selector: watching.selector });
    }
    watching.end(null);
  }

  /**
   * @param {Draft} draft
   * @param {Settle} settle
   */
  publish(draft, settle) {
    this.#checkOpen();
    return this.publishes.add(draft, settle);
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
   * Nothing more: every wait ends, with `error` or as closed.
   * @param {GodwitError | null} [error]
   */
  close(error = null) {
    if (this.phase === "over") return;
    this.phase = "over";
    this.error = error ?? new ClientClosed();
    this.#asking.clear();
    this.publishes.close(this.error);
    this.subscriptions.end(error);
    for (const watching of this.watches.values()) watching.end(error);
    this.changed();
  }

  // What the connection brings

  /**
   * A connection stands; the first command introduces this client.
   * @param {number} now
   * @param {string | null} token
   */
  opened(now, token) {
    this.phase = "connecting";
    this.#now = this.#openedAt = now;
    this.#leaveAt = null;
    this.liveness.hold(now, false);
    this.#connect(token);
  }

  /**
   * What one frame brought; messages first: this runs once per message.
   * @param {Told[]} told
   * @param {number} now
   */
  receive(told, now) {
    this.#now = now;
    this.liveness.received(now);
    for (const push of told) {
      if (push.type === "message") this.subscriptions.message(push);
      else this.#told(push);
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
    for (const watching of this.watches.values()) watching.tick(now);
    for (const subscribing of this.subscriptions.toAskAgain(now)) this.#ask(subscribing);
    const health = this.liveness.judge(now);
    if (health === "dead") return "the server does not answer";
    if (health === "ping due") {
      this.liveness.pinged(now);
      this.#asking.ask(
        (id) => ({ verb: "ping", id }),
        () => {}, // any answer will do: something was received
      );
    }
    return null;
  }

  /**
   * The connection is gone, or could not be made; `code` is the close code, if one was received.
   * @param {number} now
   * @param {number | null} [code]
   * @param {string} [reason]
   */
  lost(now, code = null, reason = "") {
    if (this.phase === "over") return;
    this.#now = now;
    const isFresh = code === Code.TokenExpired && this.#canRenew && this.isWelcome; // it slept past its token's end
    if (code !== null && code >= 4000 && code <= 4099 && !isFresh) {
      this.close(new SessionClosed(code, wordsOf(code, reason)));
      return;
    }
    let wish = wishOf(reason);
    if (wish === null && this.#leaveAt !== null) wish = Math.max(0, this.#leaveAt - now);
    this.backoff.lost(this.isWelcome ? now - this.#openedAt : null, wish);
    this.phase = "away";
    this.transport = null;
    this.#leaveAt = null;
    this.#asking.clear();
    this.publishes.lost(code === Code.MessageTooBig);
    this.subscriptions.lost(wordsOf(code, reason));
  }

  // What goes out

  /** What is to be sent now, in order. */
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
    const shortest = Math.min(this.liveness.shortestMs, this.settings.connectTimeoutMs);
    return Math.max(1, Math.min(1_000, Math.floor(shortest / 4)));
  }

  /** A watch, or a subscription with room, waits for what only reading on can bring. */
  get hasOthers() {
    return this.watches.size > 0 || this.subscriptions.hasOneWithRoom;
  }

  /** Somebody waits for something that only reading on can bring. */
  get awaitsAnswers() {
    return this.#asking.isAwaiting || this.publishes.size > 0;
  }

  // Inside

  /** @param {Exclude<Told, import("../model.js").Message>} push */
  #told(push) {
    switch (push.type) {
      case "marked":
      case "gap":
      case "dropped":
      case "ended":
        this.subscriptions.told(push, this.node, this.#now);
        break;
      case "reply":
      case "refusal":
        this.#answered(push);
        break;
      case "interest":
        for (const watching of this.watches.values()) watching.told(push);
        break;
      case "notice":
        this.#noticed(push);
    }
  }

  /** @param {Reply | Refusal} answer */
  #answered(answer) {
    if (answer.id === null || this.#asking.answer(answer)) return;
    if (answer.type === "reply") {
      this.publishes.answer(answer.id, new Published(answer.position, answer.isDuplicate, answer.ack));
    } else if (answer.code === Code.NodeDraining) {
      this.publishes.putBack(answer.id);
      this.#drain(null);
    } else {
      this.publishes.answer(answer.id, refused(answer));
    }
  }

  /** @param {Notice} notice */
  #noticed(notice) {
    if (notice.name === "token_expiring") this.wantsToken = true;
    else if (notice.name === "draining") this.#drain(notice.reconnectAfterMs);
  }

  /**
   * The server takes no more: hold what is not sent yet, and leave when it said, unless it closes before.
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
      (id) => ({ verb: "connect", id, token, client: CLIENT_NAME }),
      (answer) => this.#connected(answer),
    );
  }

  /** @param {Reply | Refusal} answer */
  #connected(answer) {
    if (answer.type === "refusal") {
      if (!answer.retry) this.close(new SessionClosed(answer.code, `${answer.codeName}: ${answer.reason}`));
      return; // else the connection is given up by the time limit, and tried again
    }
    if (answer.session !== null) {
      this.id = answer.session;
      this.node = answer.node;
    }
    if (answer.pingIntervalMs !== null) this.liveness.pingIntervalMs = Math.max(1, answer.pingIntervalMs);
    if (this.phase !== "connecting") return;
    this.phase = "live";
    this.changed();
    for (const watching of this.watches.values()) this.#askWatch(watching);
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

  /** @param {Watching} watching */
  #askWatch(watching) {
    if (watching.isEnded || !this.isWelcome) return;
    this.#asking.ask(
      (id) => watching.ask(id),
      (answer) => {
        if (answer.type === "reply") {
          watching.asked(this.#now);
        } else if (this.watches.get(watching.selector) === watching) {
          this.watches.delete(watching.selector);
          watching.end(refused(answer));
        }
      },
    );
  }

  #checkOpen() {
    if (this.error !== null) throw this.error;
  }
}

/** @param {Refusal} refusal */
function refused({ code, codeName, reason, retry }) {
  return new CommandRefused(code, codeName, reason, retry);
}
