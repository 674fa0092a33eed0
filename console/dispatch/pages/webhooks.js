// Event webhooks: where events are sent, how far each is, and a test of one.

import { element, empty, panel, say } from "../../element.js";
import { askInDialog } from "../../parts/dialog.js";
import { Table } from "../../parts/table.js";
import { ask, path } from "../api.js";
import { field, lead, Outcome } from "../show.js";

export class Webhooks {
  constructor({ refresh }) {
    this.refreshAgain = refresh;
    this.outcome = new Outcome();
    const act = (label, run, kind) => ({ key: label, label, isLabelHidden: true, action: { label, run, kind, about: (row) => row.id } });
    this.table = new Table({
      label: "Each event webhook", keyOf: (row) => row.id, empty: () => empty("No event webhooks.", "Store one with the form."),
      columns: [
        { key: "id", label: "Webhook", kind: "id" }, { key: "url", label: "Address", kind: "name" }, { key: "types", label: "Events", kind: "words", show: (row) => row.types.join(", ") || "all" },
        { key: "state", label: "State" }, { key: "cursor", label: "Sent up to", isNumber: true }, { key: "reason", label: "Last failure", kind: "words", show: (row) => row.reason ?? "–" },
        act("Test", (row) => this.run(row, "test", "POST", (answer) => `The endpoint answered: ${JSON.stringify(answer)}`)), act("Delete", (row) => this.remove(row), "danger"),
      ],
    });
    this.name = element("input", { name: "id", autocomplete: "off", maxlength: 128, required: true });
    this.url = element("input", { name: "url", type: "url", autocomplete: "off", maxlength: 2000, required: true });
    this.types = element("input", { name: "types", autocomplete: "off", placeholder: "delivery.failed, item.read" });
    const form = element("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.store(); } },
      field("Name", this.name), field("Address", this.url), field("Events (none: all)", this.types), element("button", { type: "submit", class: "main" }, "Store"));
    this.root = element("div", {}, lead("Webhooks", "Events of deliveries, sent to your service in order."), this.outcome.root,
      element("div", { class: "stack" }, panel("New or changed", { id: "webhook" }, form), panel("Event webhooks", { id: "webhooks" }, this.table.root)));
  }

  async store() {
    const types = this.types.value.split(",").map((one) => one.trim()).filter(Boolean);
    const name = this.name.value.trim();
    await this.outcome.run(async () => {
      const stored = (await ask("/v1/webhooks")).webhooks.find((row) => row.id === name);
      const body = { url: this.url.value.trim(), types, ...(stored && { detail: stored.detail }) }; // a PUT replaces the whole webhook
      return ask(path("webhooks", name), { method: "PUT", body });
    },
      (answer) => (answer.secret ? `Stored. Its signing secret, shown once: ${answer.secret}` : "Stored."));
    this.refreshAgain();
  }

  async run(row, verb, method, words) {
    await this.outcome.run(() => ask(`${path("webhooks", row.id)}/${verb}`, { method }), words);
    this.refreshAgain();
  }

  async remove(row) {
    if (await askInDialog({ title: `Delete ${row.id}?`, words: "Its events are no longer sent.", yes: "Delete", isDanger: true }) === null) return;
    await this.outcome.run(() => ask(path("webhooks", row.id), { method: "DELETE" }), () => "Deleted.");
    this.refreshAgain();
  }

  async refresh(askAgain) { this.table.set((await askAgain("/v1/webhooks")).webhooks); }

  fail(error) { say(this.outcome.root, error.message); }
}
