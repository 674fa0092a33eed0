// One connection: its identity, and how far each of its subscriptions is behind the head.

import { ask } from "../admin.js";
import { element, empty, panel, say } from "../element.js";
import { bytes, counted, duration, exact } from "../format.js";
import { endConnection, standOf } from "../parts/connection.js";
import { permit } from "../parts/hints.js";
import { Table } from "../parts/table.js";

const FACTS = {
  Address: (row) => row.address, Identity: (row) => row.identity || "anonymous", Client: (row) => row.client || "–", Protocol: (row) => row.protocol,
  Shard: (row) => String(row.shard), "Connected for": (row) => duration(row.connected_ms), Subscriptions: (row) => exact(row.subscriptions), Stands: standOf,
};

export class Connection {
  constructor({ query }) {
    this.id = query.get("id") ?? "";
    this.fault = element("div", { class: "fault", role: "alert" });
    this.facts = Object.fromEntries(Object.keys(FACTS).map((name) => [name, element("dd", {}, "–")]));
    this.button = element("button", { type: "button", class: "danger", onclick: () => this.end_it(), disabled: true }, "Disconnect");
    this.table = new Table({
      label: "Its subscriptions", keyOf: (row) => row.selector,
      empty: () => empty("No subscriptions.", "The client only publishes, or has just connected."),
      columns: [
        { key: "selector", label: "Subject or pattern", kind: "name" },
        { key: "stand", label: "Progress", show: (row) => STANDS[row.stand](row), tone: (row) => (row.stand === "live" && !row.lag_bytes ? "good" : "warn") },
        { key: "lag_bytes", label: "Lag", isNumber: true, show: behindOf, meter: (row) => (this.most ? row.lag_bytes / this.most : 0) },
        { key: "conflate_ms", label: "Conflated", isNumber: true, show: (row) => (row.conflate_ms ? `every ${row.conflate_ms} ms` : "–") },
      ],
    });
    this.root = element("div", { class: "stack" },
      element("div", { class: "lead" }, element("div", { class: "grow" }, element("p", {}, element("a", { href: "#/connections" }, "Connections")), this.title = element("h1", { class: "mono" }, "…")), this.button),
      this.fault, this.outcome = element("p", { class: "bad", role: "status" }),
      panel("Client", { id: "who" }, element("dl", { class: "facts" }, Object.entries(this.facts).map(([name, value]) => element("div", {}, element("dt", {}, name), value)))),
      panel("Subscriptions", { id: "stands" }, this.table.root));
    say(this.title, this.id || "connection not found");
  }

  async refresh(node) {
    if (this.has_ended) return;
    const row = await ask(`/v1/connections/${encodeURIComponent(this.id)}`);
    this.row = row;
    permit(this.button, node);
    for (const [name, show] of Object.entries(FACTS)) say(this.facts[name], show(row));
    this.most = Math.max(0, ...row.stands.map((stand) => stand.lag_bytes));
    this.table.set(row.stands);
    say(this.fault, row.subscriptions > row.stands.length ? `The first ${exact(row.stands.length)} of ${exact(row.subscriptions)} subscriptions.` : "");
  }

  async end_it() { say(this.outcome, await endConnection(this.row)); }

  fail(error) {
    say(this.fault, error.message);
    this.has_ended = error.status === 404 || error.status === 400;
    this.button.disabled = true;
  }
}

const STANDS = {
  live: (row) => (row.lag_bytes ? "in the window" : "at the head"), behind: () => "catching up from the log", joining: () => "joining",
};

function behindOf(row) {
  if (row.lag_messages) return counted(row.lag_messages, "message");
  if (row.lag_bytes) return bytes(row.lag_bytes);
  if (row.lag_arrivals) return `at most ${counted(row.lag_arrivals, "message")}`;
  return "–";
}
