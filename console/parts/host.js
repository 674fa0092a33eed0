// The demonstration on the overview: this host's telemetry, as any client is sent it, drawn as it comes.

import { element, panel, say } from "../element.js";
import { bytes } from "../format.js";
import { Chart } from "./chart.js";
import { Live } from "./live.js";

const POINTS_MAX = 300;
const percent = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(0)} %`);

export class Host {
  constructor(node) {
    this.points = [];
    this.latest = {};
    this.chart = new Chart({ id: "host", title: "This host, live", show: percent, isAnyTime: true, lines: [{ label: "CPU", colour: "s6" }, { label: "memory", colour: "s7" }],
      hint: "Messages on /host/**, published by this node and received by this page as by any client" });
    this.words = element("p", { class: "quiet" }, "waiting for its first messages");
    this.root = this.chart.root;
    this.root.append(element("p", { class: "foot" }, this.words, element("a", { href: "#/live?pattern=/host/**" }, "All its messages")));
    this.live = new Live(node.client.split(":").at(-1), { onPush: (push) => this.take(push), onState: (text, isFault) => isFault && say(this.words, text) });
    this.live.listen("/host/**");
  }

  take(push) {
    const name = push.message?.split("/").slice(3).join("/");
    if (!name || typeof push.content !== "object") return;
    this.latest[name] = push.content;
    if (name !== "memory") return;
    const { cpu, memory, load } = this.latest;
    this.points.push([push.time / 1000, cpu?.percent ?? null, memory.percent]);
    if (this.points.length > POINTS_MAX) this.points.shift();
    this.chart.set([0, 1, 2].map((column) => this.points.map((point) => point[column])));
    say(this.words, `${bytes(memory.used_bytes)} of ${bytes(memory.total_bytes)} used${load ? `, load ${load.minutes_1}` : ""}`);
  }

  restyle() { this.chart.restyle(); }

  end() {
    this.live.end();
    this.chart.end();
  }
}
