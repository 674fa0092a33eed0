// What the operator probably meant, and why a button cannot be used. Owns the sentences, nothing else.

import { element } from "../element.js";

// MQTT's wildcards in the node's words: /rooms/# and rooms/# are /rooms/**; the text itself where it has none.
export function translateMqtt(text) {
  const segments = text.split("/");
  const meant = segments.map((segment, at) => (segment === "+" ? "*" : segment === "#" && at === segments.length - 1 ? "**" : segment)).join("/");
  return meant === text || meant.startsWith("/") ? meant : `/${meant}`;
}

// One line below a field of subjects or patterns; pressed, it puts in what was probably meant.
export class DidYouMean {
  constructor(onTake) {
    this.button = element("button", { type: "button", class: "plain", onclick: () => onTake(this.meant) });
    this.root = element("p", { class: "hint", role: "status", hidden: true }, "Here # and + are ordinary characters. Did you mean ", this.button, "?");
  }

  show(text) {
    this.meant = translateMqtt(text);
    this.root.hidden = this.meant === text;
    this.button.textContent = this.meant;
  }
}

const NO_TOKEN = "This node accepts no changes: set admin.token or admin.token_file.";

// Whether a button that changes the node can be used now; where it cannot, it says why.
export function permit(button, node, isReady = true) {
  button.disabled = !node.can_change || !isReady;
  button.title = node.can_change ? "" : NO_TOKEN;
}
