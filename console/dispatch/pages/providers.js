// Providers of e-mail: whether each works, what it may send, and how traffic is shared; a form that stores one, and a test e-mail.
// Secrets are never in an answer, and the form forgets a password that it sent.

import { element, empty, panel, say } from "../../element.js";
import { exact } from "../../format.js";
import { askInDialog } from "../../parts/dialog.js";
import { Table } from "../../parts/table.js";
import { ask, path } from "../api.js";
import { field, lead, Outcome } from "../show.js";

// {"state": "resting", "rests_ms": 12000, "at_once": 1} in words.
function stateOf(row) {
  if (row.state === "working") return "working";
  return row.rests_ms ? `resting for ${exact(Math.ceil(row.rests_ms / 1_000))} s` : `trying ${exact(row.at_once)} at once`;
}

const CONFIGURED = "The configuration has this provider: change dispatch_email, then restart.";
const SECURITY = { starttls: "STARTTLS", tls: "TLS", none: "none" };
const KEPT = ["sends_max", "timeout_ms"]; // a PUT replaces the whole provider, and the form does not have these
const split = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);

const joined = (list) => list?.join(", ") || "all";
const signed = (row) => row.has_dkim_key ? row.dkim_selector ?? "yes" : "no";

export class Providers {
  constructor({ refresh }) {
    this.refreshAgain = refresh;
    this.outcome = new Outcome();
    const stored = (show) => (row) => row.configured ? "–" : show(row); // the configuration has those of the provider `default`
    const act = (label, run) => ({ key: label, label, isLabelHidden: true, action: { label, run, about: (row) => row.id } });
    const number = (key, label, show = (row) => exact(row[key])) => ({ key, label, isNumber: true, show: stored(show) });
    this.table = new Table({
      label: "Each provider of e-mail", keyOf: (row) => row.id, empty: () => empty("No providers.", "Store one with the form, or set dispatch_email.relay."),
      columns: [
        { key: "id", label: "Provider", kind: "id" }, { key: "state", label: "State", kind: "words", show: stateOf }, { key: "reason", label: "Last failure", kind: "words", show: (row) => row.reason ?? "–" },
        { key: "relay", label: "Relay", kind: "name", show: stored((row) => `${row.relay} (${row.security})`) }, { key: "sender", label: "From", kind: "name", show: stored((row) => row.sender) },
        { key: "tenants", label: "Tenants", kind: "words", show: stored((row) => joined(row.tenants)) },
        number("priority", "Priority"), number("weight", "Weight"), number("rate_per_s", "Rate a second", (row) => row.rate_per_s ? exact(row.rate_per_s) : "any"),
        { key: "in_flight", label: "Being sent", isNumber: true, show: (row) => exact(row.in_flight) }, { key: "login", label: "Login", kind: "words", show: stored((row) => row.user ? (row.has_password ? "with a password" : "without a password") : "none") },
        { key: "signed", label: "DKIM key", kind: "words", show: stored(signed) },
        act("Edit", (row) => this.edit(row)), act("Test", (row) => this.test(row)),
        { key: "Delete", label: "Delete", isLabelHidden: true, action: { label: "Delete", run: (row) => this.remove(row), kind: "danger", about: (row) => row.id } },
      ],
    });
    const input = (name, more) => element("input", { name, autocomplete: "off", maxlength: 300, ...more });
    this.fields = {
      id: input("id", { required: true, maxlength: 128 }), relay: input("relay", { required: true, placeholder: "smtp.example.com:587" }),
      sender: input("sender", { required: true, placeholder: "news@example.com" }),
      security: element("select", { name: "security" }, ...Object.entries(SECURITY).map(([value, label]) => element("option", { value }, label))),
      user: input("user"), password: input("password", { type: "password", autocomplete: "new-password", maxlength: 1000 }),
      domains: input("domains", { maxlength: 10000 }), tenants: input("tenants", { maxlength: 10000 }),
      priority: input("priority", { type: "number", min: 0, max: 1000, value: 10, required: true }),
      weight: input("weight", { type: "number", min: 1, max: 1000, value: 1, required: true }),
      rate_per_s: input("rate_per_s", { type: "number", min: 0, max: 100000, value: 0, required: true }),
    };
    const labels = { id: "Name", relay: "Relay", sender: "From", security: "Security", user: "User", password: "Password (none: the stored one)", domains: "Other domains", tenants: "Tenants (none: all)", priority: "Priority", weight: "Weight", rate_per_s: "Rate a second (0: any)" };
    this.form = element("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.store(); } },
      ...Object.entries(labels).map(([name, label]) => field(label, this.fields[name])), element("button", { type: "submit", class: "main" }, "Store"));
    this.root = element("div", {}, lead("Providers", "Relays that accept e-mail. The one with the lowest priority number is used first; weights divide the e-mail among equals."), this.outcome.root,
      element("div", { class: "stack" }, panel("New or changed", { id: "provider" }, this.form), panel("Providers of e-mail", { id: "providers" }, this.table.root)));
  }

  edit(row) {
    if (row.configured) return say(this.outcome.root, CONFIGURED);
    for (const [name, input] of Object.entries(this.fields)) {
      if (name !== "password") input.value = Array.isArray(row[name]) ? row[name].join(", ") : row[name];
    }
    this.fields.password.value = "";
    this.fields.relay.focus();
  }

  async store() {
    const { id, relay, sender, security, user, password, domains, tenants, priority, weight, rate_per_s: rate } = this.fields;
    const name = id.value.trim();
    await this.outcome.run(async () => {
      const stored = (await ask("/v1/providers")).providers.find((row) => row.id === name && !row.configured);
      const kept = stored ? Object.fromEntries(KEPT.map((key) => [key, stored[key]])) : {};
      const body = {
        ...kept, relay: relay.value.trim(), sender: sender.value.trim(), security: security.value, user: user.value.trim(), domains: split(domains.value),
        tenants: split(tenants.value), priority: Number(priority.value), weight: Number(weight.value), rate_per_s: Number(rate.value), ...(password.value && { password: password.value }),
      };
      const answer = await ask(path("providers", name), { method: "PUT", body });
      this.form.reset();
      return answer;
    }, () => "Stored.");
    this.refreshAgain();
  }

  async test(row) {
    if (row.configured) return say(this.outcome.root, CONFIGURED);
    const value = element("input", { name: "value", type: "email", autocomplete: "off", required: true });
    const given = await askInDialog({ title: `Test ${row.id}`, words: `Sends an e-mail from ${row.sender}. A provider of the same domain with a lower priority number is used first.`, fields: [field("To", value)], yes: "Send" });
    if (given === null) return;
    const content = { title: `Test of ${row.id}`, body: "This e-mail tests a provider." };
    const body = { to: { address: { channel: "email", value: given.value } }, content, override: { email: { from: row.sender } } };
    await this.outcome.run(() => ask("/v1/notifications", { method: "POST", body }), (answer) => `Accepted as ${answer.id}: the page of this notification shows how it ends.`);
    this.refreshAgain();
  }

  async remove(row) {
    if (row.configured) return say(this.outcome.root, CONFIGURED);
    if (await askInDialog({ title: `Delete ${row.id}?`, words: "Its e-mail is sent by other providers, or waits for one.", yes: "Delete", isDanger: true }) === null) return;
    await this.outcome.run(() => ask(path("providers", row.id), { method: "DELETE" }), () => "Deleted.");
    this.refreshAgain();
  }

  async refresh(askAgain) { this.table.set((await askAgain("/v1/providers")).providers); }

  fail(error) { say(this.outcome.root, error.message); }
}
