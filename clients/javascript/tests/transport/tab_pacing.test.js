// Pages that count each other, over a real BroadcastChannel: how long each may have a connection.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { TabPacing } from "../../src/transport/http/tab_pacing.js";

const LIMITS = { timeout: 10_000 };
let pages = 0;
const open = [];
afterEach(() => open.splice(0).forEach(({ pacing }) => pacing.leave()));

/** A page whose visibility and protocol a test sets; `until` waits for a pace. */
function join({ isHidden = false, whenHidden = "poll", isMultiplexed = false, base = "http://a:1" } = {}) {
  const waiting = [];
  let turned = () => {};
  const page = {
    id: `page ${++pages}`,
    join(name, heard) {
      const channel = new BroadcastChannel(name);
      channel.onmessage = ({ data }) => heard(data);
      return { say: (word) => channel.postMessage(word), close: () => channel.close() };
    },
    watch: (changed) => ((turned = changed), () => (turned = () => {})),
    isHidden: () => isHidden,
    isMultiplexed: () => isMultiplexed,
  };
  const pacing = new TabPacing(base, page, whenHidden, () => waiting.splice(0).forEach((each) => each()));
  const found = {
    pacing,
    turn: (hidden) => ((isHidden = hidden), turned()),
    until: async (leaseMs) => {
      while ((pacing.pace?.leaseMs ?? null) !== leaseMs) await new Promise((resolve) => waiting.push(resolve));
    },
  };
  open.push(found);
  return found;
}

test("from the fifth visible page on each has its connection for a while, until one goes", LIMITS, async () => {
  const pacing = Array.from({ length: 5 }, () => join());
  for (const { until } of pacing) await until(1_000);
  pacing[2].pacing.leave();
  for (const each of pacing) if (each !== pacing[2]) await each.until(null);
  join();
  for (const each of pacing) if (each !== pacing[2]) await each.until(1_000);
  pacing[0].turn(true);
  await pacing[0].until(500);
  for (const each of [1, 3, 4]) await pacing[each].until(null);
});

test("a hidden page holds no connection, unless it is to stay; over HTTP/2 both do", LIMITS, async () => {
  const paces = [join({ isHidden: true }), join({ isHidden: true, whenHidden: "stay" }), join({ isHidden: true, isMultiplexed: true })];
  assert.deepEqual(paces.map(({ pacing }) => pacing.pace?.restMs ?? null), [4_500, null, null]);
  paces[0].turn(false);
  await paces[0].until(null);
});

test("pages that connect elsewhere are not counted, and neither are clients outside a browser", LIMITS, async () => {
  const here = join();
  Array.from({ length: 6 }, () => join({ base: "http://b:1" }));
  const there = open.at(-1);
  await there.until(1_000);
  assert.equal(here.pacing.pace, null);
  assert.equal(new TabPacing("http://a:1", undefined, "poll", () => {}).pace, null);
});
