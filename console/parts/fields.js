// The numbers in a subject's messages over time, a chart for each: its content where that is a number, else its first numeric fields.

import { nextFrame } from "../browser.js";
import { element } from "../element.js";
import { number } from "../format.js";
import { Chart } from "./chart.js";

const LINES_MAX = 4;
const POINTS_MAX = 600;

export class FieldChart {
  constructor() {
    this.root = element("div", { class: "grid", hidden: true });
    this.charts = [];
    this.names = null;
    this.points = [];
  }

  add(push) {
    if (push.content === undefined) return;
    this.names ??= nameNumbers(push.content);
    if (this.names.length === 0) { this.names = null; return; }
    const values = this.names.map((name) => read(push.content, name));
    if (values.every((value) => value === null)) return;
    const time_s = push.time / 1000;
    // Times must rise; of two in one millisecond both are drawn.
    this.points.push([Math.max(time_s, (this.points.at(-1)?.[0] ?? 0) + 1e-6), ...values]);
    if (this.points.length > POINTS_MAX) this.points.shift();
    if (!this.isWaiting && this.points.length > 1) {
      this.isWaiting = true;
      nextFrame(() => this.draw());
    }
  }

  draw() {
    this.isWaiting = false;
    if (this.charts.length === 0) {
      this.charts = this.names.map((name, at) => new Chart({ id: `field-${at}`, title: name || "Value", isAnyTime: true, isFromZero: false,
        lines: [{ label: "", colour: `s${at + 1}`, isFilled: true }], show: number }));
      this.root.append(...this.charts.map((chart) => chart.root));
      this.root.hidden = false;
    }
    const time_s = this.points.map(([time]) => time);
    this.charts.forEach((chart, at) => chart.set([time_s, this.points.map((point) => point[at + 1])]));
  }

  restyle() { for (const chart of this.charts) chart.restyle(); }
  end() { for (const chart of this.charts) chart.end(); }
}

function nameNumbers(content) {
  if (typeof content === "number") return [""];
  if (content === null || typeof content !== "object" || Array.isArray(content)) return [];
  return Object.keys(content).filter((name) => typeof content[name] === "number").slice(0, LINES_MAX);
}

function read(content, name) {
  const value = name === "" ? content : content?.[name];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
