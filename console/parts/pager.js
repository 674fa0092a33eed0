// Back and forth through a list's pages, and how far one is.

import { element, say } from "../element.js";

export class Pager {
  constructor(onTurn) {
    this.text = element("span", { role: "status" });
    this.back = element("button", { type: "button", disabled: true, onclick: () => onTurn(-1) }, "Back");
    this.next = element("button", { type: "button", disabled: true, onclick: () => onTurn(1) }, "Next");
    this.root = element("div", { class: "pager" }, this.text, element("div", { class: "right" }, this.back, this.next));
  }

  show(text, hasBefore, hasMore) {
    say(this.text, text);
    this.back.disabled = !hasBefore;
    this.next.disabled = !hasMore;
  }
}
