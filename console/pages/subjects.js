// Subjects: found by pattern or by words, sorted by what matters, a page at a time; the node does the searching and sorting.
// Those that Godwit itself publishes (/$…) are shown only where they are asked for: no leading wildcard holds them.

import { writePlace } from "../browser.js";
import { ask } from "../admin.js";
import { element, empty, panel, say } from "../element.js";
import { ago, bytes, exact, number, rate } from "../format.js";
import { DidYouMean } from "../parts/hints.js";
import { Pager } from "../parts/pager.js";
import { Table } from "../parts/table.js";
import { SUBSCRIBERS } from "./subject.js";

const PAGE_ROWS = 50;

export class Subjects {
  constructor({ query, refresh }) {
    this.ask_again = refresh;
    this.state = { search: query.get("search") ?? "", sort: query.get("sort") || "rate", order: query.get("order") || "desc", own: query.get("own") ?? "", offset: Number(query.get("offset")) || 0 };
    this.search = element("input", { type: "search", name: "search", spellcheck: "false", maxlength: 1024, autocomplete: "off", class: "mono",
      placeholder: "words, or a pattern such as /stocks/*", oninput: () => this.change({ search: this.search.value.trim(), offset: 0 }) });
    this.search.value = this.state.search;
    this.own = element("input", { type: "checkbox", name: "own", onchange: () => this.change({ own: this.own.checked ? "true" : "", offset: 0 }) });
    this.own.checked = this.state.own === "true";
    this.hint = new DidYouMean((meant) => { this.search.value = meant; this.change({ search: meant, offset: 0 }); });
    this.fault = element("div", { class: "fault", role: "alert" });
    this.table = new Table({
      label: "Subjects", keyOf: (row) => row.subject, sort: this.state.sort, order: this.state.order,
      onSort: (sort, order) => this.change({ sort, order, offset: 0 }),
      empty: () => this.state.search ? empty("No matching subject.", "Try fewer letters, or a pattern with **.") : empty("No subjects yet.", "The first message or subscription creates a subject."),
      columns: [
        { key: "subject", label: "Subject", isSortable: true, kind: "name", href: (row) => `#/subject?name=${encodeURIComponent(row.subject)}` },
        { key: "rate", label: "Messages/s", isNumber: true, isSortable: true, show: (row) => row.rate_per_s === null ? "–" : number(row.rate_per_s), meter: (row) => this.share(row, "rate_per_s") },
        { key: "messages", label: "In memory", about: "Messages in the subject’s log. The journal can have more.", isNumber: true, isSortable: true, show: (row) => exact(row.messages) },
        { key: "bytes", label: "Log size", isNumber: true, isSortable: true, show: (row) => bytes(row.bytes), meter: (row) => this.share(row, "bytes") },
        { key: "subscribers", label: "Subscribers", about: SUBSCRIBERS, isNumber: true, isSortable: true, show: (row) => exact(row.subscribers) },
        { key: "last", label: "Last message", isNumber: true, isSortable: true, show: (row) => ago(row.last_ms, this.now_ms) },
        { key: "at", label: "Position", isNumber: true },
      ],
    });
    this.pager = new Pager((pages) => this.change({ offset: Math.max(0, this.state.offset + pages * PAGE_ROWS) }));
    this.root = element("div", {},
      element("div", { class: "lead" }, element("div", { class: "grow" }, element("h1", {}, "Subjects"))),
      panel("All subjects", { id: "subjects", right: element("span", { class: "quiet" }, this.taken = element("span")) },
        element("form", { class: "row", role: "search", onsubmit: (event) => event.preventDefault() }, element("label", { class: "field wide" }, "Search", this.search),
          element("label", { class: "tick" }, this.own, "also Godwit’s own ($…)")),
        this.hint.root, this.fault, this.table.root, this.pager.root));
  }

  share(row, key) { return this.most[key] > 0 ? row[key] / this.most[key] : 0; }

  change(change) {
    Object.assign(this.state, change);
    writePlace("subjects", this.state);
    this.ask_again();
  }

  async refresh(node) {
    this.now_ms = node.time_ms;
    const { search, sort, order, offset, own } = this.state;
    this.hint.show(search);
    const isPattern = search.startsWith("/") && /(^|\/)\*\*?(\/|$)/.test(search);
    const withOwn = own || search.startsWith("/$");
    const asked = isPattern ? { pattern: search } : withOwn ? { search } : { search, pattern: "/**" };
    const answer = await ask("/v1/subjects", { query: { ...asked, sort, order, offset, limit: PAGE_ROWS } });
    if (search !== this.state.search || own !== this.state.own || offset !== this.state.offset || sort !== this.state.sort) return;
    say(this.fault, "");
    this.most = Object.fromEntries(["rate_per_s", "bytes"].map((key) => [key, Math.max(0, ...answer.rows.map((row) => row[key] ?? 0))]));
    this.table.set(answer.rows);
    this.pager.show(answer.total === 0 ? "" : `${exact(offset + 1)} – ${exact(offset + answer.rows.length)} of ${exact(answer.total)}${answer.is_partial ? ", of the first million" : ""}`,
      offset > 0, offset + answer.rows.length < answer.total);
    say(this.taken, `as of ${ago(answer.taken_ms, node.time_ms)}`);
  }

  fail(error) { say(this.fault, error.message); }
}
