// Messages as they come, newest first. However fast they are, a frame of the screen shows the newest and counts the rest.

import { nextFrame } from "../browser.js";
import { element } from "../element.js";
import { clock } from "../format.js";

const ROWS_MAX = 200;
const NUMBERS = new Set(["Time", "Position"]); // as the cells below them: set to the right
const CONTENT_CHARACTERS_MAX = 2000;

export class Messages {
  constructor({ label, hasSubject }) {
    this.hasSubject = hasSubject;
    this.body = element("tbody");
    const heads = ["Time", hasSubject && "Subject", "Position", "Content"].filter(Boolean);
    this.nothing = element("div", { class: "empty" }, "Nothing yet.");
    this.root = element("div", {}, element("div", { class: "wide tall", tabindex: 0, role: "region", "aria-label": label },
      element("table", {}, element("caption", { class: "unseen" }, label),
        element("thead", {}, element("tr", {}, heads.map((head) => element("th", { scope: "col", class: NUMBERS.has(head) ? "number" : null }, head)))), this.body)), this.nothing);
    this.clear();
  }

  clear() {
    this.waiting = [];
    this.count = 0;
    this.body.replaceChildren();
    this.nothing.hidden = false;
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    if (!isPaused) this.draw();
  }

  // A push of the JSON encoding; what is no message, gap or loss is passed over.
  add(push, now_ms) {
    if (push.message !== undefined) this.push(push.time, push.message, push.at ?? "", contentOf(push), push.snapshot ? "snapshot" : "");
    else if (push.gap !== undefined) this.push(now_ms, push.gap, push.at ?? "", `gap: ${push.reason}, ${push.missed ?? "an unknown number"} missed`, "lost");
    else if (push.dropped !== undefined) this.push(now_ms, push.dropped, "", `${push.count} dropped`, "lost");
  }

  push(...row) {
    this.count += 1;
    this.waiting.push(row);
    if (this.waiting.length > ROWS_MAX) this.waiting.shift();
    if (this.waiting.length === 1) nextFrame(() => this.draw());
  }

  draw() {
    if (this.isPaused || this.waiting.length === 0) return;
    const rows = this.waiting.reverse().map(([time, subject, at, text, kind]) => element("tr", { class: kind || null },
      element("td", { class: "number" }, clock(time)),
      this.hasSubject ? element("td", { class: "name" }, element("a", { href: `#/subject?name=${encodeURIComponent(subject)}` }, subject)) : null,
      element("td", { class: "number" }, at), element("td", { class: "text" }, text)));
    this.waiting = [];
    this.nothing.hidden = true;
    this.body.prepend(...rows);
    while (this.body.rows.length > ROWS_MAX) this.body.lastElementChild.remove();
  }
}

export function contentOf(push) {
  const text = push.text ?? (push.bytes !== undefined ? `base64 ${push.bytes}` : JSON.stringify(push.content));
  return text.length > CONTENT_CHARACTERS_MAX ? `${text.slice(0, CONTENT_CHARACTERS_MAX)}…` : text;
}
