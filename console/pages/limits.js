// Limits and refusals: every limit, how full it is, how often it was hit; and who was refused last, and why.

import { ask } from "../admin.js";
import { element, empty, panel, say } from "../element.js";
import { ago, exact, percent, quantity } from "../format.js";
import { Table } from "../parts/table.js";

const SCOPES = { node: "the node", shard: "each shard", connection: "each connection", subject: "each subject" };

export class Limits {
  constructor() {
    this.fault = element("div", { class: "fault", role: "alert" });
    this.gauges = element("div", { class: "gauges" });
    this.meters = new Map();
    this.table = new Table({
      label: "Limits, and how often each was reached", keyOf: (row) => row.name, sort: "hits", order: "desc", onSort: () => this.show(),
      columns: [
        { key: "name", label: "Limit", kind: "name", isSortable: true, title: (row) => row.sentence },
        { key: "sentence", label: "Meaning", kind: "words" },
        { key: "scope", label: "Scope", kind: "nowrap", show: (row) => SCOPES[row.scope] ?? row.scope },
        { key: "value", label: "Value", isNumber: true, show: (row) => quantity(row.name, row.value), title: (row) => `default ${quantity(row.name, row.default)}, from ${row.source}` },
        { key: "used", label: "Used now", isNumber: true, isSortable: true, show: (row) => (row.used === null ? "–" : quantity(row.name, row.used)), meter: (row) => (row.used === null ? null : shareOf(row)) },
        { key: "hits", label: "Reached", isNumber: true, kind: "nowrap", isSortable: true, show: (row) => (row.hits === null ? "not counted" : row.is_ordinary ? `${exact(row.hits)} evicted` : `${exact(row.hits)} ×`), tone: (row) => (hitsOf(row) ? "warn" : "quiet"),
          title: (row) => (row.counted_by ? `counted by ${row.counted_by}` : "") },
        { key: "code", label: "Code", show: (row) => (row.code ? `${row.code_number} ${row.code}` : "–") },
      ],
    });
    this.refusals = new Table({
      label: "Refusals, newest first", keyOf: (row) => row.key, isTall: true, empty: () => empty("No refusals.", "Refusals appear here with their reason."),
      columns: [
        { key: "time_ms", label: "When", isNumber: true, show: (row) => ago(row.time_ms, this.now_ms) },
        { key: "name", label: "Code", show: (row) => `${row.code} ${row.name}`, tone: () => "warn" },
        { key: "reason", label: "Reason", kind: "text" },
        { key: "address", label: "Client", show: (row) => [row.identity, row.address].filter(Boolean).join(" · ") },
        { key: "connection", label: "Connection", kind: "name", href: (row) => (row.connection ? `#/connection?id=${row.connection}` : null), show: (row) => row.connection ?? "–" },
      ],
    });
    this.root = element("div", { class: "stack" },
      element("div", { class: "lead" }, element("div", { class: "grow" }, element("h1", {}, "Limits and refusals"),
        element("p", {}, "Every queue and buffer has a limit. The fullest come first."))),
      this.fault, this.gauges, panel("Last refusals", { id: "refusals" }, this.refusals.root), panel("Every limit", { id: "limits" }, this.table.root));
  }

  async refresh(node) {
    this.now_ms = node.time_ms;
    const [limits, refusals] = [await ask("/v1/limits"), await ask("/v1/refusals")];
    say(this.fault, "");
    this.rows = limits.limits;
    this.show();
    this.refusals.set(refusals.rows.map((row) => ({ ...row, key: `${row.time_ms} ${row.connection} ${row.code} ${row.number}` })));
  }

  show() {
    if (!this.rows) return;
    const { sort, order } = this.table;
    const value = (row) => (sort === "used" ? shareOf(row) : sort === "name" ? row.name : hitsOf(row));
    const sorted = [...this.rows].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (order === "asc" ? 1 : -1));
    this.table.set(sorted);
    this.showGauges();
  }

  // The limits that are used by something that can be measured, the fullest first; their places are kept while one looks.
  showGauges() {
    const used = this.rows.filter((row) => row.used !== null).sort((a, b) => shareOf(b) - shareOf(a));
    if (this.meters.size === 0) for (const row of used) this.gauges.append(this.makeGauge(row));
    for (const row of used) {
      const gauge = this.meters.get(row.name);
      say(gauge.share, percent(shareOf(row)));
      say(gauge.words, `${quantity(row.name, row.used)} of ${quantity(row.name, row.value)}`);
      gauge.meter.value = shareOf(row);
    }
  }

  makeGauge(row) {
    const gauge = { share: element("b"), words: element("span", { class: "quiet" }), meter: element("meter", { min: 0, max: 1, low: 0.7, high: 0.9, optimum: 0.1, "aria-label": row.name }) };
    this.meters.set(row.name, gauge);
    return element("div", { class: "gauge", title: row.sentence }, element("span", { class: "mono" }, row.name), gauge.share, gauge.meter, gauge.words);
  }

  fail(error) { say(this.fault, error.message); }
}

// That old messages go is what a log’s limits are for: no hit.
function hitsOf(row) {
  return row.is_ordinary ? 0 : row.hits ?? -1;
}

function shareOf(row) {
  return row.used === null || row.value === 0 ? 0 : Math.min(1, row.used / row.value);
}
