// One subject: its state now, its last messages and what comes, the numbers in them as a chart, and a form to publish on it.

import { ask } from "../admin.js";
import { element, panel, say } from "../element.js";
import { ago, bytes, counted, exact, visible } from "../format.js";
import { change } from "../parts/change.js";
import { FieldChart } from "../parts/fields.js";
import { permit } from "../parts/hints.js";
import { Live } from "../parts/live.js";
import { contentOf, Messages } from "../parts/messages.js";
import { PublishForm } from "../parts/publish.js";

export const SUBSCRIBERS = "Subscriptions to exactly this subject. Subscriptions to patterns, such as /rooms/**, are not counted: see Connections.";

const HISTORY = 100;
const ABOUT = { Subscribers: SUBSCRIBERS, "In memory": "Messages in the subject’s log. The journal can have more." };
const UNKNOWN = "The node has no messages on this subject. Check the name.";
const FACTS = {
  Position: (row) => row.at, "In memory": (row) => counted(row.messages, "message"), "Log size": (row) => bytes(row.bytes), Subscribers: (row) => exact(row.subscribers),
  "Last message": (row, now_ms) => ago(row.last_ms, now_ms), Snapshot: (row) => (row.has_snapshot ? "kept" : "none"),
};

export class Subject {
  constructor({ query, node }) {
    this.name = query.get("name") ?? "";
    this.facts = Object.fromEntries(Object.keys(FACTS).map((name) => [name, element("dd", {}, "–")]));
    this.fault = element("div", { class: "fault", role: "alert" });
    this.state = element("span", { class: "quiet", role: "status" }, "not connected");
    this.snapshot = element("pre", { tabindex: 0, role: "region", "aria-label": "The snapshot as JSON" }, "–");
    this.snapshot_at = element("span", { class: "quiet" });
    this.messages = new Messages({ label: "Messages, newest first", hasSubject: false });
    this.fields = new FieldChart();
    this.begun = new Promise((resolve) => { this.tellBegun = resolve; });
    this.form = new PublishForm(this.name, this.begun);
    this.pause = element("button", { type: "button", "aria-pressed": "false", onclick: () => this.togglePause() }, "Pause");
    this.root = element("div", { class: "stack" },
      element("div", { class: "lead" }, element("div", { class: "grow" }, element("p", {}, element("a", { href: "#/subjects" }, "Subjects")), element("h1", { class: "mono" }, this.name || "no subject")),
        this.button = element("button", { type: "button", class: "danger", disabled: true, onclick: () => this.purge() }, "Purge")),
      this.fault, this.outcome = element("p", { class: "outcome", role: "status" }),
      panel("Now", { id: "now" }, element("dl", { class: "facts" }, Object.entries(this.facts).map(([name, value]) => element("div", {}, element("dt", { title: ABOUT[name] }, name), value)))),
      this.fields.root,
      element("div", { class: "columns" },
        panel("History and live", { id: "history", right: element("span", {}, this.state, " ", this.pause) }, this.messages.root),
        element("div", { class: "stack" }, panel("Snapshot", { id: "snapshot", right: this.snapshot_at }, this.snapshot), this.form.root)));
    if (node) this.begin(node);
  }

  begin(node) {
    this.live = new Live(node.client.split(":").at(-1), {
      onPush: (push) => this.take(push),
      onState: (text, isFault) => { say(this.state, text.startsWith("listening") ? "live" : text); this.state.className = isFault ? "bad" : "good"; },
    });
    // First its state, the last messages, then live messages.
    this.isFirst = true;
    this.live.listen(this.name);
    this.tellBegun(this.live);
  }

  take(push) {
    if (push.ok === "subscribed") {
      if (this.isFirst && push.count === 0) this.readOn();
      return;
    }
    if (this.isFirst && push.message !== undefined) {
      this.showSnapshot(push);
      if (push.snapshot) return this.readOn();
    }
    if (push.message !== undefined && !push.snapshot) {
      this.fields.add(push);
      if (push.content === undefined || !this.hasFields || typeof push.content !== "object" || push.content === null) this.showSnapshot(push);
      else this.merge(push);
    } else if (push.snapshot) this.showSnapshot(push);
    this.messages.add(push, Date.now());
  }

  readOn() {
    this.isFirst = false;
    this.live.listenAgain({ last: HISTORY });
  }

  showSnapshot(push) {
    const isObject = push.content !== null && typeof push.content === "object" && !Array.isArray(push.content);
    this.hasFields = isObject;
    this.merged = isObject ? { ...push.content } : null;
    this.draw(push, isObject ? this.merged : push.content);
  }

  // The fields of one message replace those of the state, as the node does it.
  merge(push) {
    if (Array.isArray(push.content)) return this.showSnapshot(push);
    Object.assign(this.merged, push.content);
    this.draw(push, this.merged);
  }

  draw(push, content) {
    say(this.snapshot, push.content === undefined ? contentOf(push) : JSON.stringify(content, null, 2).slice(0, 20000));
    say(this.snapshot_at, push.at ? `at ${push.at}` : "");
  }

  async refresh(node) {
    if (!this.live) this.begin(node);
    const row = await ask("/v1/subject", { query: { subject: this.name } });
    // This page listens to it, so the node knows the name in any case.
    const isUnknown = row.messages === 0 && !row.has_snapshot && row.at.endsWith(".0");
    say(this.fault, isUnknown ? UNKNOWN : "");
    permit(this.button, node, !isUnknown);
    for (const [name, show] of Object.entries(FACTS)) say(this.facts[name], visible(show(row, node.time_ms)));
  }

  // Deletes its messages and snapshot. The numbering continues, so that clients that reconnect receive a gap.
  async purge() {
    const words = "Permanently deletes this subject's messages and snapshot. Clients that reconnect receive a gap.";
    const { answer, fault = "" } = await change({ title: `Purge ${visible(this.name)}?`, yes: "Purge", isDanger: true, words }, "/v1/purge", { method: "POST", query: { subject: this.name } });
    say(this.outcome, fault);
    if (!answer) return;
    say(this.outcome, `${counted(answer.purged, "message")} deleted.`);
    say(this.snapshot, "–");
    say(this.snapshot_at, "");
    this.hasFields = false;
    this.merged = null;
  }

  togglePause() {
    const isPaused = this.pause.getAttribute("aria-pressed") !== "true";
    this.pause.setAttribute("aria-pressed", String(isPaused));
    this.messages.pause(isPaused);
  }

  restyle() { this.fields.restyle(); }
  fail(error) { say(this.fault, error.message); }

  end() {
    this.live?.end();
    this.fields.end();
  }
}
