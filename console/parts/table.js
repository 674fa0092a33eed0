// A table that is refreshed every second without losing the focus, a selection or its place: rows are kept by their key, cells change
// only where their text differs.

import { element, say } from "../element.js";

export class Table {
  // Columns: { key, label, show(row), isNumber, isSortable, href(row), meter(row), about: what is counted, in a sentence, action: { label, run(row), kind, permit(button, node) } }.
  constructor({ label, columns, keyOf, onSort, sort, order, isTall, empty }) {
    Object.assign(this, { columns, keyOf, onSort, sort, order, empty });
    this.rows = new Map();
    this.heads = columns.map((column) => this.makeHead(column));
    this.body = element("tbody");
    this.table = element("table", { class: columns.some((column) => column.isSortable) ? "sortable" : null }, element("caption", { class: "unseen" }, label), element("thead", {}, element("tr", {}, this.heads)), this.body);
    this.nothing = element("div", {});
    this.root = element("div", {}, element("div", { class: isTall ? "wide tall" : "wide", tabindex: 0, role: "region", "aria-label": label }, this.table), this.nothing);
    this.markSort();
  }

  makeHead(column) {
    const head = element("th", { scope: "col", class: column.isNumber ? "number" : null, title: column.about ?? null });
    if (!column.isSortable) head.append(column.label);
    else head.append(element("button", { type: "button", onclick: () => this.resort(column) }, column.label));
    if (column.isLabelHidden) head.replaceChildren(element("span", { class: "unseen" }, column.label));
    return head;
  }

  resort(column) {
    const first = column.isNumber ? "desc" : "asc";
    this.order = this.sort === column.key ? (this.order === "asc" ? "desc" : "asc") : first;
    this.sort = column.key;
    this.markSort();
    this.onSort(this.sort, this.order);
  }

  markSort() {
    this.columns.forEach((column, at) => {
      if (column.key === this.sort && column.isSortable) this.heads[at].setAttribute("aria-sort", this.order === "asc" ? "ascending" : "descending");
      else this.heads[at].removeAttribute("aria-sort");
    });
  }

  set(rows, node) {
    const keys = new Set(rows.map(this.keyOf));
    for (const [key, line] of this.rows) if (!keys.has(key)) { line.remove(); this.rows.delete(key); }
    rows.forEach((row, at) => {
      const key = this.keyOf(row);
      let line = this.rows.get(key);
      if (!line) this.rows.set(key, line = this.makeLine(row));
      if (this.body.children[at] !== line) this.body.insertBefore(line, this.body.children[at] ?? null);
      line.row = row;
      this.columns.forEach((column, index) => fill(line.children[index], column, row, node));
    });
    if (rows.length > 0) this.nothing.replaceChildren();
    else if (!this.nothing.firstChild && this.empty) this.nothing.append(this.empty());
  }

  makeLine(row) {
    const line = element("tr");
    line.row = row;
    for (const column of this.columns) {
      const kind = [column.isNumber && "number", column.kind, column.meter && "bar", column.action && "action"].filter(Boolean).join(" ");
      const cell = element("td", { class: kind || null, "data-label": column.label });
      if (column.href) cell.append(element("a"));
      if (column.action) cell.append(element("button", { type: "button", class: column.action.kind, onclick: () => column.action.run(line.row) }, column.action.label));
      if (column.meter) cell.append(element("span"), element("meter", { min: 0, max: 1, "aria-hidden": "true" }));
      line.append(cell);
    }
    return line;
  }
}

function fill(cell, column, row, node) {
  if (column.action) {
    cell.firstChild.setAttribute("aria-label", `${column.action.label} ${column.action.about(row)}`);
    return void column.action.permit?.(cell.firstChild, node);
  }
  const target = column.href || column.meter ? cell.firstChild : cell;
  say(target, column.show ? column.show(row) : String(row[column.key] ?? "–"));
  if (column.title) cell.title = column.title(row);
  if (column.href) {
    const to = column.href(row);
    if (to === null) target.removeAttribute("href");
    else target.setAttribute("href", to);
  }
  if (column.meter) {
    const share = column.meter(row);
    cell.lastChild.hidden = share === null;
    cell.lastChild.value = share ?? 0;
  }
  if (column.tone) cell.className = [column.isNumber && "number", column.kind, column.tone(row)].filter(Boolean).join(" ");
}
