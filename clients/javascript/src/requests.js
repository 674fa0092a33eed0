// Requests: a publish that names a subject of this client for the reply.
//
// All replies to one client arrive through one wildcard subscription. It requests the last kept message of each of its subjects, so
// that a reply is not lost if the connection breaks before the subscription has received its first resume token.

import { NEVER_MS } from "./arguments.js";
import { ClientClosed, ReplyTimeout } from "./errors.js";

/** @typedef {import("./model.js").Message} Message */
/** @typedef {import("./subscription.js").Subscription} Subscription */
/** @typedef {{ resolve: (message: Message) => void, reject: (error: unknown) => void }} Waiter */

/** The requests that wait for a reply. */
export class Requests {
  #prefix;
  #count = 0;
  /** @type {Map<string, Waiter>} */
  #waiting = new Map();

  /** @param {string} random text that cannot be guessed */
  constructor(random) {
    this.#prefix = `/reply/${random}`;
  }

  get pattern() {
    return `${this.#prefix}/*`;
  }

  /** A fresh reply subject, what becomes of it, and how to wait no more. */
  expect() {
    const subject = `${this.#prefix}/${++this.#count}`;
    /** @type {Promise<Message>} */
    const reply = new Promise((resolve, reject) => {
      this.#waiting.set(subject, { resolve, reject });
    });
    return { subject, reply, forget: () => this.#waiting.delete(subject) };
  }

  /**
   * Publish a request and wait for the first reply; rejects with ReplyTimeout.
   * @param {{ publish: (subject: string, content: unknown, options: object) => Promise<unknown> }} client
   * @param {string} subject
   * @param {unknown} content
   * @param {number} timeoutMs
   * @returns {Promise<Message>}
   */
  async ask(client, subject, content, timeoutMs) {
    const { subject: replyTo, reply, forget } = this.expect();
    const giving = new AbortController();
    const isEndless = timeoutMs >= NEVER_MS;
    const error = new ReplyTimeout(subject, timeoutMs);
    const timer = isEndless ? undefined : setTimeout(() => giving.abort(error), timeoutMs);
    const late = new Promise((_, reject) => {
      giving.signal.addEventListener("abort", () => reject(error), { once: true });
    });
    late.catch(() => {}); // raced below, unless the publish was refused before
    reply.catch(() => {});
    try {
      await client.publish(subject, content, { replyTo, retain: false, signal: giving.signal });
      return /** @type {Message} */ (await Promise.race([reply, late]));
    } catch (failure) {
      throw giving.signal.aborted ? error : failure; // browsers of 2021 do not hand on why
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  /**
   * Deliver replies until the subscription ends; then the requests that still wait are rejected with its error.
   * @param {Subscription} replies
   */
  async listen(replies) {
    try {
      for await (const message of replies) {
        this.#waiting.get(message.subject)?.resolve(message);
        this.#waiting.delete(message.subject);
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#fail(new ClientClosed());
  }

  /** @param {unknown} error */
  #fail(error) {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
