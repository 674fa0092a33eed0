// Send: a form for one notification, with a dry run that shows its receivers and how it would look.
//
// Invariant: a form as it is filled has one id until dispatch accepted it, so that trying again sends nothing twice.

import { makeId } from "../../browser.js";
import { element, panel, say } from "../../element.js";
import { counted } from "../../format.js";
import { ask, path } from "../api.js";
import { field, lead, Outcome } from "../show.js";

export class Send {
  constructor() {
    const input = (name, more = {}) => element("input", { name, autocomplete: "off", maxlength: 1000, ...more });
    this.form = element("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); this.send(); } },
      element("div", { class: "row" },
        element("label", { class: "field" }, "To", element("select", { name: "kind" }, element("option", { value: "receiver" }, "a receiver"), element("option", { value: "group" }, "a group"))),
        field("Name", input("name", { required: true }))),
      field("Title", input("title")),
      field("Text", element("textarea", { name: "body" })),
      field("Link", input("url", { type: "url" })),
      element("div", { class: "row" }, field("Template, instead of title and text", input("template")), field("Its data, as JSON", input("data", { placeholder: "{}" }))),
      element("div", { class: "row" }, field("Category", input("category")),
        element("label", { class: "field" }, "Priority", element("select", { name: "priority" }, ...["normal", "high", "bulk"].map((one) => element("option", {}, one))))),
      element("div", { class: "row" }, this.button = element("button", { type: "submit", class: "main" }, "Send"), element("button", { type: "button", onclick: () => this.preview() }, "Preview")));
    this.outcome = new Outcome();
    this.shown = element("div", {});
    this.id = makeId();
    this.form.addEventListener("input", () => { this.id = makeId(); this.shown.replaceChildren(); });
    this.root = element("div", {}, lead("Send", "One notification to one receiver or group. A receiver that does not exist is created."),
      element("div", { class: "columns" }, panel("Notification", { id: "send" }, this.form, this.outcome.root), panel("Preview", { id: "preview" }, this.shown)));
  }

  read() {
    const given = Object.fromEntries([...this.form.elements].filter((one) => one.name).map((one) => [one.name, one.value.trim()]));
    const to = given.kind === "group" ? { group: given.name } : { receiver: { id: given.name } };
    const some = (names) => Object.fromEntries(names.filter((name) => given[name]).map((name) => [name, given[name]]));
    const content = given.template ? { template: given.template, data: JSON.parse(given.data || "{}") } : some(["title", "body", "url"]);
    return { to, content, ...some(["category", "priority"]) };
  }

  async send() {
    if (this.button.disabled) return;
    this.button.disabled = true;
    const answer = await this.outcome.run(() => ask(path("notifications", this.id), { method: "PUT", body: this.read() }), (answer) => `Accepted as ${answer.id}.`);
    this.button.disabled = false;
    if (!answer) return;
    this.id = makeId();
    this.shown.replaceChildren(element("p", {}, element("a", { href: `#/notification?id=${encodeURIComponent(answer.id)}` }, "Watch its deliveries")));
  }

  // The dry run counts receivers that exist; a new one has an inbox alone.
  async preview() {
    const checked = await this.outcome.run(async () => {
      const body = this.read();
      const answer = await ask("/v1/notifications/check", { method: "POST", body });
      const rendered = body.content.template ? await ask(`${path("templates", body.content.template)}/preview`, { method: "POST", body: { data: body.content.data } }) : body.content;
      return { answer, rendered };
    }, () => "Nothing was sent.");
    if (!checked) return;
    const { answer, rendered } = checked;
    const { title, body, url } = rendered.content ?? rendered;
    this.shown.replaceChildren(
      element("article", { class: "panel" }, element("h3", {}, title ?? "(no title)"), element("p", {}, body ?? ""), url ? element("p", { class: "quiet" }, url) : null),
      element("pre", { tabindex: 0, "aria-label": "Answer of the dry run" }, JSON.stringify(answer, null, 1)), element("p", { class: "quiet" }, `${counted(answer.content_bytes, "byte")} of content`));
  }

  fail(error) { say(this.outcome.root, error.message); }
}
