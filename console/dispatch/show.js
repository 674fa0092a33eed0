// What several pages show in the same way: times, counts by state, a field of a form, the pages of a list, and a line that says
// what became of a request.

import { element, say } from "../element.js";
import { exact } from "../format.js";
import { Pager } from "../parts/pager.js";

export const time = (ms) => ms ? new Date(ms).toLocaleString([], { dateStyle: "short", timeStyle: "medium" }) : "–";

// {"inbox": {"sent": 1}} as one line.
export function countsOf(counts) {
  const parts = Object.entries(counts).flatMap(([channel, states]) => Object.entries(states).map(([state, count]) => `${channel} ${exact(count)} ${state}`));
  return parts.join(", ") || "–";
}

export function field(label, input) {
  return element("label", { class: "field wide" }, label, input);
}

export function lead(title, words, ...right) {
  return element("div", { class: "lead" }, element("div", { class: "grow" }, element("h1", {}, title), element("p", {}, words)), ...right);
}

// The pages of a list that dispatch answers by cursor: each answer has the `after` of the next page, and nothing where none follows.
export class CursorPager {
  constructor(refresh) {
    this.cursors = [""];
    this.next = "";
    this.pager = new Pager((step) => this.turn(step) && refresh());
    this.root = this.pager.root;
  }

  // Of the page that is shown; "" is the first.
  get after() { return this.cursors.at(-1); }

  restart() { this.cursors = [""]; }

  // Whether the page is another now: a second press comes before the cursor of the next page is known.
  turn(step) {
    if (step < 0 ? this.cursors.length === 1 : this.next === "") return false;
    if (step < 0) this.cursors.pop();
    else this.cursors.push(this.next);
    this.next = "";
    return true;
  }

  show(after) {
    this.next = after ? String(after) : "";
    const { length } = this.cursors;
    this.pager.show(length > 1 ? `page ${exact(length)}` : "", length > 1, this.next !== "");
  }
}

// A line that says what became of what was asked for; `run` shows an error in it.
export class Outcome {
  constructor() {
    this.root = element("p", { class: "outcome", role: "status" });
  }

  async run(work, words = (answer) => String(answer ?? "Done.")) {
    say(this.root, "Asking…");
    try {
      const answer = await work();
      say(this.root, words(answer));
      return answer;
    } catch (error) {
      say(this.root, error.message);
      return undefined;
    }
  }
}
