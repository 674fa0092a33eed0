// Templates: the list, and one to read, change and preview.

import { element, empty, panel, say } from "../../element.js";
import { Table } from "../../parts/table.js";
import { ask, path } from "../api.js";
import { field, lead, Outcome } from "../show.js";

const BEGINNING = '{"default": {"title": "Hi {{ name }}", "body": ""}}';

export class Templates {
  constructor({ refresh }) {
    this.refreshAgain = refresh;
    this.outcome = new Outcome();
    this.table = new Table({
      label: "Each template", keyOf: (row) => row.id, empty: () => empty("No templates.", "Store one with the form."),
      columns: [{ key: "id", label: "Template", kind: "name" }, { key: "version", label: "Version", isNumber: true },
        { key: "open", label: "Open", isLabelHidden: true, action: { label: "Open", run: (row) => this.open(row.id), about: (row) => row.id } }],
    });
    this.name = element("input", { name: "id", autocomplete: "off", maxlength: 128, required: true });
    this.locales = element("textarea", { name: "locales", rows: 10, spellcheck: "false" });
    this.data = element("input", { name: "data", autocomplete: "off", placeholder: "{}" });
    this.locale = element("input", { name: "locale", autocomplete: "off", maxlength: 35 });
    this.locales.value = BEGINNING;
    this.shown = element("div", {});
    const form = element("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); this.store(); } },
      field("Name", this.name), field("Locales, as JSON with Liquid", this.locales), element("div", { class: "row" }, field("Data for the preview, as JSON", this.data), field("Locale", this.locale)),
      element("div", { class: "row" }, element("button", { type: "submit", class: "main" }, "Store a version"), element("button", { type: "button", onclick: () => this.preview() }, "Preview the stored one")));
    this.root = element("div", {}, lead("Templates", "Liquid, one part for each locale. A change is a new version; what was sent keeps its content."), this.outcome.root,
      element("div", { class: "columns" }, panel("Template", { id: "template" }, form, this.shown), panel("All templates", { id: "templates" }, this.table.root)));
  }

  async open(id) {
    const answer = await this.outcome.run(() => ask(path("templates", id)), (one) => `Version ${one.version} of ${one.id}, with ${one.variables.join(", ") || "no variables"}.`);
    if (!answer) return;
    this.name.value = id;
    this.locales.value = JSON.stringify(answer.locales, null, 1);
    this.data.value = JSON.stringify(Object.fromEntries(answer.variables.map((name) => [name, name])));
  }

  async store() {
    await this.outcome.run(() => ask(path("templates", this.name.value.trim()), { method: "PUT", body: { locales: JSON.parse(this.locales.value) } }), (answer) => `Version ${answer.version} is stored.`);
    this.refreshAgain();
  }

  async preview() {
    const answer = await this.outcome.run(() => ask(`${path("templates", this.name.value.trim())}/preview`, { method: "POST", body: { data: JSON.parse(this.data.value || "{}"), ...(this.locale.value.trim() ? { locale: this.locale.value.trim() } : {}) } }), () => "Preview:");
    if (answer) this.shown.replaceChildren(element("pre", { tabindex: 0, "aria-label": "Preview" }, JSON.stringify(answer, null, 1)));
  }

  async refresh(askAgain) { this.table.set((await askAgain("/v1/templates")).templates); }

  fail(error) { say(this.outcome.root, error.message); }
}
