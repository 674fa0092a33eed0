// Configuration: every value in force, its source, and its meaning. Values that were set are highlighted.

import { ask } from "../admin.js";
import { element, empty, panel, say } from "../element.js";
import { exact } from "../format.js";
import { change } from "../parts/change.js";
import { permit } from "../parts/hints.js";

const SOURCES = { default: ["default", ""], file: ["file", "accent"], environment: ["env", "accent"], flag: ["flag", "accent"] };
const REFRESH_EVERY = 10;

export class Configuration {
  constructor() {
    this.search = element("input", { type: "search", name: "search", spellcheck: "false", autocomplete: "off", placeholder: "key or words", oninput: () => this.filter() });
    this.changed = element("input", { type: "checkbox", name: "changed", onchange: () => this.filter() });
    this.count = element("span", { class: "quiet", role: "status" });
    this.list = element("div", { class: "stack" });
    this.root = element("div", {},
      element("div", { class: "lead" }, element("div", { class: "grow" }, element("h1", {}, "Configuration"),
        element("p", {}, "Later sources win: defaults, the file, the environment, flags.")),
        this.button = element("button", { type: "button", disabled: true, onclick: () => this.reload() }, "Reload")),
      this.fault = element("div", { class: "fault", role: "alert" }), this.outcome = element("p", { class: "outcome", role: "status" }),
      element("form", { class: "row", role: "search", onsubmit: (event) => event.preventDefault() },
        element("label", { class: "field wide" }, "Search", this.search), element("label", { class: "tick" }, this.changed, "only changed values"), this.count),
      this.list);
    this.beats = 0;
  }

  // Configuration changes seldom: read at once, then every tenth second.
  async refresh(node) {
    permit(this.button, node);
    if (this.beats++ % REFRESH_EVERY !== 0) return;
    const configuration = await ask("/v1/config");
    const text = JSON.stringify(configuration);
    if (text === this.text) return;
    this.text = text;
    this.rows = [];
    this.list.replaceChildren(...configuration.sections.map((section) => this.makeSection(section)), this.makeTables("patterns", "pattern", configuration.patterns, "No pattern has settings of its own.", "The settings of [limits] apply to every subject."),
      this.makeTables("issuers", "issuer", configuration.issuers, "No issuers.", "Signed tokens are not accepted."));
    this.filter();
  }

  // Reloads the configuration: settings that can change at runtime take effect, the others are named.
  async reload() {
    const words = "Settings that can change at runtime take effect now; the others are listed and need a restart. If anything is invalid, nothing changes.";
    const { answer, fault = "" } = await change({ title: "Reload configuration?", yes: "Reload", words }, "/v1/reload", { method: "POST" });
    say(this.fault, fault);
    if (!answer) return say(this.outcome, "");
    this.beats = 0;
    const list = (keys) => (keys.length ? keys.join(", ") : "nothing");
    say(this.outcome, `Reloaded. Changed: ${list(answer.taken_over)}. Needs a restart: ${list(answer.waits_for_restart)}.${answer.tokens_gone ? ` Closed the clients of ${exact(answer.tokens_gone)} removed tokens.` : ""}`);
  }

  makeSection({ name, sentence, values }) {
    const rows = values.map((value) => this.makeRow(value));
    const table = element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `Values of [${name}]` }, element("table", {}, element("caption", {}, sentence),
      element("thead", {}, element("tr", {}, ["Key", "Value", "From", "Meaning"].map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, rows)));
    const section = panel(`[${name}]`, { id: `section-${name}` }, table);
    for (const row of rows) row.section = section;
    return section;
  }

  makeRow(value) {
    const [word, tone] = SOURCES[value.source] ?? [value.source, "accent"];
    const isSet = value.source !== "default";
    const row = element("tr", {},
      element("td", { class: "name", title: value.variable }, value.key.split(".")[1]),
      element("td", { class: "mono", "data-label": "Value" }, element("span", { class: isSet ? "" : "quiet" }, shown(value.value)),
        isSet && !value.is_secret ? element("div", { class: "quiet" }, `default ${shown(value.default)}`) : null),
      element("td", { "data-label": "From" }, element("span", { class: `pill ${tone}` }, word), value.where ? element("div", { class: "quiet mono" }, value.where) : null),
      element("td", { class: "words" }, value.sentence, element("div", { class: "quiet" }, `${value.bound}${value.is_live ? " · changes on reload" : ""}`)));
    row.words = `${value.key} ${value.variable} ${value.sentence} ${shown(value.value)}`.toLowerCase();
    row.isSet = isSet;
    this.rows.push(row);
    return row;
  }

  // Tables that the operator names: patterns and issuers.
  makeTables(section, key, tables, none, words) {
    const lines = tables.map(({ [key]: name, ...values }) => element("tr", {}, element("td", { class: "name" }, name),
      element("td", { class: "mono" }, Object.entries(values).map(([each, value]) => element("div", {}, `${each} = ${shown(value)}`)))));
    return panel(`[${section}]`, { id: `section-${section}` }, tables.length === 0 ? empty(none, words)
      : element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `Tables of [${section}]` }, element("table", {},
        element("thead", {}, element("tr", {}, [key, "values"].map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, lines))));
  }

  filter() {
    const words = this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of this.rows ?? []) {
      row.hidden = !(words.every((word) => row.words.includes(word)) && (!this.changed.checked || row.isSet));
      count += row.hidden ? 0 : 1;
    }
    for (const section of new Set((this.rows ?? []).map((row) => row.section))) section.hidden = this.rows.every((row) => row.section !== section || row.hidden);
    say(this.count, `${exact(count)} of ${exact((this.rows ?? []).length)} values`);
  }
}

function shown(value) {
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return "(none)";
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "number" ? exact(value) : String(value);
}
