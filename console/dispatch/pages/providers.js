// Providers of e-mail: whether each works, what it may send, and how traffic is shared. Secrets are never in an answer.

import { element, empty, panel, say } from "../../element.js";
import { exact } from "../../format.js";
import { askInDialog } from "../../parts/dialog.js";
import { Table } from "../../parts/table.js";
import { ask, path } from "../api.js";
import { lead, Outcome } from "../show.js";

// {"state": "resting", "rests_ms": 12000, "at_once": 1} in words.
function stateOf(row) {
  if (row.state === "working") return "working";
  return row.rests_ms ? `resting for ${exact(Math.ceil(row.rests_ms / 1_000))} s` : `trying ${exact(row.at_once)} at once`;
}

const joined = (list) => list?.join(", ") || "all";
const signed = (row) => row.has_dkim_key ? row.dkim_selector ?? "yes" : "no";

export class Providers {
  constructor({ refresh }) {
    this.refreshAgain = refresh;
    this.outcome = new Outcome();
    const stored = (show) => (row) => row.configured ? "–" : show(row); // the configuration has those of the provider `default`
    const number = (key, label, show = (row) => exact(row[key])) => ({ key, label, isNumber: true, show: stored(show) });
    this.table = new Table({
      label: "Each provider of e-mail", keyOf: (row) => row.id, empty: () => empty("No providers.", "Store one with PUT /v1/providers/NAME, or set dispatch_email.relay."),
      columns: [
        { key: "id", label: "Provider", kind: "id" }, { key: "state", label: "State", kind: "words", show: stateOf }, { key: "reason", label: "Last failure", kind: "words", show: (row) => row.reason ?? "–" },
        { key: "relay", label: "Relay", kind: "name", show: stored((row) => `${row.relay} (${row.security})`) }, { key: "sender", label: "From", kind: "name", show: stored((row) => row.sender) },
        { key: "tenants", label: "Tenants", kind: "words", show: stored((row) => joined(row.tenants)) },
        number("priority", "Priority"), number("weight", "Weight"), number("rate_per_s", "Rate a second", (row) => row.rate_per_s ? exact(row.rate_per_s) : "any"),
        { key: "in_flight", label: "Being sent", isNumber: true, show: (row) => exact(row.in_flight) }, { key: "login", label: "Login", kind: "words", show: stored((row) => row.user ? (row.has_password ? "with a password" : "without a password") : "none") },
        { key: "signed", label: "DKIM key", kind: "words", show: stored(signed) },
        { key: "Delete", label: "Delete", isLabelHidden: true, action: { label: "Delete", run: (row) => this.remove(row), kind: "danger", about: (row) => row.id } },
      ],
    });
    this.root = element("div", {}, lead("Providers", "Relays that accept e-mail. The one with the lowest priority number is used first; weights divide the e-mail among equals."), this.outcome.root,
      panel("Providers of e-mail", { id: "providers" }, this.table.root));
  }

  async remove(row) {
    if (row.configured) return say(this.outcome.root, "The configuration has this provider: change dispatch_email, then restart.");
    if (await askInDialog({ title: `Delete ${row.id}?`, words: "Its e-mail is sent by other providers, or waits for one.", yes: "Delete", isDanger: true }) === null) return;
    await this.outcome.run(() => ask(path("providers", row.id), { method: "DELETE" }), () => "Deleted.");
    this.refreshAgain();
  }

  async refresh(askAgain) { this.table.set((await askAgain("/v1/providers")).providers); }

  fail(error) { say(this.outcome.root, error.message); }
}
