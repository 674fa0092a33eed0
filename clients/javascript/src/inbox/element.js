// <godwit-inbox>: a bell with the count of unread items, and the inbox below it.
//
//     <script type="module" src="/godwit-client/src/inbox/element.js"></script>
//     <godwit-inbox node="wss://live.example.com" dispatch="https://dispatch.example.com"></godwit-inbox>
//     <script type="module">
//       document.querySelector("godwit-inbox").token = async () => (await fetch("/inbox-token")).text();
//     </script>
//
// Owns the element's parts and their behaviour; the class Inbox owns the items. Loading this module defines the element.

import { Client, DispatchRefused, Inbox } from "../browser.js";
import { bell, build } from "./element/build.js";
import { Rows } from "./element/rows.js";
import { STYLE } from "./element/style.js";
import { Wishes } from "./element/wishes.js";
import { WORDS } from "./element/words.js";

/** @typedef {import("./state.js").InboxItem} InboxItem */
/** @typedef {import("./state.js").InboxFilter} InboxFilter */

const LISTS = /** @type {const} */ (["active", "unread", "archived"]);
const UPGRADED = ["token", "words"];
const COUNT_MAX = 99; // more are shown as 99+

/** The element. Events: `godwit-open` and `godwit-action` (cancelable, with `item` in `detail`), `godwit-change`, `godwit-error`. */
export class GodwitInbox extends HTMLElement {
  static observedAttributes = ["node", "dispatch", "token"];
  /** @type {Inbox | null} */
  #inbox = null;
  /** @type {Client | null} */
  #client = null;
  /** @type {string | (() => string | Promise<string>) | null} */
  #token = null;
  #words = WORDS;
  /** @type {Record<string, any>} */
  #parts = {};
  /** @type {AbortController | null} */
  #listening = null;
  #isScheduled = false;
  /** @type {Inbox | null} the inbox whose shown items are being marked as seen */
  #seeing = null;
  #isShown = false; // an inbox, to the page that listens for changes
  #opened = ""; // with which attributes

  /** The receiver's token, or a function that gives one. */
  get token() {
    return this.#token ?? this.getAttribute("token");
  }

  set token(token) {
    this.#token = token;
    this.#close();
    this.#schedule();
  }

  /** The page's own words, instead of the English ones. @param {Partial<typeof WORDS>} words */
  set words(words) {
    this.#words = { ...WORDS, ...words };
    if (this.#parts.bell) this.#build();
  }

  /** The inbox, for what a page wants to do itself; null before there is a token. */
  get inbox() {
    return this.#inbox;
  }

  get isOpen() {
    return this.#parts.panel !== undefined && !this.#parts.panel.hidden;
  }

  connectedCallback() {
    for (const name of UPGRADED) {
      if (!Object.prototype.hasOwnProperty.call(this, name)) continue;
      const given = /** @type {any} */ (this)[name]; // set before the element was defined: it hides the property of the class
      delete (/** @type {any} */ (this)[name]);
      /** @type {any} */ (this)[name] = given;
    }
    if (!this.shadowRoot) this.attachShadow({ mode: "open" });
    this.#build();
    this.#schedule();
  }

  disconnectedCallback() {
    this.#listening?.abort();
    queueMicrotask(() => this.isConnected || this.#close()); // one that moves within the page stays
  }

  attributeChangedCallback() {
    this.#schedule();
  }

  /** Shows or hides the panel. */
  toggle(isOpen = !this.isOpen) {
    const { panel, bell: button } = this.#parts;
    panel.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) {
      this.#place(panel);
      panel.focus();
      this.#see();
    } else if (this.shadowRoot?.activeElement) button.focus();
  }

  /** Below the bell, to the side that has enough space; otherwise over the width of the page. @param {HTMLElement} panel */
  #place(panel) {
    panel.classList.remove("start", "wide");
    const width = this.ownerDocument.documentElement.clientWidth;
    if (panel.getBoundingClientRect().left >= 0) return;
    panel.classList.add("start");
    if (panel.getBoundingClientRect().right > width) panel.classList.replace("start", "wide");
  }

  /** Once for all attributes that are set together. */
  #schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#open();
    });
  }

  #open() {
    const [node, url, token] = [this.getAttribute("node"), this.getAttribute("dispatch"), this.token];
    const wanted = JSON.stringify([node, url, typeof token === "function" ? "function" : token]);
    if (!this.isConnected || (this.#inbox !== null && wanted === this.#opened)) return;
    this.#close();
    this.#opened = wanted;
    this.#hideWishes();
    if (!url || !token) return this.#show();
    try {
      this.#client = node ? new Client(node, { token }) : null;
    } catch (error) {
      this.#show();
      return this.#fail(error, this.#words.refused);
    }
    const inbox = new Inbox(this.#client, {
      url,
      token,
      onChange: () => inbox === this.#inbox && this.#show(),
      onError: (error, isRetried) =>
        inbox === this.#inbox && this.#fail(error, error instanceof DispatchRefused && !isRetried ? this.#words.refused : this.#words.failed),
    });
    this.#inbox = inbox;
    this.#show();
  }

  #close() {
    this.#inbox?.close();
    this.#client?.close();
    this.#inbox = this.#client = null;
  }

  /** Preferences belong to one receiver: they are not shown to the next. */
  #hideWishes() {
    this.#parts.wishes.clear();
    this.#toggleWishes(false);
  }

  #build() {
    const [page, words] = [this.ownerDocument, this.#words];
    const button = (/** @type {string} */ text, /** @type {() => unknown} */ click, /** @type {object} */ more = {}) =>
      build(page, "button", { type: "button", click, ...more }, text);
    const rows = new Rows(page, words, {
      open: (item, event) => this.#openItem(item, event),
      act: (item, action, event) => this.#act(item, action, event),
      mark: (mark, item) => this.#try(() => this.#inbox?.mark(mark, [item])),
    });
    const wishes = new Wishes(page, words, (preferences) => this.#try(() => this.#inbox?.writePreferences(preferences)));
    const count = build(page, "span", { class: "count", part: "count", hidden: true });
    const lists = LISTS.map((list) => button(words[list], () => this.#try(() => this.#inbox?.show(list)), { "data-list": list }));
    const preferences = button(words.preferences, () => this.#showWishes(), { "aria-expanded": "false" });
    const older = button(words.older, () => this.#try(() => this.#inbox?.loadOlder()), { class: "older", part: "older" });
    const note = build(page, "p", { class: "note", role: "status", part: "note" });
    const head = build(page, "div", { class: "head" }, build(page, "h2", { id: "title" }, words.title), button(words.markAllRead, () => this.#try(() => this.#inbox?.markAllRead())), preferences);
    const tabs = build(page, "div", { class: "lists", role: "group", "aria-labelledby": "title" }, ...lists);
    const scroll = build(page, "div", { class: "scroll" }, rows.root, older, wishes.root);
    const panel = build(page, "div", { class: "panel", part: "panel", role: "dialog", "aria-labelledby": "title", tabindex: "-1", hidden: true, keydown: (/** @type {KeyboardEvent} */ event) => rows.enter(event) }, head, tabs, note, scroll);
    const opener = build(page, "button", { type: "button", class: "bell", part: "bell", "aria-haspopup": "dialog", "aria-expanded": "false", click: () => this.toggle() }, bell(page), count);
    wishes.root.hidden = true;
    this.#parts = { rows, wishes, count, lists, preferences, older, note, tabs, panel, bell: opener };
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    const shadow = /** @type {ShadowRoot} */ (this.shadowRoot);
    shadow.adoptedStyleSheets = [sheet];
    shadow.replaceChildren(opener, panel);
    this.#listen(page);
    this.#show();
  }

  /** Escape, and a click elsewhere, close the panel. @param {Document} page */
  #listen(page) {
    this.#listening?.abort();
    this.#listening = new AbortController();
    const { signal } = this.#listening;
    this.addEventListener("keydown", (event) => event.key === "Escape" && this.isOpen && this.toggle(false), { signal });
    page.addEventListener("click", (event) => this.isOpen && !event.composedPath().includes(this) && this.toggle(false), { signal });
  }

  #show() {
    const { rows, count, lists, older, note, bell: button, wishes } = this.#parts;
    const inbox = this.#inbox;
    const { unread = 0, unseen = 0, items = [], filter = "active" } = inbox ?? {};
    count.hidden = unread === 0;
    count.textContent = unread > COUNT_MAX ? `${COUNT_MAX}+` : String(unread);
    button.setAttribute("aria-label", this.#words.bell(unread));
    for (const list of lists) list.setAttribute("aria-pressed", String(list.dataset.list === filter));
    rows.show(items);
    const areWishes = !wishes.root.hidden;
    rows.root.hidden = areWishes || items.length === 0;
    older.hidden = areWishes || inbox === null || items.length === 0 || !inbox.hasOlder;
    const isEmpty = items.length === 0 && !areWishes;
    this.#say(note, isEmpty ? (inbox === null || !inbox.hasOlder ? this.#words.empty : this.#words.loading) : "");
    this.#see();
    if (inbox || this.#isShown) this.dispatchEvent(new CustomEvent("godwit-change", { detail: { unread, unseen } }));
    this.#isShown = inbox !== null;
  }

  /** The items that an open panel shows have been seen; others, and those behind the preferences, have not. */
  #see() {
    const inbox = this.#inbox;
    if (inbox === null || inbox.unseen === 0 || this.#seeing === inbox || !this.isOpen || !this.#parts.wishes.root.hidden) return;
    const items = inbox.items.filter((item) => !item.flags.includes("seen"));
    if (items.length === 0) return;
    this.#seeing = inbox;
    const asked = new Set(items.map((item) => item.id));
    this.#try(() => inbox.mark("seen", items)).then((isMarked) => {
      if (this.#seeing !== inbox) return; // another receiver's inbox is shown since
      this.#seeing = null;
      const others = this.#inbox?.items.some((item) => !asked.has(item.id) && !item.flags.includes("seen")); // arrived meanwhile
      if (isMarked && others) this.#see();
    });
  }

  /**
   * @param {InboxItem} item
   * @param {Event} event
   */
  #openItem(item, event) {
    const opening = new CustomEvent("godwit-open", { detail: { item }, cancelable: true, bubbles: true, composed: true });
    if (!this.dispatchEvent(opening)) event.preventDefault();
    if (!item.flags.includes("read")) this.#try(() => this.#inbox?.mark("read", [item]));
  }

  /**
   * @param {InboxItem} item
   * @param {any} action one whose id is "confirm" confirms the item
   * @param {Event} event
   */
  #act(item, action, event) {
    const acting = new CustomEvent("godwit-action", { detail: { item, action }, cancelable: true, bubbles: true, composed: true });
    if (!this.dispatchEvent(acting)) event.preventDefault();
    this.#try(async () => {
      if (action.id === "confirm") await this.#inbox?.mark("confirmed", [item]);
      if (!item.flags.includes("read")) await this.#inbox?.mark("read", [item]);
    });
  }

  #showWishes() {
    const { wishes } = this.#parts;
    const inbox = this.#inbox;
    if (inbox === null || !wishes.root.hidden) {
      this.#toggleWishes(false);
      return this.#show();
    }
    this.#try(async () => {
      await wishes.saving;
      const preferences = await inbox.readPreferences();
      if (inbox !== this.#inbox) return;
      wishes.show(preferences, this.#categories, this.#channels);
      this.#toggleWishes(true);
      this.#show();
    });
  }

  #toggleWishes(/** @type {boolean} */ areShown) {
    const { wishes, preferences, tabs } = this.#parts;
    wishes.root.hidden = !areShown;
    tabs.hidden = areShown;
    preferences.textContent = areShown ? this.#words.back : this.#words.preferences;
    preferences.setAttribute("aria-expanded", String(areShown));
  }

  /** The attribute `categories`, such as "news=News and offers, orders=Orders". */
  get #categories() {
    const parts = (this.getAttribute("categories") ?? "").split(",").map((part) => part.trim()).filter(Boolean);
    return new Map(parts.map((part) => /** @type {[string, string]} */ (part.includes("=") ? part.split("=", 2) : [part, part])));
  }

  /** The attribute `channels`, such as "inbox email". */
  get #channels() {
    return (this.getAttribute("channels") ?? "inbox email webhook").split(/\s+/).filter(Boolean);
  }

  /** Shows when something that the user asked for failed. Resolves with whether it worked. @param {() => Promise<unknown> | undefined} work */
  async #try(work) {
    const inbox = this.#inbox;
    try {
      await work();
      return true;
    } catch (error) {
      if (inbox === this.#inbox && inbox !== null) this.#fail(error, this.#words.notMarked);
      return false;
    }
  }

  /**
   * @param {unknown} error
   * @param {string} words
   */
  #fail(error, words) {
    this.#say(this.#parts.note, words);
    this.dispatchEvent(new CustomEvent("godwit-error", { detail: { error } }));
  }

  /**
   * A screen reader announces only what changed.
   * @param {HTMLElement} note
   * @param {string} words
   */
  #say(note, words) {
    if (note.textContent !== words) note.textContent = words;
    note.hidden = words === "";
  }
}

if (!customElements.get("godwit-inbox")) customElements.define("godwit-inbox", GodwitInbox);
