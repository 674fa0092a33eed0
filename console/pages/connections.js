// Connections: a list, how far each is behind the head, and a button that closes one.

import { ask } from "../admin.js";
import { writePlace } from "../browser.js";
import { element, empty, panel, say } from "../element.js";
import { bytes, counted, duration, exact } from "../format.js";
import { endConnection, standOf, toneOf } from "../parts/connection.js";
import { permit } from "../parts/hints.js";
import { Pager } from "../parts/pager.js";
import { Table } from "../parts/table.js";

const PAGE_ROWS = 50;
const behindBy = (row) => (row.lag_bytes ? ` by ${bytes(row.lag_bytes)}` : row.lag_arrivals ? ` by at most ${counted(row.lag_arrivals, "message")}` : "");

export class Connections {
  constructor({ query, refresh }) {
    this.ask_again = refresh;
    this.state = { search: query.get("search") ?? "", behind: query.get("behind") ?? "" };
    this.places = [""];
    this.search = element("input", { type: "search", name: "search", spellcheck: "false", maxlength: 256, autocomplete: "off",
      placeholder: "address, identity, client, protocol or number", oninput: () => this.change({ search: this.search.value.trim() }) });
    this.search.value = this.state.search;
    this.behind = element("input", { type: "checkbox", name: "behind", onchange: () => this.change({ behind: this.behind.checked ? "true" : "" }) });
    this.behind.checked = this.state.behind === "true";
    this.fault = element("div", { class: "fault", role: "alert" });
    this.table = new Table({
      label: "Connections", keyOf: (row) => row.connection,
      empty: () => this.state.search || this.state.behind
        ? empty(this.state.behind ? "No slow consumers." : "No matching connection.", this.state.behind ? "Every subscription is at the head of its stream." : "It may have closed.")
        : empty("No connections.", "Clients connect to the client port."),
      columns: [
        { key: "connection", label: "Connection", kind: "id", href: (row) => `#/connection?id=${row.connection}` },
        { key: "behind", label: "Lag", show: (row) => standOf(row) + behindBy(row), tone: toneOf },
        { key: "address", label: "Address", kind: "nowrap" },
        { key: "identity", label: "Identity", show: (row) => row.identity || "anonymous" },
        { key: "client", label: "Client", kind: "client", show: (row) => row.client || "–" },
        { key: "protocol", label: "Protocol" },
        { key: "connected_ms", label: "Connected", isNumber: true, show: (row) => duration(row.connected_ms) },
        { key: "subscriptions", label: "Subscriptions", isNumber: true, show: (row) => exact(row.subscriptions) },
        { key: "end", label: "Disconnect", isLabelHidden: true, action: { label: "Disconnect", kind: "danger plain", about: (row) => row.connection, permit, run: (row) => this.end_one(row) } },
      ],
    });
    this.pager = new Pager((pages) => this.turn(pages));
    this.root = element("div", {},
      element("div", { class: "lead" }, element("div", { class: "grow" }, element("h1", {}, "Connections"))),
      panel("All connections", { id: "connections" },
        element("form", { class: "row", role: "search", onsubmit: (event) => event.preventDefault() },
          element("label", { class: "field wide" }, "Search", this.search), element("label", { class: "tick" }, this.behind, "only those behind")),
        this.fault, this.outcome = element("p", { class: "bad", role: "status" }), this.table.root, this.pager.root));
  }

  turn(pages) {
    if (pages < 0) this.places.pop();
    else if (this.following) this.places.push(this.following);
    this.ask_again();
  }

  change(change) {
    Object.assign(this.state, change);
    this.places = [""];
    writePlace("connections", this.state);
    this.ask_again();
  }

  async refresh(node) {
    const { search, behind } = this.state;
    const after = this.places.at(-1);
    const answer = await ask("/v1/connections", { query: { search, behind, after, limit: PAGE_ROWS } });
    if (search !== this.state.search || behind !== this.state.behind || after !== this.places.at(-1)) return;
    say(this.fault, "");
    this.following = answer.next;
    this.table.set(answer.rows, node);
    const page = this.places.length;
    const words = answer.rows.length === 0 ? (answer.next ? "no match so far" : "") : `${exact(answer.rows.length)} shown${page > 1 ? `, page ${page}` : ""}`;
    this.pager.show(words, page > 1, answer.next !== null);
  }

  async end_one(row) {
    say(this.outcome, await endConnection(row));
    this.ask_again();
  }

  fail(error) { say(this.fault, error.message); }
}
