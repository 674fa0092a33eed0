// Receivers: found by the beginning of their name, a page at a time.

import { element, empty, panel } from "../../element.js";
import { exact } from "../../format.js";
import { Table } from "../../parts/table.js";
import { CursorPager, lead } from "../show.js";

export class Receivers {
  constructor({ refresh }) {
    this.pager = new CursorPager(refresh);
    this.search = element("input", { type: "search", name: "prefix", spellcheck: "false", autocomplete: "off", maxlength: 128, oninput: () => { this.pager.restart(); refresh(); } });
    this.table = new Table({
      label: "Each receiver", keyOf: (row) => row.id,
      empty: () => empty("No receivers.", "They are created by the API, an import, or the first notification to them."),
      columns: [
        { key: "id", label: "Receiver", kind: "name", href: (row) => `#/receiver?id=${encodeURIComponent(row.id)}` },
        { key: "unread", label: "Unread", isNumber: true, show: (row) => exact(row.unread) },
        { key: "items", label: "Items", isNumber: true, show: (row) => exact(row.items) },
      ],
    });
    this.root = element("div", {}, lead("Receivers", "People and machines that receive notifications."),
      panel("All receivers", { id: "receivers" }, element("form", { class: "row", role: "search", onsubmit: (event) => event.preventDefault() }, element("label", { class: "field wide" }, "Name begins with", this.search)),
        this.table.root, this.pager.root));
  }

  async refresh(ask) {
    const [prefix, after] = [this.search.value.trim(), this.pager.after];
    const answer = await ask("/v1/receivers", { query: { prefix, after } });
    if (prefix !== this.search.value.trim() || after !== this.pager.after) return;
    this.table.set(answer.receivers);
    this.pager.show(answer.after);
  }
}
