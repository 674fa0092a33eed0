// Publishing on a subject, as a client does it: content, kind, whether it is kept as the state, an idempotency key; and the outcome.

import { element, panel, say } from "../element.js";
import { readClientToken } from "./live.js";

export class PublishForm {
  // `live`: a promise of the live connection; it may still be opening when the user publishes.
  constructor(subject, live) {
    Object.assign(this, { subject, live });
    this.content = element("textarea", { name: "content", spellcheck: "false", class: "mono", maxlength: 1048576, placeholder: '{"hello": 1}' });
    this.kind = element("select", { name: "kind" }, element("option", { value: "json" }, "JSON"), element("option", { value: "text" }, "Text"));
    this.retain = element("input", { type: "checkbox", name: "retain", checked: true });
    this.key = element("input", { name: "key", maxlength: 256, autocomplete: "off", spellcheck: "false", placeholder: "none" });
    this.token = element("input", { type: "password", name: "token", autocomplete: "off", placeholder: "if the node requires one" });
    this.token.value = readClientToken();
    this.outcome = element("span", { role: "status" });
    const form = element("form", { class: "stack", autocomplete: "off", onsubmit: (event) => { event.preventDefault(); this.publish(); } },
      element("label", { class: "field" }, "Content", this.content),
      element("div", { class: "row" },
        element("label", { class: "field" }, "Kind", this.kind), element("label", { class: "field wide" }, "Idempotency key", this.key)),
      element("label", { class: "field" }, "Token", this.token),
      element("label", { class: "tick" }, this.retain, "retain as the snapshot"),
      element("div", { class: "row" }, element("button", { type: "submit", class: "main" }, "Publish"), this.outcome));
    this.root = panel("Publish", { id: "publish" }, form);
  }

  async publish() {
    if (this.isPublishing) return;
    const command = { publish: this.subject };
    if (!this.retain.checked) command.retain = false;
    if (this.key.value) command.key = this.key.value;
    const content = this.content.value;
    const isJson = this.kind.value === "json";
    if (!isJson) command.text = content;
    try {
      if (isJson) JSON.parse(content);
      this.isPublishing = true;
      this.tell("publishing", "quiet");
      const live = await this.live;
      const token = this.token.value.trim();
      if (token && token !== readClientToken()) await live.renew(token);
      const answer = await live.send(command, isJson ? content : undefined);
      this.tell(`accepted at ${answer.at}${answer.duplicate ? " (duplicate)" : ""}`, "good");
    } catch (error) {
      this.tell(error instanceof SyntaxError ? `This is not JSON: ${error.message}` : error.message, "bad");
    } finally {
      this.isPublishing = false;
    }
  }

  tell(text, tone) {
    say(this.outcome, text);
    this.outcome.className = tone;
  }
}
