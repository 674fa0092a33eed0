// Failures: why deliveries failed, how many, and sending them again.

import { nowMs } from "../../browser.js";
import { element, empty, panel, say } from "../../element.js";
import { counted, exact } from "../../format.js";
import { askInDialog } from "../../parts/dialog.js";
import { Table } from "../../parts/table.js";
import { ask } from "../api.js";
import { CursorPager, lead, Outcome } from "../show.js";

const REPLAY_MAX = 1000;
const COUNT_MS = 10_000; // each count reads up to 100,000 deliveries

export class Failures {
  constructor({ refresh }) {
    this.refreshAgain = () => { this.counted_ms = -Infinity; refresh(); };
    this.counted_ms = -Infinity;
    this.counted = element("p", { class: "quiet" });
    this.pager = new CursorPager(refresh);
    this.outcome = new Outcome();
    this.reasons = new Table({
      label: "Failures by reason", keyOf: (row) => `${row.channel} ${row.state} ${row.reason}`, empty: () => empty("No failed deliveries."),
      columns: [
        { key: "reason", label: "Reason", kind: "words", show: (row) => row.reason || "–" }, { key: "channel", label: "Channel" }, { key: "state", label: "State" },
        { key: "deliveries", label: "Deliveries", isNumber: true, show: (row) => exact(row.deliveries) },
        { key: "replay", label: "Replay", isLabelHidden: true, action: { label: "Send again", run: (row) => this.replay(row), about: (row) => `${row.channel} ${row.state} ${row.reason || "no reason"}` } },
      ],
    });
    this.letters = new Table({
      label: "Failed deliveries", keyOf: (row) => `${row.notification} ${row.receiver} ${row.channel} ${row.address}`, isTall: true, empty: () => empty("No failed deliveries."),
      columns: [
        { key: "notification", label: "Notification", kind: "id", href: (row) => `#/notification?id=${encodeURIComponent(row.notification)}` },
        { key: "receiver", label: "Receiver", kind: "id", show: (row) => row.receiver ?? row.address ?? "–", href: (row) => row.receiver === null ? null : `#/receiver?id=${encodeURIComponent(row.receiver)}` },
        { key: "channel", label: "Channel" }, { key: "state", label: "State" }, { key: "reason", label: "Reason", kind: "words", show: (row) => row.reason || "–" },
      ],
    });
    this.root = element("div", {}, lead("Failures", "Deliveries that failed permanently. Fix the cause first, then send them again."), this.outcome.root,
      element("div", { class: "stack" }, panel("By reason", { id: "reasons" }, this.counted, this.reasons.root), panel("Each of them", { id: "letters" }, this.letters.root, this.pager.root)));
  }

  async replay(row) {
    const given = await askInDialog({ title: "Send them again?", words: `Channel ${row.channel}, state ${row.state}, ${row.reason ? `reason “${row.reason}”` : "no reason"}: up to ${exact(REPLAY_MAX)} deliveries at once.${row.state === "unknown" ? " Some of them may have arrived: they may arrive twice." : ""}`, yes: "Send again" });
    if (given === null) return;
    await this.outcome.run(() => ask("/v1/dead-letters/replay", { method: "POST", body: { channel: row.channel, state: row.state, reason: row.reason, limit: REPLAY_MAX } }), (answer) => `${counted(answer.replayed, "delivery is", "deliveries are")} queued again.`);
    this.refreshAgain();
  }

  async refresh(askAgain) {
    await this.count(askAgain);
    const { after } = this.pager;
    const answer = await askAgain("/v1/dead-letters", { query: { after } });
    if (after !== this.pager.after) return;
    this.letters.set(answer.dead_letters);
    this.pager.show(answer.after);
  }

  // What is asked for while a count is under way is counted again after it.
  async count(askAgain) {
    if (nowMs() - this.counted_ms < COUNT_MS) return;
    this.counted_ms = nowMs();
    try {
      const { reasons, complete } = await askAgain("/v1/dead-letters/reasons");
      this.reasons.set(reasons);
      say(this.counted, complete ? "" : "Not all are counted: there are more.");
    } catch (error) {
      this.counted_ms = -Infinity;
      throw error;
    }
  }

  fail(error) { say(this.outcome.root, error.message); }
}
