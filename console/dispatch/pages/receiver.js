// One receiver: addresses, inbox and preferences.

import { element, empty, panel, say } from "../../element.js";
import { Table } from "../../parts/table.js";
import { Refused } from "../../refusals.js";
import { ask, path } from "../api.js";
import { lead, Outcome, time } from "../show.js";

const NEWEST = "0.999999999999999999";
const CHANNELS = ["inbox", "webhook", "email"];
const TOKEN_LEFT_MS = 60_000;
const FORBIDDEN = 403;

export class Receiver {
  constructor({ query, refresh }) {
    this.id = query.get("id") ?? "";
    this.refreshAgain = refresh;
    this.token = { token: "", expires_ms: 0 };
    Object.assign(this, { given: {}, names: [], wanted: null, changes: 0 }); // preferences: as stored, and as the boxes say while that is stored
    this.outcome = new Outcome();
    this.facts = element("p", { class: "quiet" });
    this.addresses = new Table({
      label: "Each address", keyOf: (row) => row.id, empty: () => empty("No addresses.", "The inbox needs none."),
      columns: [{ key: "id", label: "Name", kind: "id" }, { key: "channel", label: "Channel" }, { key: "value", label: "Address", kind: "name" }, { key: "state", label: "State" }],
    });
    this.inbox = new Table({
      label: "Items of the inbox", keyOf: (row) => row.id, isTall: true, empty: () => empty("The inbox is empty."),
      columns: [
        { key: "title", label: "Item", kind: "words", show: (row) => row.content?.title ?? row.content?.body ?? "–" },
        { key: "flags", label: "State", show: (row) => row.flags.at(-1) ?? "unread" },
        { key: "time", label: "Arrived", kind: "nowrap", show: (row) => time(row.time) },
        { key: "id", label: "Notification", kind: "id", href: (row) => `#/notification?id=${encodeURIComponent(row.id)}` },
      ],
    });
    this.wishes = element("div", {});
    this.root = element("div", {}, lead(this.id, ""), this.outcome.root, this.facts,
      element("div", { class: "columns" }, this.inboxPanel = panel("Inbox", { id: "inbox" }, this.inbox.root),
        element("div", { class: "stack" }, panel("Addresses", { id: "addresses" }, this.addresses.root), panel("Preferences", { id: "preferences" }, this.wishes))));
  }

  async refresh(askAgain) {
    const answer = await askAgain(path("receivers", this.id));
    this.addresses.set(answer.addresses);
    const page = await this.readInbox(askAgain);
    say(this.facts, [page && `${page.unread} unread`, page && `${page.unseen} unseen`, answer.locale && `locale ${answer.locale}`, answer.zone && `zone ${answer.zone}`, answer.connected && "connected"].filter(Boolean).join(" · "));
    if (page) this.inbox.set(page.items);
    else if (!this.inboxPanel.querySelector(".empty")) this.inbox.root.replaceWith(empty("The inbox is not shown.", "Reading it needs an API key with the scope “manage”."));
    await this.showWishes(askAgain);
  }

  // Null where the key may not make the receiver's token; it is asked for once.
  async readInbox(askAgain) {
    if (this.isForbidden) return null;
    try {
      if (this.token.expires_ms < Date.now() + TOKEN_LEFT_MS) this.token = await askAgain(`${path("receivers", this.id)}/token`, { method: "POST" });
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== FORBIDDEN) throw error;
      this.isForbidden = true;
      return null;
    }
    return askAgain("/v1/inbox", { query: { before: NEWEST, limit: 50 }, key: this.token.token });
  }

  // Drawn again only where something differs, so that a box keeps its focus.
  async showWishes(askAgain) {
    const changes = this.changes;
    const { categories: given, known } = await askAgain(`${path("receivers", this.id)}/preferences`);
    if (this.wanted || changes !== this.changes) return; // what was read is older than what the boxes say
    this.given = given;
    this.names = [...new Set(["*", ...known, ...Object.keys(given)])];
    const drawn = JSON.stringify([given, this.names]);
    if (drawn !== this.drawn) this.drawWishes();
    this.drawn = drawn;
  }

  drawWishes() {
    const box = (name, channel) => {
      const made = element("input", { type: "checkbox", "aria-label": `${name === "*" ? "everything" : name} by ${channel}`, onchange: () => this.wish(name, channel, made.checked) });
      made.checked = this.given[name]?.[channel] ?? true;
      return made;
    };
    this.wishes.replaceChildren(element("table", {}, element("caption", { class: "unseen" }, "Preferences"),
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Category"), ...CHANNELS.map((channel) => element("th", { scope: "col" }, channel)))),
      element("tbody", {}, ...this.names.map((name) => element("tr", {}, element("th", { scope: "row" }, name === "*" ? "everything" : name), ...CHANNELS.map((channel) => element("td", {}, box(name, channel))))))));
  }

  // A PUT replaces all preferences: one at a time, and the last has what all boxes say. A box returns where that fails.
  async wish(name, channel, isWanted) {
    const isStoring = this.wanted !== null;
    const before = this.wanted ?? this.given;
    this.wanted = { ...before, [name]: { ...before[name], [channel]: isWanted } };
    if (isStoring) return;
    let sent;
    do {
      sent = this.wanted;
      await this.outcome.run(async () => {
        await ask(`${path("receivers", this.id)}/preferences`, { method: "PUT", body: { categories: sent } });
        this.given = sent;
      }, () => "Preferences are stored.");
    } while (sent !== this.wanted);
    this.wanted = null;
    this.changes += 1;
    if (sent !== this.given) this.drawWishes();
    this.refreshAgain();
  }

  fail(error) { say(this.outcome.root, error.message); }
}
