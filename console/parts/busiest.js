// The subjects that most messages come on now, as bars; each leads to its page. The node's own (/$…), which no leading wildcard
// holds, are left to the list of all: each comes once a second, and on a quiet node they would be all that is seen.

import { ask } from "../admin.js";
import { element, empty, panel, say } from "../element.js";
import { number } from "../format.js";

const ROWS = 8;

export class Busiest {
  constructor() {
    this.list = element("ol", { class: "bars" });
    this.nothing = empty("No subjects yet.", "The first message or subscription creates a subject.");
    this.root = panel("Busiest subjects", { id: "busiest", right: element("a", { href: "#/subjects?sort=rate&order=desc" }, "All subjects") }, this.list, this.nothing);
  }

  async refresh() {
    const { rows } = await ask("/v1/subjects", { query: { pattern: "/**", sort: "rate", order: "desc", limit: ROWS } });
    this.nothing.hidden = rows.length > 0;
    while (this.list.children.length > rows.length) this.list.lastChild.remove();
    while (this.list.children.length < rows.length) {
      this.list.append(element("li", {}, element("a", { class: "mono" }), element("span", { class: "number" }), element("meter", { min: 0, max: 1, "aria-hidden": "true" })));
    }
    const most = Math.max(...rows.map((row) => row.rate_per_s ?? 0), 0.001);
    rows.forEach((row, at) => {
      const [link, rate, meter] = this.list.children[at].children;
      say(link, row.subject);
      link.setAttribute("href", `#/subject?name=${encodeURIComponent(row.subject)}`);
      say(rate, row.rate_per_s === null ? "–" : `${number(row.rate_per_s)}/s`);
      meter.value = (row.rate_per_s ?? 0) / most;
    });
  }
}
