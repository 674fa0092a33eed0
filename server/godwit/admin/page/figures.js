// The node's figures: read once a second from /v1/stats, shown as they are and as their change a second.

import { duration, element, number, row } from "/format.js";

// Key in /v1/stats' engine part (a shard's: the sum of all), label, unit, and whether its change a second is what matters.
const HEADLINES = [
  ["shards connections", "connections", "", false],
  ["shards subscriptions", "subscriptions", "", false],
  ["subjects", "subjects", "", false],
  ["accepted", "published / s", "", true],
  ["shards bytes_out", "sent / s", "B", true],
  ["shards bytes_in", "received / s", "B", true],
  ["message_bytes", "kept in logs", "B", false],
  ["shards gaps", "gaps told", "", false],
];

const PERIOD_MS = 1000;
let before = null;

export function watchFigures(onStats) {
  let timer = 0;
  const read = async () => {
    clearTimeout(timer);
    try {
      const answer = await fetch("/v1/stats", { cache: "no-store" });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      const stats = await answer.json();
      show(stats);
      onStats(stats);
    } catch {
      showCondition("unreachable");
      document.getElementById("facts").textContent = "";
    }
    if (!document.hidden) timer = setTimeout(read, PERIOD_MS);
  };
  document.addEventListener("visibilitychange", () => document.hidden || read());
  read();
}

function show(stats) {
  showCondition(stats.condition);
  document.getElementById("node-name").textContent = stats.node;
  document.getElementById("facts").textContent = `version ${stats.version}, up ${duration(stats.uptime_ms)}`;
  document.title = `${stats.node} · Godwit`;
  const now = { at: performance.now(), values: flatten(stats.engine) };
  const perSecond = (key) => before && key in before.values
    ? ((now.values[key] - before.values[key]) * 1000) / (now.at - before.at) : NaN;
  const cards = HEADLINES.filter(([key]) => key in now.values).map(([key, label, unit, isRate]) => {
    const card = element("div");
    card.append(element("dt", label), element("dd", number(isRate ? perSecond(key) : now.values[key], unit)));
    return card;
  });
  document.getElementById("figures").replaceChildren(...cards);
  if (document.querySelector("details").open) {
    const rows = Object.entries(now.values).map(([key, value]) => row([key, number(value), number(perSecond(key))]));
    document.getElementById("all-figures").replaceChildren(...rows);
  }
  before = now;
}

function showCondition(condition) {
  const shown = document.getElementById("condition");
  if (shown.textContent !== condition) shown.textContent = condition;
  shown.dataset.condition = condition;
}

// {a: 1, shards: [{b: 2}, {b: 3}]} as {"a": 1, "shards b": 5, "shard 0 b": 2, "shard 1 b": 3}; the numbers only.
function flatten(engine) {
  const values = {}, sums = {}, each = {};
  for (const [key, value] of Object.entries(engine)) if (typeof value === "number") values[key] = value;
  (engine.shards ?? []).forEach((shard, at) => {
    for (const [key, value] of Object.entries(shard)) {
      if (typeof value !== "number") continue;
      sums[`shards ${key}`] = (sums[`shards ${key}`] ?? 0) + value;
      each[`shard ${at} ${key}`] = value;
    }
  });
  return { ...values, ...sums, ...each };
}
