// A receiver's inbox: its items, counts and marks, kept current without a page's help.
//
// Owns what is known of one inbox. Items and changes come over the node; what is missing is fetched from dispatch, which is
// authoritative. Invariant: `items` has every item at or after the oldest that was loaded, each once, in its latest state.

import { ClientError } from "./errors.js";
import { Position } from "./model.js";

const PAGE_ITEMS = 50;
const FETCH_ITEMS = 200;
const NEWEST = "0.999999999999999999";

/**
 * @typedef {object} InboxItem
 * @property {string} at its position; a change gives it a new one
 * @property {string} id of its notification
 * @property {number} time when it came, since 1970
 * @property {string[]} flags "seen", "read", "archived", "confirmed", "recalled"
 * @property {any} content
 * @property {number} unread of the whole inbox, after this change
 * @property {number} unseen
 */

/** @typedef {"delivered" | "seen" | "read" | "unread" | "archived" | "unarchived" | "confirmed"} Mark */

/**
 * @typedef {object} InboxOptions
 * @property {string} url of dispatch, such as "https://dispatch.example.com"
 * @property {string} subject of the inbox on the node: "/$inbox/TENANT/RECEIVER"
 * @property {string | (() => string | Promise<string>)} token of the receiver, or a function that gives one
 * @property {(inbox: Inbox) => void} [onChange] called after items or counts changed
 * @property {(error: unknown) => void} [onError] called when dispatch cannot be asked; the next change tries again
 */

/** One inbox over a client; `ready` resolves when the newest items are loaded. */
export class Inbox {
  /** @type {Map<string, InboxItem>} */
  #items = new Map();
  #options;
  #ask;
  /** @type {Position | null} */
  #known = null;
  /** @type {string | null} */
  #oldest = null;
  #work;
  #subscriptions;
  #isClosed = false;
  unread = 0;
  unseen = 0;
  /** Whether older items than those loaded may exist. */
  hasOlder = true;

  /**
   * @param {import("./client.js").Client} client whose token may subscribe to the inbox
   * @param {InboxOptions} options
   * @param {import("./transport/http/answer.js").Ask} ask
   */
  constructor(client, options, ask) {
    this.#options = options;
    this.#ask = ask;
    this.#work = this.#load();
    this.ready = this.#work;
    this.ready.catch((error) => options.onError?.(error));
    this.#subscriptions = [
      client.subscribe(options.subject, (message) => this.#enqueue(() => this.#take(message.json()))),
      client.subscribe(`${options.subject}/head`, (message) => this.#enqueue(() => this.#takeHead(message.json()))),
    ];
  }

  /** The items that are loaded, the newest first. */
  get items() {
    const sequence = (/** @type {InboxItem} */ item) => Position.parse(item.at).sequence;
    return [...this.#items.values()].sort((a, b) => (sequence(a) < sequence(b) ? 1 : -1));
  }

  /** Loads a page of older items. */
  loadOlder() {
    return this.#enqueue(() => this.#loadPage());
  }

  /**
   * Marks items, or all that are known where none are named.
   * @param {Mark} mark
   * @param {readonly InboxItem[]} [items]
   */
  mark(mark, items) {
    return this.#enqueue(async () => {
      const which = items === undefined ? { up_to: String(this.#known) } : { items: items.map((item) => item.at) };
      await this.#request("POST", "/v1/inbox/marks", { mark, ...which });
      await this.#catchUp();
    });
  }

  /** Lets go of the inbox; the client stays open. */
  close() {
    this.#isClosed = true;
    for (const subscription of this.#subscriptions) subscription.close();
  }

  /**
   * One after the other, so that no fetch overtakes another.
   * @param {() => Promise<void>} work
   */
  #enqueue(work) {
    const done = this.#work.catch(() => {}).then(() => (this.#isClosed ? undefined : work()));
    this.#work = done;
    done.catch((error) => this.#options.onError?.(error));
    return done;
  }

  async #load() {
    await this.#loadPage();
    this.#changed();
  }

  async #loadPage() {
    const page = await this.#request("GET", `/v1/inbox?before=${this.#oldest ?? NEWEST}&limit=${PAGE_ITEMS}`);
    for (const item of page.items) {
      if (!this.#items.has(item.id)) this.#items.set(item.id, item);
      this.#oldest = item.at;
    }
    this.hasOlder = !page.complete;
    if (this.#known === null) this.#takeCounts(page);
    this.#changed();
  }

  /** @param {InboxItem} item */
  async #take(item) {
    const at = Position.parse(item.at);
    const known = this.#known;
    if (known === null || known.epoch !== at.epoch) return this.#restart();
    if (at.sequence <= known.sequence) return;
    if (at.sequence !== known.sequence + 1n) return this.#catchUp();
    this.#items.set(item.id, item);
    this.#known = at;
    this.unread = item.unread;
    this.unseen = item.unseen;
    this.#changed();
  }

  /** @param {{ head: string, unread: number, unseen: number }} head */
  async #takeHead(head) {
    const at = Position.parse(head.head);
    const known = this.#known;
    if (known === null || known.epoch !== at.epoch) return this.#restart();
    if (at.sequence > known.sequence) await this.#catchUp();
  }

  /** Everything after what is known. A fetch is complete up to the head that it names. */
  async #catchUp() {
    for (let isComplete = false; !isComplete; ) {
      const page = await this.#request("GET", `/v1/inbox?after=${this.#known}&limit=${FETCH_ITEMS}`);
      if (this.#known !== null && Position.parse(page.head).epoch !== this.#known.epoch) return this.#restart();
      for (const item of page.items) this.#items.set(item.id, item);
      isComplete = page.complete;
      this.#takeCounts(isComplete ? page : { ...page, head: page.items.at(-1).at });
    }
    this.#changed();
  }

  /** Another epoch: the receiver was made anew, and nothing that was known holds. */
  async #restart() {
    this.#items.clear();
    this.#known = null;
    this.#oldest = null;
    await this.#loadPage();
  }

  /** @param {{ head: string, unread: number, unseen: number }} counts */
  #takeCounts(counts) {
    this.#known = Position.parse(counts.head);
    this.unread = counts.unread;
    this.unseen = counts.unseen;
  }

  #changed() {
    if (!this.#isClosed) this.#options.onChange?.(this);
  }

  /**
   * @param {"GET" | "POST"} method
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async #request(method, path, body) {
    const { token, url } = this.#options;
    const headers = { Authorization: `Bearer ${typeof token === "function" ? await token() : token}` };
    const request = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    const answer = await this.#ask(url.replace(/\/$/, "") + path, request);
    const told = await new Response(answer.body).json();
    if (answer.status !== 200) throw new ClientError(`dispatch refused ${path}: ${told.title} (${told.code}): ${told.detail}`);
    return told;
  }
}
