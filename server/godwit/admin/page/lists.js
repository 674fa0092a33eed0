// Subjects and connections: a page at a time from /v1/subjects and /v1/connections, asked for when the user asks.

import { element, number, row } from "/format.js";

const PAGE_ROWS = 50;

export class List {
  // `columns` are [key, label, format]; `onPick` makes the first column a button.
  constructor(name, filterKey, columns, onPick) {
    this.url = `/v1/${name}`;
    this.filterKey = filterKey;
    this.columns = columns;
    this.onPick = onPick;
    this.form = document.getElementById(`${name}-form`);
    this.table = document.getElementById(name);
    this.next = this.form.querySelector(".next");
    this.status = this.form.querySelector(".status");
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.read(""); });
    this.next.addEventListener("click", () => this.read(this.next.value));
  }

  async read(after) {
    const query = new URLSearchParams({ limit: PAGE_ROWS });
    if (after) query.set("after", after);
    const filter = this.form.elements.filter.value.trim();
    if (filter) query.set(this.filterKey, filter);
    let page;
    try {
      const answer = await fetch(`${this.url}?${query}`, { cache: "no-store" });
      page = await answer.json();
      if (!answer.ok) throw new Error(page.title);
    } catch (error) {
      this.status.textContent = error.message;
      this.status.classList.add("error");
      return;
    }
    this.status.classList.remove("error");
    this.status.textContent = `${page.rows.length} shown${page.next === null ? "" : ", there are more"}`;
    this.next.disabled = page.next === null;
    this.next.value = page.next ?? "";
    this.show(page.rows);
  }

  show(rows) {
    const head = element("thead");
    head.append(row(this.columns.map(([, label]) => element("th", label, { scope: "col" }))));
    const body = element("tbody");
    for (const found of rows) body.append(row(this.columns.map(([key, , format], at) => this.cell(found, key, format, at))));
    this.table.replaceChildren(head, body);
  }

  cell(found, key, format = String, at = 0) {
    const text = found[key] === undefined || found[key] === null ? "–" : format(found[key]);
    if (at > 0 || !this.onPick) return element("td", text);
    const button = element("button", text, { type: "button", class: "link" });
    button.addEventListener("click", () => this.onPick(found[key]));
    const cell = element("td");
    cell.append(button);
    return cell;
  }
}

export const count = (value) => number(value);
