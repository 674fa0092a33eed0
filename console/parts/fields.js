// The numbers in a subject's messages as lines over time: its content where that is a number, else its first numeric fields.

import { nextFrame } from "../browser.js";
import { element } from "../element.js";
import { number } from "../format.js";
import { Chart } from "./chart.js";

const LINES_MAX = 4;
const POINTS_MAX = 600;

export class FieldChart {
  constructor() {
    this.root = element("div", { hidden: true });
    this.names = null;
    this.points = [];
  }

  add(told) {
    if (told.content === undefined) return;
    this.names ??= nameNumbers(told.content);
    if (this.names.length === 0) { this.names = null; return; }
    const values = this.names.map((name) => read(told.content, name));
    if (values.every((value) => value === null)) return;
    const time_s = told.time / 1000;
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
    if (!this.chart) {
      const lines = this.names.map((name, at) => ({ label: name || "value", colour: `s${at + 1}`, isFilled: this.names.length === 1 }));
      this.chart = new Chart({ id: "fields", title: "Values", lines, show: number, isAnyTime: true });
      this.root.append(this.chart.root);
      this.root.hidden = false;
    }
    this.chart.set([0, ...this.names.map((_, at) => at + 1)].map((column) => this.points.map((point) => point[column])));
  }

  restyle() { this.chart?.restyle(); }
  end() { this.chart?.end(); }
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
