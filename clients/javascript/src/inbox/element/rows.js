// The rows of the list: one element an item, kept where it is as long as the item does not change, so that focus stays.

import { build, linkOf } from "./build.js";

/** @typedef {import("../state.js").InboxItem} InboxItem */
/** @typedef {import("./words.js").Words} Words */

/**
 * @typedef {object} RowEvents requests of a row
 * @property {(item: InboxItem, event: Event) => void} open
 * @property {(item: InboxItem, action: any, event: Event) => void} act
 * @property {(mark: import("../../inbox.js").Mark, item: InboxItem) => void} mark
 */

export class Rows {
  #page;
  #words;
  #events;
  /** @type {Map<string, { at: string, row: HTMLElement }>} */
  #rows = new Map();

  /**
   * @param {Document} page
   * @param {Words} words
   * @param {RowEvents} events
   */
  constructor(page, words, events) {
    this.#page = page;
    this.#words = words;
    this.#events = events;
    this.root = build(page, "ul", { part: "list", role: "list", keydown: (event) => this.#move(event) });
  }

  /** @param {readonly InboxItem[]} items */
  show(items) {
    const focused = /** @type {ShadowRoot} */ (this.root.getRootNode()).activeElement;
    const row = /** @type {HTMLElement | null} */ (focused?.closest(".row") ?? null);
    const [id, role] = [row?.dataset.id, /** @type {HTMLElement | null} */ (focused)?.dataset.role];
    const place = [...this.root.children].indexOf(row);
    const shown = new Set(items.map((item) => item.id));
    for (const [gone, { row: old }] of this.#rows) {
      if (shown.has(gone)) continue;
      old.remove();
      this.#rows.delete(gone);
    }
    /** @type {Element | null} */
    let next = this.root.firstElementChild;
    for (const item of items) {
      const old = this.#rows.get(item.id)?.row;
      const element = this.#row(item);
      if (next !== null && next === old) next = element;
      if (next !== null && element === next) next = next.nextElementSibling;
      else this.root.insertBefore(element, next);
    }
    if (id !== undefined && !focused?.isConnected) this.#refocus(id, role, place);
  }

  /** The row had the focus and was replaced, or is gone: the one in its place has it. */
  #refocus(/** @type {string} */ id, /** @type {string | undefined} */ role, /** @type {number} */ place) {
    const same = this.#rows.get(id)?.row.querySelector(`[data-role="${CSS.escape(role ?? "")}"]`);
    const near = this.root.children[Math.min(place, this.root.children.length - 1)]?.querySelector(".main");
    (same ?? near)?.focus();
  }

  /** @param {InboxItem} item */
  #row(item) {
    const known = this.#rows.get(item.id);
    if (known?.at === item.at) return known.row;
    const row = this.#build(item);
    known?.row.replaceWith(row);
    this.#rows.set(item.id, { at: item.at, row });
    return row;
  }

  /** @param {InboxItem} item */
  #build(item) {
    const { title, body, url, actions = [] } = item.content ?? {};
    const [page, words, events] = [this.#page, this.#words, this.#events];
    const isUnread = !item.flags.includes("read");
    const isArchived = item.flags.includes("archived");
    const link = linkOf(url, this.root.baseURI);
    const open = (/** @type {Event} */ event) => events.open(item, event);
    const mark = (/** @type {import("../../inbox.js").Mark} */ kind) => () => events.mark(kind, item);
    const time = new Date(item.time);
    return build(
      page,
      "li",
      { class: isUnread ? "row unread" : "row", part: isUnread ? "item unread" : "item", "data-id": item.id },
      build(
        page,
        link === null ? "button" : "a",
        { class: "main", "data-role": "main", ...(link === null ? { type: "button" } : { href: link, rel: "noopener" }), click: open },
        build(page, "span", { class: "title" }, String(title ?? body ?? words.untitled)),
        isUnread ? build(page, "span", { class: "title" }, ` (${words.isUnread})`) : null,
      ),
      build(page, "time", { datetime: time.toISOString() }, time.toLocaleString([], { dateStyle: "short", timeStyle: "short" })),
      build(
        page,
        "div",
        { class: "more" },
        title && body ? build(page, "p", { class: "body" }, String(body)) : null,
        ...actions.map((/** @type {any} */ action) => this.#action(item, action)),
        build(page, "button", { type: "button", class: "quiet", "data-role": "read", click: mark(isUnread ? "read" : "unread") }, isUnread ? words.markRead : words.markUnread),
        build(page, "button", { type: "button", class: "quiet", "data-role": isArchived ? "restore" : "archive", click: mark(isArchived ? "unarchived" : "archived") }, isArchived ? words.restore : words.archive),
      ),
    );
  }

  /**
   * @param {InboxItem} item
   * @param {any} action
   */
  #action(item, action) {
    const link = linkOf(action?.url, this.root.baseURI);
    const target = link === null ? { type: "button" } : { href: link, rel: "noopener" };
    const act = (/** @type {Event} */ event) => this.#events.act(item, action, event);
    const shown = { class: "action", part: "action", "data-role": `action ${action?.id}`, click: act };
    return build(this.#page, link === null ? "button" : "a", { ...target, ...shown }, String(action?.label ?? ""));
  }

  /** From the panel, where the focus is when it opens, arrow keys, Home and End lead into the list. @param {KeyboardEvent} event */
  enter(event) {
    if (event.target !== event.currentTarget || this.root.hidden) return;
    const { firstElementChild: first, lastElementChild: last } = this.root;
    const main = { ArrowDown: first, Home: first, ArrowUp: last, End: last }[event.key]?.querySelector(".main");
    if (!main) return;
    /** @type {HTMLElement} */ (main).focus();
    event.preventDefault();
  }

  /** Arrow keys go from row to row, Home and End to the ends, Delete archives; it does not restore. @param {KeyboardEvent} event */
  #move(event) {
    const row = /** @type {HTMLElement} */ (event.target).closest(".row");
    if (row === null) return;
    const rows = [...this.root.children];
    const place = rows.indexOf(row);
    const places = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1 };
    if (event.key === "Delete") row.querySelector("[data-role=archive]")?.dispatchEvent(new Event("click"));
    else if (!(event.key in places)) return;
    else rows[places[/** @type {keyof typeof places} */ (event.key)]]?.querySelector(".main")?.focus();
    event.preventDefault();
  }
}
