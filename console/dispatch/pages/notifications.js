// Notifications: the newest first, with their counts as they change.

import { element, empty, panel } from "../../element.js";
import { exact } from "../../format.js";
import { Table } from "../../parts/table.js";
import { countsOf, CursorPager, lead, time } from "../show.js";

const STATES = { "": "any state", accepted: "accepted", running: "running", paused: "paused", settled: "settled", cancelled: "cancelled" };

export class Notifications {
  constructor({ refresh }) {
    this.pager = new CursorPager(refresh);
    this.state = "";
    const choose = element("select", { name: "state", onchange: (event) => { this.state = event.target.value; this.pager.restart(); refresh(); } },
      ...Object.entries(STATES).map(([value, label]) => element("option", { value }, label)));
    this.table = new Table({
      label: "Each notification", keyOf: (row) => row.id,
      empty: () => empty("No notifications.", "Send one on the page “Send”."),
      columns: [
        { key: "id", label: "Id", kind: "id", href: (row) => `#/notification?id=${encodeURIComponent(row.id)}` },
        { key: "title", label: "Title", kind: "words", show: (row) => row.title || "–" },
        { key: "state", label: "State" },
        { key: "receivers", label: "Receivers", isNumber: true, show: (row) => exact(row.receivers) },
        { key: "counts", label: "Deliveries", kind: "words", show: (row) => countsOf(row.counts) },
        { key: "accepted", label: "Accepted", kind: "nowrap", show: (row) => time(row.accepted_ms) },
      ],
    });
    this.root = element("div", {}, lead("Notifications", "Each is one request to send. Open one for its deliveries."),
      panel("All notifications", { id: "notifications" }, element("form", { class: "row", onsubmit: (event) => event.preventDefault() }, element("label", { class: "field" }, "State", choose)),
        this.table.root, this.pager.root));
  }

  async refresh(ask) {
    const [state, after] = [this.state, this.pager.after];
    const answer = await ask("/v1/notifications", { query: { state, after } });
    if (state !== this.state || after !== this.pager.after) return;
    this.table.set(answer.notifications);
    this.pager.show(answer.after);
  }
}
