// Live: what is published under a pattern, as it comes. The page to look at first on a node with the demonstration.

import { element, panel, say } from "../element.js";
import { writePlace } from "../browser.js";
import { DidYouMean } from "../parts/hints.js";
import { keepClientToken, Live, readClientToken } from "../parts/live.js";
import { Messages } from "../parts/messages.js";

export class Tail {
  constructor({ query, node }) {
    this.pattern = element("input", { name: "pattern", spellcheck: "false", required: true, maxlength: 1024, autocomplete: "off", class: "mono" });
    this.pattern.value = query.get("pattern") ?? "";
    this.token = element("input", { name: "token", type: "password", autocomplete: "off", placeholder: "if the node requires one", maxlength: 65536 });
    this.token.value = readClientToken();
    this.pause = element("button", { type: "button", "aria-pressed": "false", onclick: () => this.togglePause() }, "Pause");
    this.state = element("span", { class: "quiet", role: "status" }, "not connected");
    this.messages = new Messages({ label: "Messages, newest first", hasSubject: true });
    this.hint = new DidYouMean((meant) => { this.pattern.value = meant; this.start(); });
    const form = element("form", { class: "row", autocomplete: "off", onsubmit: (event) => { event.preventDefault(); this.start(); } },
      element("label", { class: "field wide" }, "Pattern", this.pattern), element("label", { class: "field" }, "Token", this.token),
      element("button", { type: "submit", class: "main" }, "Subscribe"), this.pause);
    this.root = element("div", {},
      element("div", { class: "lead" }, element("div", { class: "grow" }, element("h1", {}, "Live"),
        element("p", {}, "Messages exactly as a client receives them. In a pattern * is one segment, ** the rest.")), this.quick = element("div", { class: "row" })),
      panel("Messages", { id: "messages", right: this.state }, form, this.hint.root, this.messages.root));
    if (node) this.begin(node);
  }

  async refresh(node) {
    if (!this.live) this.begin(node);
  }

  // The client port is known: begins with the address's pattern, with the demonstration's, or with everything.
  begin(node) {
    this.live = new Live(node.client.split(":").at(-1), {
      onPush: (push) => this.messages.add(push, Date.now()),
      onState: (text, isFault) => { say(this.state, text); this.state.className = isFault ? "bad" : "quiet"; },
    });
    for (const pattern of node.has_demo ? ["/host/**", "/**"] : ["/**"]) {
      this.quick.append(element("button", { type: "button", onclick: () => { this.pattern.value = pattern; this.start(); } }, pattern === "/**" ? "Everything" : "This host’s telemetry"));
    }
    if (!this.pattern.value) this.pattern.value = node.has_demo ? "/host/**" : "/**";
    this.start();
  }

  start() {
    keepClientToken(this.token.value.trim());
    const pattern = this.pattern.value.trim();
    writePlace("live", { pattern });
    this.hint.show(pattern);
    this.messages.clear();
    this.live?.listen(pattern);
  }

  togglePause() {
    const isPaused = this.pause.getAttribute("aria-pressed") !== "true";
    this.pause.setAttribute("aria-pressed", String(isPaused));
    this.messages.pause(isPaused);
  }

  end() { this.live?.end(); }
}
