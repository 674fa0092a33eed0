// One notification: state, live counts, its deliveries, and ending it.

import { element, empty, panel, say } from "../../element.js";
import { counted, exact } from "../../format.js";
import { askInDialog } from "../../parts/dialog.js";
import { Table } from "../../parts/table.js";
import { ask, path } from "../api.js";
import { CursorPager, lead, Outcome, time } from "../show.js";

export class Notification {
  constructor({ query, refresh }) {
    this.id = query.get("id") ?? "";
    this.outcome = new Outcome();
    this.facts = element("p", { class: "quiet" });
    this.counts = new Table({
      label: "Counts by state", keyOf: (row) => `${row.channel} ${row.state}`, empty: () => empty("No deliveries yet."),
      columns: [{ key: "channel", label: "Channel" }, { key: "state", label: "State" }, { key: "count", label: "Deliveries", isNumber: true, show: (row) => exact(row.count) }],
    });
    this.deliveries = new Table({
      label: "Each delivery", keyOf: (row) => `${row.receiver} ${row.channel} ${row.address}`, isTall: true, empty: () => empty("No deliveries yet."),
      columns: [
        { key: "receiver", label: "Receiver", kind: "id", show: (row) => row.receiver ?? row.address ?? "–", href: (row) => row.receiver === null ? null : `#/receiver?id=${encodeURIComponent(row.receiver)}` },
        { key: "channel", label: "Channel" }, { key: "state", label: "State" },
        { key: "reason", label: "Reason", kind: "words", show: (row) => row.reason || "–" },
        { key: "attempt", label: "Attempts", isNumber: true, show: (row) => exact(row.attempt) },
        { key: "doubt", label: "Maybe twice", show: (row) => (row.possible_duplicate ? "yes" : "–") },
      ],
    });
    const end = (verb, words) => async () => {
      const given = await askInDialog({ title: `${verb} this notification?`, words, yes: verb, isDanger: true });
      if (given !== null) await this.outcome.run(() => ask(`${path("notifications", this.id)}/${verb.toLowerCase()}`, { method: "POST" }), (answer) => `${counted(answer.cancelled, "delivery", "deliveries")} cancelled${answer.recalled === undefined ? "" : `, ${counted(answer.recalled, "item")} withdrawn`}.`);
      refresh();
    };
    this.pager = new CursorPager(refresh);
    this.root = element("div", {}, lead(this.id, "", element("div", { class: "row" },
      element("button", { type: "button", class: "danger", onclick: end("Cancel", "Cancels deliveries that were not sent yet. Sent ones are not withdrawn.") }, "Cancel"),
      element("button", { type: "button", class: "danger", onclick: end("Recall", "Cancels deliveries that were not sent yet, and withdraws items from inboxes.") }, "Recall"))),
    this.outcome.root, this.facts,
    element("div", { class: "columns" }, panel("Deliveries", { id: "deliveries" }, this.deliveries.root, this.pager.root), panel("Counts", { id: "counts" }, this.counts.root)));
  }

  async refresh(askAgain) {
    const answer = await askAgain(path("notifications", this.id));
    say(this.facts, `${answer.state} · accepted ${time(answer.accepted_ms)} · expires ${time(answer.expires_ms)} · ${counted(answer.receivers, "receiver")}${answer.rest ? ` · ${exact(answer.rest)} not reached` : ""}`);
    this.counts.set(Object.entries(answer.counts).flatMap(([channel, states]) => Object.entries(states).map(([state, count]) => ({ channel, state, count }))));
    const { after } = this.pager;
    const page = await askAgain(`${path("notifications", this.id)}/deliveries`, { query: { after } });
    if (after !== this.pager.after) return;
    this.deliveries.set(page.deliveries);
    this.pager.show(page.after);
  }

  fail(error) { say(this.outcome.root, error.message); }
}
