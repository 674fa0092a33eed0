// A receiver's inbox: its items, counts and marks, kept current without a page's help.
//
// Owns the connection of one inbox: items and changes arrive from the node (or by long polls of dispatch, without a node), and
// missing ones are fetched from dispatch, which is authoritative. inbox/state.js decides what is known, and whether something is
// missing. Invariant: as long as something is missing, a fetch is under way or waits for its next try.

import { ClientClosed, ClientError } from "./errors.js";
import { DispatchRequests } from "./inbox/requests.js";
import { FILTERS, InboxState } from "./inbox/state.js";
import { callUser } from "./listening.js";
import { reconnectWaitMs } from "./session/backoff.js";
import { asyncDispose } from "./signal.js";

const PAGE_ITEMS = 50;
const FETCH_ITEMS = 200;
const ITEMS_MAX = 1_000;
const IDS_MAX = 1_000; // that one request marks
const CONFIRM_MS = 10_000;
const POLL_S = 30;
const AT_ONCE_MS = 1_000; // a long poll that brings nothing new lasts longer, unless what answers does not wait
const FIRST_WAIT_MS = 500;
const WAIT_MS_MAX = 30_000;

/** @typedef {import("./inbox/state.js").InboxFilter} InboxFilter */
/** @typedef {import("./inbox/state.js").InboxItem} InboxItem */
/** @typedef {import("./inbox/state.js").Verdict} Verdict */
/** @typedef {"seen" | "read" | "unread" | "archived" | "unarchived" | "confirmed"} Mark */
/** @typedef {Record<string, Record<string, boolean>>} Preferences by category and channel; false: not wanted. "*" is every category */

/**
 * @typedef {object} InboxOptions
 * @property {string} url of dispatch, such as "https://dispatch.example.com"
 * @property {string | (() => string | Promise<string>)} token of the receiver, or a function that gives one
 * @property {string} [subject] of the inbox on the node, "/$inbox/TENANT/RECEIVER"; default: dispatch names it
 * @property {InboxFilter} [filter] the list that `items` shows: "active" (the default), "unread" or "archived"
 * @property {(inbox: Inbox) => void} [onChange] called after items or counts changed
 * @property {(error: unknown, isRetried: boolean) => void} [onError] called when dispatch or the node failed, and whether a request that failed is sent again
 * @property {number} [itemsMax] how many items are kept (1,000) beside the pages that `loadOlder` loads; the oldest are forgotten, and can be loaded again
 * @property {number} [confirmMs] a received position is confirmed within this time (10,000); 0: never
 */

/** One inbox; `ready` resolves when the newest items are loaded, and rejects where dispatch refuses or the inbox is closed. */
export class Inbox {
  #client;
  #options;
  #requests;
  #state;
  /** @type {InboxFilter} */
  #filter;
  /** @type {import("./subscription.js").Subscription[]} */
  #subscriptions = [];
  /** @type {Set<() => void>} */
  #waiting = new Set();
  #isBehind = false;
  #isCatching = false;
  #isClosed = false;
  /** @type {unknown} what dispatch refused for good, until a fetch succeeds */
  #refusal = null;
  /** @type {Promise<void>} */
  #caughtUp = Promise.resolve();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #confirming;
  #confirmed = "";
  #confirmedAt = -Infinity;
  /** @type {() => void} */
  #isReady = () => {};
  /** @type {(error: unknown) => void} */
  #isRefused = () => {};

  /**
   * @param {import("./client.js").Client | null} client whose token may subscribe to the inbox; null: long polls of dispatch
   * @param {InboxOptions} options
   * @param {import("./transport/http/answer.js").Ask} ask
   */
  constructor(client, options, ask) {
    if (options.filter !== undefined) checkFilter(options.filter);
    this.#client = client;
    this.#options = options;
    this.#requests = new DispatchRequests(options.url, options.token, ask);
    this.#state = new InboxState(options.itemsMax ?? ITEMS_MAX);
    this.#filter = options.filter ?? "active";
    this.ready = /** @type {Promise<void>} */ (
      new Promise((resolve, reject) => {
        this.#isReady = resolve;
        this.#isRefused = reject;
      })
    );
    this.ready.catch(() => {}); // onError has it, too
    if (options.subject !== undefined) this.#subscribe(options.subject);
    this.#catchUp();
    if (client === null) this.ready.then(() => this.#poll()).catch(() => {});
  }

  /** The items of the shown list that are loaded, the newest first. */
  get items() {
    return this.#state.list(this.#filter);
  }

  get unread() {
    return this.#state.unread;
  }

  get unseen() {
    return this.#state.unseen;
  }

  /** Whether the shown list may have older items than those loaded. */
  get hasOlder() {
    return this.#state.before(this.#filter) !== null;
  }

  get filter() {
    return this.#filter;
  }

  /**
   * Shows another list, and loads its newest items if none were loaded.
   * @param {InboxFilter} filter
   */
  async show(filter) {
    checkFilter(filter);
    this.#filter = filter;
    this.#changed();
    if (this.#state.list(filter).length < PAGE_ITEMS) await this.loadOlder();
  }

  /** Loads a page of older items of the shown list. */
  async loadOlder() {
    await this.#loaded();
    const filter = this.#filter;
    const before = this.#state.before(filter);
    if (before !== null) await this.#loadPage(filter, before);
  }

  /**
   * Marks the named items, or all known ones if none are named.
   * @param {Mark} mark
   * @param {readonly InboxItem[]} [items]
   */
  async mark(mark, items) {
    await this.#loaded();
    if (items === undefined) {
      if (this.#state.known === null) await this.#catchUp(); // after a restart nothing is known for a moment
      if (this.#state.known === null) throw this.#refusal ?? new ClientClosed("the inbox");
      return this.#mark(mark, { up_to: String(this.#state.known) });
    }
    const ids = items.map((item) => item.id);
    for (let first = 0; first < ids.length; first += IDS_MAX) {
      await this.#mark(mark, { ids: ids.slice(first, first + IDS_MAX) });
    }
  }

  /** Marks everything that is known as read. */
  markAllRead() {
    return this.mark("read");
  }

  /** @param {readonly InboxItem[]} items */
  archive(items) {
    return this.mark("archived", items);
  }

  /** The receiver's preferences, by category and channel. @returns {Promise<Preferences>} */
  async readPreferences() {
    this.#check();
    return (await this.#requests.ask("GET", "/v1/inbox/preferences")).categories;
  }

  /** @param {Preferences} categories replaces the stored preferences */
  async writePreferences(categories) {
    this.#check();
    await this.#requests.ask("PUT", "/v1/inbox/preferences", { categories });
  }

  /** Ends the inbox; the client stays open. */
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#confirming);
    for (const subscription of this.#subscriptions) subscription.close();
    for (const end of this.#waiting) end();
    this.#requests.close();
    this.#isRefused(new ClientClosed("the inbox"));
  }

  async [asyncDispose]() {
    this.close();
  }

  /** Resolves when the newest items are loaded; rejects with what dispatch refused since. */
  async #loaded() {
    await this.ready;
    this.#check();
  }

  #check() {
    if (this.#refusal !== null && !this.#isClosed) throw this.#refusal;
  }

  /** @param {string} subject */
  #subscribe(subject) {
    if (this.#client === null || this.#isClosed || this.#subscriptions.length > 0) return;
    const missed = () => this.#catchUp();
    const error = (/** @type {unknown} */ reason) => this.#tell(reason);
    /** @param {(content: any) => Verdict} take @returns {import("./listening.js").Listener} */
    const listener = (take) => ({
      message: (message) => this.#follow(() => take(message.json())),
      gap: missed,
      dropped: missed,
      error,
    });
    this.#subscriptions = [
      this.#client.subscribe(subject, {}, listener((item) => this.#state.takeLive(item))),
      this.#client.subscribe(`${subject}/head`, {}, listener((head) => this.#state.takeHead(head))),
    ];
  }

  /** @param {() => Verdict} take the state's verdict on an event from the node */
  #follow(take) {
    if (this.#isClosed) return;
    let verdict;
    try {
      verdict = take();
    } catch (error) {
      this.#tell(error); // not an item: the store has the items
      verdict = /** @type {Verdict} */ ("behind");
    }
    if (verdict === "behind" || verdict === "restart") this.#catchUp();
    if (verdict !== "old" && verdict !== "behind") this.#changed();
  }

  /** Fetches until nothing is missing. At most one fetch is under way at a time. */
  #catchUp() {
    this.#isBehind = true;
    if (!this.#isCatching) {
      this.#isCatching = true;
      this.#caughtUp = this.#catchAll();
    }
    return this.#caughtUp;
  }

  async #catchAll() {
    for (let failures = 0; this.#isBehind && !this.#isClosed; ) {
      this.#isBehind = false;
      try {
        const before = this.#state.known;
        await this.#fetchMissing();
        this.#refusal = null;
        if (!this.#isBehind || this.#hasMoved(before)) failures = 0;
        else await this.#pause(failures++); // the answer reports that more is missing, but has no changes
      } catch (error) {
        if (this.#isClosed) break;
        this.#tell(error);
        if (!this.#requests.mayRetry(error)) {
          this.#refuse(error);
          break;
        }
        this.#isBehind = true;
        await this.#pause(failures++);
      }
    }
    this.#isCatching = false;
  }

  async #fetchMissing() {
    if (this.#state.known === null) {
      await this.#loadPage(this.#filter, /** @type {string} */ (this.#state.before(this.#filter)));
      return this.#isReady();
    }
    const page = await this.#requests.ask("GET", `/v1/inbox?after=${this.#state.known}&limit=${FETCH_ITEMS}`);
    this.#takeFetched(() => this.#state.takeChanges(page));
  }

  /**
   * @param {InboxFilter} filter
   * @param {string} before
   */
  async #loadPage(filter, before) {
    const page = await this.#requests.ask("GET", `/v1/inbox?before=${before}&limit=${PAGE_ITEMS}&state=${filter}`);
    this.#takeFetched(() => this.#state.takeOlder(page, filter, before));
    this.#subscribe(page.subject);
  }

  /** @param {() => Verdict} take */
  #takeFetched(take) {
    if (this.#isClosed) return;
    const verdict = take();
    if (verdict === "behind" || verdict === "restart") this.#catchUp();
    this.#changed();
  }

  /** Whether more is known than before. @param {import("./model.js").Position | null} before */
  #hasMoved(before) {
    const { known } = this.#state;
    return known !== null && (before === null || (known.epoch === before.epoch && known.sequence > before.sequence));
  }

  /** @param {unknown} error of dispatch, which would be the same for the same request */
  #refuse(error) {
    this.#refusal = error;
    this.#isRefused(error);
  }

  /**
   * @param {Mark} mark
   * @param {object} which
   */
  async #mark(mark, which) {
    const marked = await this.#requests.ask("POST", "/v1/inbox/marks", { mark, ...which });
    const verdicts = marked.items.map((/** @type {InboxItem} */ item) => this.#state.takeLive(item));
    this.#changed();
    if (verdicts.some((/** @type {Verdict} */ verdict) => verdict === "behind" || verdict === "restart")) await this.#catchUp();
  }

  /** Follows the inbox by long polls, one after the other. One that is answered at once and brings nothing counts as a failure. */
  async #poll() {
    for (let failures = 0; !this.#isClosed && this.#refusal === null; ) {
      try {
        if (this.#state.known === null) await this.#catchUp();
        const [before, askedAt] = [this.#state.known, performance.now()];
        if (before === null) continue; // closed or refused
        const path = `/v1/inbox?after=${before}&limit=${FETCH_ITEMS}&wait=${POLL_S}`;
        const page = await this.#requests.ask("GET", path, undefined, POLL_S * 1_000);
        this.#takeFetched(() => this.#state.takeChanges(page));
        if (this.#hasMoved(before) || performance.now() - askedAt >= AT_ONCE_MS) failures = 0;
        else await this.#pause(failures++);
      } catch (error) {
        if (this.#isClosed) return;
        this.#tell(error);
        if (!this.#requests.mayRetry(error)) return this.#refuse(error);
        await this.#pause(failures++);
      }
    }
  }

  /** @param {number} failures */
  async #pause(failures) {
    await /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const end = () => {
          clearTimeout(timer);
          this.#waiting.delete(end);
          resolve();
        };
        const timer = setTimeout(end, reconnectWaitMs(failures, Math.random(), FIRST_WAIT_MS, WAIT_MS_MAX));
        this.#waiting.add(end);
      })
    );
  }

  #changed() {
    if (this.#isClosed) return;
    this.#confirmSoon();
    callUser("onChange", () => this.#options.onChange?.(this), console);
  }

  /** Reports to dispatch what arrived here, after a random delay, so that not all receivers of one notification report at once. */
  #confirmSoon() {
    const { confirmMs = CONFIRM_MS } = this.#options;
    if (confirmMs === 0 || this.#confirming !== undefined || this.#state.known === null) return;
    if (String(this.#state.known) === this.#confirmed) return;
    const leastMs = Math.max(0, this.#confirmedAt + confirmMs - performance.now()); // at most once within the time
    this.#confirming = setTimeout(() => this.#confirm(), leastMs + (confirmMs - leastMs) * Math.random());
  }

  /** A failed report is sent again, with the state of that time; a refused position is not. */
  async #confirm() {
    for (let failures = 0; this.#state.known !== null && !this.#isClosed; ) {
      const upTo = String(this.#state.known);
      try {
        await this.#requests.ask("POST", "/v1/inbox/marks", { mark: "delivered", up_to: upTo });
        this.#confirmed = upTo;
        break;
      } catch (error) {
        this.#tell(error);
        if (!this.#requests.mayRetry(error)) this.#confirmed = upTo; // the next change is confirmed
        if (!this.#requests.mayRetry(error)) break;
        await this.#pause(failures++);
      }
    }
    this.#confirmedAt = performance.now();
    this.#confirming = undefined;
    if (!this.#isClosed) this.#confirmSoon();
  }

  /** @param {unknown} error */
  #tell(error) {
    if (!this.#isClosed) callUser("onError", () => this.#options.onError?.(error, this.#requests.mayRetry(error)), console);
  }
}

/** @param {string} filter */
function checkFilter(filter) {
  if (!FILTERS.has(filter)) throw new ClientError(`unknown filter ${JSON.stringify(filter)}: expected one of ${[...FILTERS].join(", ")}`);
}
