// Overview: how the node is, at a glance and over the last minutes; for the node, or shard by shard.

import { choice, element, say } from "../element.js";
import { bytes, counted, number, rate, split } from "../format.js";
import { Busiest } from "../parts/busiest.js";
import { Chart, Spark } from "../parts/chart.js";
import { Host } from "../parts/host.js";
import { Series } from "../parts/series.js";

const byteRate = (value) => `${bytes(value)}/s`;
const cores = (value) => value === null || value === undefined ? "–" : `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`;

// Subjects without those on which the node publishes its own metrics.
const usersSubjects = (s) => (s.now("subjects") === null ? null : Math.max(0, s.now("subjects") - (s.now("own_subjects") ?? 0)));

// [label, column, unit, colour, note]: one number and the line that led to it.
const TILES = [
  ["Connections", "connections", "", "s1", (s) => counted(s.now("subscriptions"), "subscription", "subscriptions", number)],
  ["Published", "published_per_s", "/s", "s1", (s) => counted(usersSubjects(s), "subject", "subjects", number)],
  ["Sent", "bytes_out_per_s", "B/s", "s3", (s) => `${number(s.now("messages_out_per_s"))} messages/s`],
  ["Received", "bytes_in_per_s", "B/s", "s2", (s) => `${number(s.now("messages_in_per_s"))} messages/s`],
  ["CPU", "cpu_cores", "%", "s6", () => "of one core"],
  ["Memory", "memory_bytes", "B", "s7", (s) => `${bytes(s.now("message_bytes"))} in logs`],
  ["Gaps sent", "gaps_per_s", "/s", "s4", (s) => `${number(s.now("recovered_per_s"))} recovered/s`],
  ["Slow consumers", "slow_consumers", "", "s2", (s) => `${number(s.now("window_misses_per_s"))} served from the log/s`],
];

// [id, title, [[label, column, colour, isDashed]], show, hint]; the first line is the one shown shard by shard.
const CHARTS = [
  ["c-messages", "Messages", [["in", "messages_in_per_s", "s2"], ["out", "messages_out_per_s", "s1"], ["published", "published_per_s", "s3", true]], rate,
    "Frames and requests received, messages delivered, and messages accepted"],
  ["c-bytes", "Bytes", [["out", "bytes_out_per_s", "s1"], ["in", "bytes_in_per_s", "s2"]], byteRate, "On the sockets of clients"],
  ["c-connections", "Connections", [["open", "connections", "s1"]], number, "Open connections"],
  ["c-churn", "Connects and disconnects", [["connect", "connects_per_s", "s1"], ["disconnect", "disconnects_per_s", "s4"], ["refused", "refused_per_s", "s2", true]], rate, "Clients that connected, disconnected or were refused"],
  ["c-cpu", "CPU", [["used", "cpu_cores", "s6"]], cores, "Of one core: 200 % is two cores"],
  ["c-memory", "Memory", [["process", "memory_bytes", "s7"], ["logs", "message_bytes", "s1"], ["windows", "window_bytes", "s2"]], bytes, "Resident memory, and the parts used by logs and windows"],
  ["c-gaps", "Gaps and recoveries", [["gaps", "gaps_per_s", "s4"], ["resynced", "resynced_per_s", "s2", true], ["recovered", "recovered_per_s", "s1"]], rate,
    "Gaps sent to clients that missed messages. Recovered clients missed nothing; resynced clients received a gap"],
  ["c-slow", "Slow consumers", [["connections", "slow_consumers", "s2"], ["blocked/s", "blocked_sends_per_s", "s3", true], ["served from the log/s", "window_misses_per_s", "s4"], ["dropped/s", "dropped_per_s", "s6", true]], number,
    "Connections whose socket accepts no more bytes; sends that it did not accept; subscriptions served from the log; at-most-once messages dropped"],
];

const SHARD_CHARTS = [
  ["Connections", "connections", number], ["Messages in", "messages_in_per_s", rate], ["Bytes out", "bytes_out_per_s", byteRate], ["Bytes in", "bytes_in_per_s", byteRate],
  ["CPU", "cpu_cores", cores], ["Windows", "window_bytes", bytes], ["Gaps", "gaps_per_s", rate], ["Full sockets", "blocked_sends_per_s", rate],
];
const SHARD_LINES_MAX = 8;
const RANGES = { 60: "1 min", 300: "5 min", 900: "15 min" };

export class Overview {
  constructor({ node }) {
    this.series = new Series();
    this.seconds = 300;
    this.isByShard = false;
    this.tiles = TILES.map(([label, column, unit, colour, note]) => makeTile(label, column, unit, colour, note));
    this.charts = [];
    this.grid = element("div", { class: "grid" });
    this.root = element("div", {},
      element("div", { class: "lead" }, element("h1", { class: "grow" }, "Overview"),
        choice("Charts for", { node: "Node", shards: "By shard" }, "node", (word) => { this.isByShard = word === "shards"; this.layOut(); }),
        choice("Time", RANGES, "300", (word) => { this.seconds = Number(word); this.draw(); })),
      element("dl", { class: "tiles" }, this.tiles.map((tile) => tile.root)), this.more = element("div", { class: "columns" }), this.grid);
    this.busiest = new Busiest();
    this.more.append(this.busiest.root);
    if (node) this.begin(node);
    this.layOut();
  }

  // Makes the charts of the node, or those of its shards.
  layOut() {
    for (const { chart } of this.charts) chart.end();
    const shards = this.series.shards.slice(0, SHARD_LINES_MAX);
    this.charts = this.isByShard
      ? SHARD_CHARTS.map(([title, column, show]) => ({
        read: () => shards.map((shard) => this.series.cut(this.seconds, shard, [column])[1]),
        chart: new Chart({ id: `s-${column}`, title, show, lines: shards.map((_, at) => ({ label: `shard ${at}`, colour: `s${at + 1}` })) }),
      }))
      : CHARTS.map(([id, title, lines, show, hint]) => ({
        read: () => this.series.cut(this.seconds, this.series.node, lines.map(([, column]) => column)).slice(1),
        chart: new Chart({ id, title, show, hint, lines: lines.map(([label, , colour, isDashed]) => ({ label, colour, isDashed, isFilled: lines.length === 1 })) }),
      }));
    this.grid.replaceChildren(...this.charts.map(({ chart }) => chart.root));
    this.draw();
  }

  // The demonstration, where the node has one, beside the busiest subjects.
  begin(node) {
    this.isBegun = true;
    if (!node.has_demo) return;
    this.host = new Host(node);
    this.more.prepend(this.host.root);
  }

  async refresh(node) {
    if (!this.isBegun) this.begin(node);
    const shards = this.series.shards.length;
    await this.series.refresh();
    if (this.isByShard && shards !== this.series.shards.length) this.layOut();
    else this.draw();
    await this.busiest.refresh();
  }

  draw() {
    const [time_s] = this.series.cut(this.seconds, {}, []);
    // A node that has just begun has no long past: the charts grow with it.
    const span = Math.min(this.seconds, Math.max(60, time_s.length));
    for (const { chart, read } of this.charts) chart.set([time_s, ...read()], span);
    for (const tile of this.tiles) tile.show(this.series, span);
  }

  restyle() {
    for (const { chart } of this.charts) chart.restyle();
    for (const { spark } of this.tiles) spark.restyle();
    this.host?.restyle();
  }

  end() {
    for (const { chart } of this.charts) chart.end();
    for (const { spark } of this.tiles) spark.end();
    this.host?.end();
  }
}

function makeTile(label, column, unit, colour, note) {
  const spark = new Spark(colour);
  const value = element("span"), suffix = element("small"), under = element("dd", { class: "note" });
  const root = element("div", { class: "tile" }, element("dt", {}, label), element("dd", {}, value, suffix), under, spark.root);
  const show = (series, seconds) => {
    const now = series.now(column);
    const [digits, text] = unit === "%" ? [now === null ? "–" : (now * 100).toFixed(now < 0.1 ? 1 : 0), "%"]
      : unit === "/s" ? [split(now)[0], `${split(now)[1]}/s`]
      : unit === "B/s" ? [split(now, "B")[0], `${split(now, "B")[1]}/s`] : split(now, unit);
    say(value, digits);
    say(suffix, text);
    say(under, note(series));
    spark.set(series.cut(seconds, series.node, [column]), seconds);
  };
  return { root, spark, show };
}
