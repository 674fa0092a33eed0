// A chart of the last minutes: uPlot in the console's colours, a legend that is text, a sentence for who cannot see it.
// Owns one figure; the data is columns by the second, and colours are read again when the theme changes.

import { onResize, readColour } from "../browser.js";
import { element, say } from "../element.js";
import { clock, counted, number } from "../format.js";
import uPlot from "../vendor/uPlot.esm.js";

const CURSOR = uPlot.sync("console");
const AXIS_FONT = "11px system-ui, sans-serif";

export class Chart {
  // `lines`: [{ label, colour: "s1", isFilled, isDashed }]; `show` turns a value into text.
  constructor({ id, title, lines, show = number, hint = "", isAnyTime = false, isFromZero = true }) {
    Object.assign(this, { isAnyTime, isFromZero });
    this.title = title;
    this.lines = lines;
    this.show = show;
    this.values = lines.map(() => element("b", {}, "–"));
    this.plot = element("div", { class: "plot", role: "img", "aria-label": title });
    const legend = element("ul", { class: "legend" }, lines.map((line, at) => {
      const swatch = element("span", { class: line.isDashed ? "swatch dashed" : "swatch" });
      swatch.style.setProperty("--swatch", `var(--${line.colour})`);
      return element("li", {}, swatch, line.label, this.values[at]);
    }));
    this.root = element("section", { class: "panel chart", "aria-labelledby": `${id}-title` },
      element("header", {}, element("h2", { id: `${id}-title`, title: hint || null }, title), legend), this.plot);
    this.data = [[], ...lines.map(() => [])];
    this.stop = onResize(this.plot, (width, height) => this.size(width, height));
  }

  size(width, height) {
    if (!width || !height) return;
    if (this.uplot) this.uplot.setSize({ width, height });
    else this.draw(width, height);
  }

  draw(width, height) {
    const options = {
      width, height, padding: [8, 22, 0, 0], legend: { show: false },
      cursor: { sync: { key: CURSOR.key, setSeries: false }, y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: {
        x: { time: true, range: (_, low, high) => (this.span ? [high - this.span, high] : [low, high]) },
        y: { range: (_, low, high) => (this.isFromZero ? [Math.min(0, low ?? 0), niceTop(high)] : around(low, high)) },
      },
      axes: [axis({ space: 70, size: 18, values: (_, ticks) => ticks.map((s) => clock(s * 1000, false).slice(0, this.isAnyTime || this.span < 120 ? 8 : 5)) }),
        axis({ space: 32, size: widthOf, values: (_, ticks) => ticks.map((value) => this.show(value)) })],
      series: [{}, ...this.lines.map((line) => ({
        stroke: () => readColour(`--${line.colour}`), width: 1.6, points: { show: false }, dash: line.isDashed ? [4, 3] : undefined,
        fill: line.isFilled ? () => `${readColour(`--${line.colour}`)}22` : undefined, spanGaps: false,
      }))],
      hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
    };
    this.uplot = new uPlot(options, this.data, this.plot);
  }

  // `columns`: times in seconds, then one column a line; `span`: how many seconds are shown, else all.
  set(columns, span = 0) {
    this.data = columns;
    this.span = span;
    this.uplot?.setData(columns);
    this.tell(this.uplot?.cursor.idx);
    const last = columns[0].length - 1;
    const words = this.lines.map((line, at) => {
      const known = columns[at + 1].filter((value) => value !== null);
      const highest = known.length ? known.reduce((a, b) => Math.max(a, b)) : null;
      return `${line.label} ${this.show(columns[at + 1][last])}, at most ${this.show(highest)}`;
    });
    this.plot.setAttribute("aria-label", `${this.title}, the last ${counted(Math.max(1, Math.round(columns[0].length / 60)), "minute")}: ${words.join("; ")}`);
  }

  // The legend's values: under the pointer, else now.
  tell(index) {
    const at = index ?? this.data[0].length - 1;
    this.values.forEach((value, line) => say(value, this.show(this.data[line + 1]?.[at])));
  }

  restyle() { this.uplot?.redraw(false, true); }

  end() {
    this.stop();
    this.uplot?.destroy();
  }
}

// A line without axes, for a tile.
export class Spark {
  constructor(colour) {
    this.colour = colour;
    this.root = element("dd", { class: "spark", "aria-hidden": "true" });
    this.data = [[], []];
    this.stop = onResize(this.root, (width) => this.size(width));
  }

  size(width) {
    if (!width) return;
    if (this.uplot) return void this.uplot.setSize({ width, height: 36 });
    this.uplot = new uPlot({
      width, height: 36, padding: [4, 0, 0, 0], legend: { show: false }, cursor: { show: false }, axes: [{ show: false }, { show: false }],
      scales: { x: { time: true, range: (_, low, high) => (this.span ? [high - this.span, high] : [low, high]) },
        y: { range: (_, low, high) => [Math.min(0, low ?? 0), niceTop(high)] } },
      series: [{}, { stroke: () => readColour(`--${this.colour}`), fill: () => `${readColour(`--${this.colour}`)}1c`, width: 1.4, points: { show: false } }],
    }, this.data, this.root);
  }

  set(columns, span) {
    this.data = columns;
    this.span = span;
    this.uplot?.setData(columns);
  }

  restyle() { this.uplot?.redraw(false, true); }

  end() {
    this.stop();
    this.uplot?.destroy();
  }
}

const axis = (options) => ({
  stroke: () => readColour("--quiet"), font: AXIS_FONT, gap: 4,
  grid: { stroke: () => readColour("--grid"), width: 1 }, ticks: { show: false }, ...options,
});

// As wide as the longest label needs, in steps, so that the plot does not jump with each new number.
const widthOf = (_, labels) => Math.max(48, 8 * Math.ceil((10 + 6.4 * Math.max(0, ...(labels ?? []).map((label) => label.length))) / 8));

function around(low, high) {
  const room = (high - low) * 0.12 || Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

// Room above the highest value, so that a flat line does not lie on the frame.
const niceTop = (high) => (high > 0 ? high * 1.12 : 1);
