// The node's last minutes as columns, kept up to date by what is new: /v1/series. Owns the columns of node and shards; a node that began
// anew begins them anew.

import { ask } from "../admin.js";

export class Series {
  constructor() {
    this.clear();
  }

  clear() {
    this.time_s = [];
    this.node = {};
    this.shards = [];
    this.last_ms = 0;
  }

  async refresh() {
    const answer = await ask("/v1/series", { query: { after: this.last_ms || undefined, shards: true } });
    this.add(answer);
  }

  add(answer) {
    if (answer.time_ms.length === 0) return;
    if (this.shards.length !== answer.shards.length || answer.time_ms[0] < this.last_ms) {
      this.clear();
      this.shards = answer.shards.map(() => ({}));
    }
    this.time_s.push(...answer.time_ms.map((ms) => ms / 1000));
    extend(this.node, answer.node);
    answer.shards.forEach((shard, at) => extend(this.shards[at], shard));
    this.last_ms = answer.time_ms.at(-1);
    const over = this.time_s.length - answer.samples_max;
    if (over > 0) [{ time: this.time_s }, this.node, ...this.shards].forEach((columns) => Object.values(columns).forEach((column) => column.splice(0, over)));
  }

  // Times and the named columns of the last `seconds`.
  cut(seconds, columns, names) {
    const from = Math.max(0, this.time_s.length - seconds);
    return [this.time_s.slice(from), ...names.map((name) => sum(columns, name, this.time_s.length).slice(from))];
  }

  now(name) {
    return this.node[name]?.at(-1) ?? null;
  }
}

// "a+b" is the sum of two columns.
function sum(columns, name, length) {
  const parts = name.split("+").map((part) => columns[part]).filter(Boolean);
  if (parts.length === 0) return Array(length).fill(null);
  if (parts.length === 1) return parts[0];
  return parts[0].map((_, at) => parts.reduce((total, part) => total + (part[at] ?? 0), 0));
}

function extend(columns, more) {
  for (const [name, values] of Object.entries(more)) (columns[name] ??= []).push(...values);
}
