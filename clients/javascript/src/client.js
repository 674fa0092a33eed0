// The client: start reading here. It creates the parts and passes calls and events between them.
//
// The session (pure) implements the protocol, the connection owns the link, and the platform has what differs between browsers
// and Node. This file only joins them.

/// <reference lib="esnext.disposable" preserve="true" />

import { checkClient, checkListener, checkPublish, checkRequest, checkSubscribe, checkTime, checkToken, standOf } from "./arguments.js";
import { Background } from "./background.js";
import { asyncDispose, Signal } from "./signal.js";
import { Connection } from "./connection.js";
import { contentOf } from "./content.js";
import { ClientError, GodwitError, SubscriptionExists } from "./errors.js";
import { callUser, listen, listenToInterest, reasonOf } from "./listening.js";
import { Message, Published } from "./model.js";
import { SavedPositions } from "./position_store/saved_positions.js";
import { Requests } from "./requests.js";
import { Losses, wordsOf } from "./session/backoff.js";
import { Budget, ItemQueue } from "./session/item_queue.js";
import { Numbering } from "./session/numbering.js";
import { ServerList } from "./session/servers.js";
import { Session } from "./session/session.js";
import { settingsOf } from "./session/settings.js";
import { PositionTracker } from "./session/position_tracker.js";
import { Subscribing } from "./session/subscribing.js";
import { Watching } from "./session/watching.js";
import { checkPattern, checkSubject, isPattern } from "./subject.js";
import { Subscription } from "./subscription.js";
import { Watch } from "./watch.js";
import { TransportChoice } from "./transport_choice.js";
import { Draft } from "./codec/command.js";
import { newEncoding } from "./codec/encodings.js";

/** @typedef {import("./connection.js").Log} Log */
/** @typedef {import("./listening.js").Listener} Listener */
/** @typedef {import("./model.js").Ack} Ack */
/** @typedef {import("./model.js").Interest} Interest */
/** @typedef {import("./model.js").Position} Position */
/** @typedef {import("./position_store/store.js").PositionStore} PositionStore */
/** @typedef {import("./platform/platform.js").Platform} Platform */
/** @typedef {import("./session/servers.js").Servers} Servers */
/** @typedef {import("./session/settings.js").Settings} Settings */
/** @typedef {import("./session/resume_point.js").ResumePoint} ResumePoint */
/** @typedef {import("./transport/transport.js").Transport} Transport */
/** @typedef {import("./transport_choice.js").TransportName} TransportName */
/** @typedef {import("./codec/encodings.js").EncodingName} EncodingName */

/**
 * @typedef {object} ClientOptions
 * @property {string | (() => string | Promise<string>)} [token] text, or a function that is called at each connect and when
 *   the server reports that the token expires soon
 * @property {EncodingName} [encoding] "json" (the default) or "binary"
 * @property {PositionStore} [positions] positions where subscriptions begin, and where their resume points are saved
 * @property {number | null} [pauseHiddenMs] disconnect when the page was hidden so long, and reconnect when it is
 *   visible; null, the default: stay connected
 * @property {"poll" | "stay"} [whenHidden] over HTTP/1.1 a hidden page polls every 5 s (the default), or keeps its connection
 * @property {Partial<Settings>} [settings]
 * @property {Log} [log] where gaps and lost connections are reported; the console by default
 * @property {TransportName | "auto" | Transport} [transport] what carries the frames: "websocket", "sse" or "poll" and nothing else;
 *   "auto", the default: the first of these that works; or one of your own
 * @property {(error: unknown) => unknown} [onSaveFailed] called when positions cannot be saved, because storage is full or blocked;
 *   once, until they can again
 * @property {(name: TransportName | "custom") => unknown} [onTransport] called when a server has answered, with what carries
 */

/**
 * @typedef {object} SubscribeOptions
 * @property {ResumePoint | Position | Readonly<Record<string, Position | string>> | ReadonlyMap<string, Position | string> | string} [after] continue after a resume point (or, for one subject,
 *   a position); without it a saved one is used, if there is one
 * @property {number} [last] begin with the last n kept messages of each subject
 * @property {boolean} [snapshot] false: live messages only
 * @property {"snapshot" | "oldest"} [onGap] where to continue when messages are gone
 * @property {number} [conflateMs] at most one merged message for each subject in this time
 */

/** @typedef {import("./arguments.js").PublishOptions} PublishOptions */

/** A connection to one of several servers. It connects at once, reconnects by itself, and ends with `close()`. */
export class Client {
  /** Why the last connection ended or failed. */
  loss = "";
  #servers;
  #platform;
  #log;
  #session;
  #connection;
  #transports;
  #savedPositions;
  #background;
  /** @type {Requests | null} */
  #requests = null;
  #budget;
  #changed = new Signal();
  #stirred = new Signal(); // stop waiting for the next try
  #isPaused = false;
  /** @type {Promise<void>} */
  #running;

  /**
   * @param {Servers} servers an address, or a list of addresses or [address, weight] pairs
   * @param {ClientOptions} options
   * @param {Platform} platform
   */
  constructor(servers, options, platform) {
    const { token = null } = checkClient(options);
    if (token !== null && typeof token !== "function") checkToken(token);
    this.#servers = new ServerList(servers);
    this.#platform = platform;
    this.#log = options.log ?? { info: () => {}, warn: console.warn, error: console.error };
    const encoding = options.encoding ?? "json";
    newEncoding(encoding); // an unknown one fails here
    const numbering = new Numbering(platform.randomText(16), options.transport === "websocket"); // others may come to HTTP
    this.#session = new Session(settingsOf(options.settings ?? {}), typeof token === "function", numbering);
    this.#budget = new Budget(this.#session.settings.itemsTotalBytesMax);
    this.#transports = new TransportChoice(options.transport ?? "auto", encoding, { ...platform, whenHidden: options.whenHidden }, this.#session.settings);
    this.#transports.check(this.#servers.urls);
    this.#session.changed = () => this.#stateChanged(options.onTransport);
    this.#connection = new Connection(this.#session, {
      now: platform.now,
      token: () => this.#session.handover.tokenOr(token),
      log: this.#log,
    });
    this.#savedPositions = options.positions
      ? new SavedPositions(options.positions, this.#session.settings.positionsSaveMs, this.#log, options.onSaveFailed)
      : null;
    const { pauseHiddenMs = null } = options;
    if (pauseHiddenMs !== null) checkTime("pauseHiddenMs", pauseHiddenMs);
    this.#background = new Background(this, pauseHiddenMs, {
      doubt: () => this.#doubt(),
      save: () => this.#savedPositions?.save(),
      watchPage: platform.watchPage,
    });
    this.#running = this.#run();
  }

  get isConnected() {
    return this.#session.isWelcome;
  }

  /** The transport now: "websocket", "sse", "poll" or "custom"; null while it is not connected. */
  get transport() {
    return this.isConnected ? this.#session.transport : null;
  }

  /** Wait until a server has accepted the connection. Optional: race it with a timeout to fail early. */
  async connected() {
    while (!this.isConnected) {
      if (this.#session.error !== null) throw this.#session.error;
      await this.#changed.wait();
    }
  }

  /**
   * Replace the token, for this connection and later ones. Resolves when the server accepts it; rejects if the server refuses it,
   * which ends the client, or if another call replaces it meanwhile. A token of another identity gets a new connection, on which
   * subscriptions resume. Earlier publishes have 10 seconds for their answers; then they reject with AnswerLost and are never sent under the new token.
   * @param {string} token
   * @returns {Promise<void>}
   */
  async setToken(token) {
    checkToken(token);
    return new Promise((resolve, reject) => {
      this.#session.handOver(token, this.#platform.now(), (error) => (error === null ? resolve() : reject(error)));
      this.#connection.wake();
      if (this.#session.phase === "away") this.#stirred.notify();
    });
  }

  /**
   * Subscribe to a subject or a pattern, now or as soon as the client is connected. Iterate the result, or give a listener: a
   * function for messages, or an object of functions.
   * @param {string} selector
   * @param {SubscribeOptions | Listener["message"]} [options]
   * @param {Listener | Listener["message"]} [listener]
   * @returns {Subscription}
   */
  subscribe(selector, options = {}, listener = undefined) {
    if (typeof options === "function") return this.subscribe(selector, {}, options);
    checkPattern(selector);
    checkSubscribe(options);
    checkListener(listener);
    if (this.#session.subscriptions.has(selector)) throw new SubscriptionExists(selector);
    const { after, ...choice } = options;
    const from = standOf(selector, after);
    const subscription = this.#subscribe(selector, choice, from ?? this.#savedPositions?.resumePoint(selector));
    this.#savedPositions?.keep(subscription);
    if (listener) listen(subscription, listener, this.#log);
    return subscription;
  }

  /**
   * Publish, and wait for the server's acknowledgement: bytes as bytes, a string as text, anything else as JSON.
   * While disconnected it waits in a queue. After a lost connection it is repeated with the same number or idempotency key, so that
   * it is one message. `settings.onUnknownPublish` decides what happens if the server cannot know whether it is a repeat. With
   * `once: false` it has neither number nor key, and rejects with AnswerLost if the connection is lost.
   * @param {string} subject
   * @param {unknown} content
   * @param {PublishOptions} [options]
   * @returns {Promise<Published>}
   */
  async publish(subject, content, options = {}) {
    checkSubject(subject);
    checkPublish(options);
    const { once = true, signal, ...fields } = options;
    if (signal?.aborted) throw reasonOf(signal);
    const isNumbered = once && (fields.key ?? null) === null && (fields.guaranteed ?? true);
    const key = fields.key ?? (once && !isNumbered ? this.#session.numbering.key() : null);
    const { kind, written } = contentOf(content);
    return this.#send(new Draft(subject, kind, written, { ...fields, key }), isNumbered, signal);
  }

  /**
   * Remove a subject's snapshot: subscribers receive a message with `isRemoval`. Rejects with SnapshotMissing if the subject has none.
   * @param {string} subject
   */
  async removeSnapshot(subject) {
    checkSubject(subject);
    return this.#send(new Draft(subject, "text", "", { isRemoval: true }), true);
  }

  /** @param {Draft} draft @param {boolean} isNumbered @param {AbortSignal} [signal] */
  #send(draft, isNumbered, signal = undefined) {
    return /** @type {Promise<Published>} */ (new Promise((resolve, reject) => {
      const pending = this.#session.publish(draft, (outcome) => {
        signal?.removeEventListener("abort", giveUp);
        if (outcome instanceof Published) resolve(outcome);
        else reject(outcome);
      }, isNumbered);
      const giveUp = () => {
        this.#session.publishes.giveUp(pending);
        reject(reasonOf(signal));
      };
      signal?.addEventListener("abort", giveUp, { once: true });
      this.#connection.wake();
    }));
  }

  /**
   * Publish a request and wait for the first reply. Rejects with ReplyTimeout if none arrives.
   * @param {string} subject
   * @param {unknown} content
   * @param {{ timeoutMs?: number }} [options]
   * @returns {Promise<Message>}
   */
  async request(subject, content, options = {}) {
    checkRequest(options);
    checkSubject(subject);
    this.#requests ??= this.#listenForReplies();
    return this.#requests.ask(this, subject, content, options.timeoutMs ?? 10_000);
  }

  /**
   * Publish a reply to a request that was received as a message.
   * @param {Message} request
   * @param {unknown} content
   */
  async reply(request, content) {
    if (!(request instanceof Message)) throw new TypeError("request is not a Message that was received");
    if (request.replyTo === null) throw new TypeError(`${request.subject} asks for no reply: it has no replyTo`);
    return this.publish(request.replyTo, content);
  }

  /**
   * Watch whether a subject, or the subjects of a pattern, have subscribers.
   * @param {string} selector
   * @param {(interest: Interest) => unknown} [listener]
   * @returns {Watch}
   */
  watch(selector, listener = undefined) {
    checkPattern(selector);
    if (listener !== undefined && typeof listener !== "function") throw new TypeError("listener is not a function");
    if (this.#session.watches.has(selector)) throw new SubscriptionExists(selector);
    const watching = new Watching(selector);
    const watch = new Watch(this.#session, this.#connection, watching);
    this.#session.watch(watching);
    this.#connection.wake();
    if (listener) listenToInterest(watch, listener, this.#log);
    return watch;
  }

  /** Disconnect until `resume()`. Subscriptions keep their positions; publishes wait in their queue. */
  pause() {
    if (this.#isPaused || this.#session.isOver) return;
    this.#isPaused = true;
    this.#connection.leave("paused");
    this.#stirred.notify();
  }

  /** Reconnect at once. Each subscription resumes at its position. */
  resume() {
    this.#isPaused = false;
    this.#stirred.notify();
  }

  get isPaused() {
    return this.#isPaused;
  }

  /** Close the client. Unanswered publishes reject with ClientClosed; iterations end after the messages already received. */
  async close() {
    this.#background.stop();
    this.#session.close();
    this.#connection.wake();
    this.#stirred.notify();
    this.#savedPositions?.giveUp();
    await this.#running;
    await this.#savedPositions?.close();
  }

  async [asyncDispose]() {
    await this.close();
  }

  /** An internal error ends the client and rejects every waiting call; it is always logged. */
  async #run() {
    try {
      await this.#savedPositions?.open((error) => (this.#session.close(error), this.#connection.wake()));
      await this.#stayConnected();
    } catch (error) {
      if (error instanceof GodwitError) return this.#session.close(error); // of the store of positions
      this.#log.error("godwit: internal error in the client", error);
      this.#session.close(new ClientError(`internal error in the client: ${error}`));
    } finally {
      this.#background.stop(); // nothing keeps a program running any more, also where the server refused for good
      this.#savedPositions?.stop();
    }
  }

  async #stayConnected() {
    const session = this.#session;
    const transports = this.#transports;
    const losses = new Losses(this.#log);
    let url = "";
    await Promise.resolve(); // the code that creates the client finishes first
    while (!session.isOver) {
      if (this.#isPaused) {
        await this.#stirred.wait();
        continue;
      }
      if (!transports.isNextAtOnce) url = this.#servers.choose(Math.random());
      const loss = await this.#connection.live(url, transports.choose(url), () => !session.isOver && !this.#isPaused);
      const wasWelcome = session.isWelcome;
      if (wasWelcome) this.#servers.succeeded();
      transports.ended(wasWelcome, loss);
      this.loss = wordsOf(loss.code, loss.reason);
      session.lost(this.#platform.now(), loss.code, loss.reason, loss.fault);
      if (session.isOver || this.#isPaused || transports.isNextAtOnce) continue;
      const waitMs = session.backoff.waitMs(Math.random());
      losses.tell(url, this.loss, wasWelcome, waitMs);
      await this.#stirred.waitAtMost(waitMs);
    }
  }

  /** @param {ClientOptions["onTransport"]} tell */
  #stateChanged(tell) {
    this.#changed.notify();
    if (!this.#session.isWelcome) return;
    this.#transports.worked(() => this.#connection.leave("a WebSocket is possible again"));
    const name = /** @type {TransportName} */ (this.#session.transport);
    this.#log.info(`godwit: connected (${name})`);
    callUser("onTransport", () => tell?.(name), this.#log);
  }

  /** The page was asleep or the network was away: ask for a sign of life now, or try again now. */
  #doubt() {
    if (this.#session.isWelcome) this.#session.liveness.doubt();
    else if (!this.#session.backoff.isTold) this.#stirred.notify();
  }

  /**
   * @param {string} selector
   * @param {Omit<SubscribeOptions, "after">} choice
   * @param {ResumePoint | undefined} resumePoint
   */
  #subscribe(selector, choice, resumePoint) {
    const { itemsMax, itemsBytesMax, subjectsMax } = this.#session.settings;
    const newPositionTracker = () => new PositionTracker(selector, isPattern(selector), subjectsMax, resumePoint);
    const queue = new ItemQueue(itemsMax, newPositionTracker(), itemsBytesMax, this.#budget);
    const core = new Subscribing(selector, choice, newPositionTracker(), queue);
    const subscription = new Subscription(this.#session, this.#connection, core, this.#log);
    this.#session.subscribe(core);
    this.#connection.wake();
    return subscription;
  }

  #listenForReplies() {
    const requests = new Requests(this.#platform.randomText(16));
    const replies = this.#subscribe(requests.pattern, { last: 1 }, undefined);
    requests.listen(replies).then(() => {
      this.#requests = null; // refused or ended: a later request subscribes again
    });
    return requests;
  }
}
