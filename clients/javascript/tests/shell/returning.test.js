// A client over HTTP recovers from every state in which the network, or a node that shuts down, can leave it: once all is well
// again it is served within a minute. The longest part is the silence after which it gives up a request.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";

import { seeded } from "../faults/cutting_proxy.js";
import { Clock, HttpNode, openOverHttp } from "./http_node.js";

const LIMITS = { timeout: 30_000 };
const BACK_MS_MAX = 60_000;
const SETTINGS = { reconnectFirstMs: 20, reconnectMaxMs: 400 };
const POST = "POST /v1/messages";
const WALKS = process.env.LONG ? 300 : 15;
let clock, node, client;

beforeEach(() => {
  [clock, node] = [new Clock(), new HttpNode()];
});
afterEach(async () => {
  await client.close();
  clock.stop();
});

/** A subscription, and what it received. */
function follow(selector, options = {}) {
  const seen = [];
  const note = (message) => seen.push(message.json());
  const subscription = client.subscribe(selector, options, { message: note, gap: () => seen.push("gap"), dropped: () => {} });
  return { subscription, seen };
}

const asks = (request, count = 0) => clock.until(() => node.asked.slice(count).includes(request), 3_000);

async function comesBack({ subscription, seen }) {
  node.heal();
  node.append("/a", 2);
  assert.ok(await clock.until(() => seen.includes(2), BACK_MS_MAX), `it stays away; it last asked ${node.asked.slice(-3)}`);
  assert.deepEqual(seen.filter((each) => each === 2), [2]);
  assert.equal(subscription.counts.missing, 0);
}

for (const [way, get] of [["sse", "POST /v1/stream"], ["poll", "GET /v1/messages"]]) {
  for (const selector of ["/a", "/*"]) {
    describe(`by ${way}, on ${selector}`, LIMITS, () => {
      const begin = () => {
        client = openOverHttp(node, clock, way, SETTINGS);
        return follow(selector);
      };
      const serve = async () => {
        const follower = begin();
        node.append("/a", 1);
        assert.ok(await clock.until(() => follower.seen.includes(1), 1_000));
        return follower;
      };

      for (const harm of ["broken", "swallowed", "headless", "torn"]) {
        for (const request of [POST, get]) {
          test(`a first ${request} that is ${harm}`, LIMITS, async () => {
            node.harm = (each) => (each === request ? harm : undefined);
            const follower = begin();
            assert.ok(await asks(request));
            await comesBack(follower);
          });

          test(`a ${request} that is ${harm} when it reconnects`, LIMITS, async () => {
            const follower = await serve();
            node.harm = (each) => (each === request ? harm : undefined);
            const count = node.asked.length;
            node.cut();
            assert.ok(await asks(request, count));
            await comesBack(follower);
          });
        }
      }

      for (const keepsResumeTokens of selector === "/a" ? [false] : [false, true]) {
        test(`silence${keepsResumeTokens ? " before a join is complete" : ""}`, LIMITS, async () => {
          node.keepsResumeTokens = keepsResumeTokens;
          const follower = await serve();
          node.silence();
          await comesBack(follower);
        });
      }

      test("a node that is gone for long", LIMITS, async () => {
        const follower = await serve();
        node.isDown = true;
        node.cut();
        await clock.until(() => false, 100_000);
        await comesBack(follower);
      });

      test("a node that shuts down, and accepts nothing more of connected clients", LIMITS, async () => {
        node.harm = (request) => {
          if (request === POST) queueMicrotask(() => (node.isDraining = true));
        };
        const follower = begin();
        assert.ok(await asks(get));
        await comesBack(follower);
      });
    });
  }

  test(`by ${way} silence is noticed sooner if that is requested`, LIMITS, async () => {
    client = openOverHttp(node, clock, way, { ...SETTINGS, pingIntervalMs: 2_000, answerTimeoutMs: 1_000, streamTimeoutMs: 1_000 });
    const { seen } = follow("/a");
    node.append("/a", 1);
    assert.ok(await clock.until(() => seen.includes(1), 1_000));
    node.silence();
    node.append("/a", 2);
    assert.ok(await clock.until(() => seen.includes(2), 5_000));
  });

  describe(`by ${way}`, LIMITS, () => {
    beforeEach(() => {
      client = openOverHttp(node, clock, way, SETTINGS);
    });
    const settled = async (publishing) => {
      let outcome = null;
      publishing.then((published) => (outcome = published), (error) => (outcome = error));
      assert.ok(await clock.until(() => outcome !== null, BACK_MS_MAX), "it has no answer");
      return outcome;
    };

    for (const options of [{}, { once: false }]) {
      test(`what a node refuses that leaves goes to the next, with ${JSON.stringify(options)}`, LIMITS, async () => {
        assert.ok(await clock.until(() => client.isConnected, 1_000));
        node.isDraining = true;
        const publishing = [1, 2].map((n) => client.publish("/a", n, options));
        assert.ok(await asks(POST, node.asked.length));
        node.heal();
        for (const each of publishing) assert.match(String((await settled(each)).position), /^7\./);
      });
    }

    test("a publish that is swallowed, while messages still arrive", LIMITS, async () => {
      const { seen } = follow("/a");
      assert.ok(await clock.until(() => node.asked.includes(get), 1_000));
      node.harm = (request) => (request === POST ? "swallowed" : undefined);
      const publishing = client.publish("/b", 1);
      assert.ok(await asks(POST, node.asked.length - 1));
      node.heal();
      for (let n = 0; n < 12; n++) {
        node.append("/a", n);
        assert.ok(await clock.until(() => seen.includes(n), 3_000)); // its own stream may make room for the publish
        await clock.until(() => false, 4_000);
      }
      assert.match(String((await settled(publishing)).position), /^7\./);
    });
  });
}

test("one more for which there is no room is refused, and leaves what there is", LIMITS, async () => {
  client = openOverHttp(node, clock, "sse", SETTINGS);
  const first = follow("/a");
  node.append("/a", 1);
  assert.ok(await clock.until(() => first.seen.includes(1), 1_000));
  node.harm = (request) => (request === "POST /v1/stream" ? "full" : undefined);
  let refused = null;
  client.subscribe("/b").joined().catch((error) => (refused = error));
  assert.ok(await clock.until(() => refused !== null, BACK_MS_MAX));
  assert.equal(refused.code, 4112);
  await comesBack(first);
});

const HARMS = [undefined, undefined, "broken", "swallowed", "headless", "torn"];
const EVENTS = [
  () => node.cut(),
  (random) => node.silence(() => random() < 0.5),
  () => node.heal(),
  () => (node.isDown = true),
  () => (node.isDraining = true),
  () => (node.isSocketMute = true),
  () => {},
];

for (let seed = 1; seed <= WALKS; seed++) {
  test(`whatever happens for a minute, as ${seed} has it`, LIMITS, async () => {
    const random = seeded(seed);
    const choose = (among) => among[Math.floor(random() * among.length)];
    client = openOverHttp(node, clock, choose(["sse", "poll", "auto"]), { ...SETTINGS, itemsMax: choose([4, 200]), webSocketAgainMs: 2_000 });
    const followers = ["/a", "/*", "/b/**"].map((selector) => follow(selector));
    const publishing = [];
    while (clock.now < 60_000) {
      const [harm, harmed] = [choose(HARMS), choose([POST, "POST /v1/stream", "GET /v1/messages"])];
      node.harm = (request) => (request === harmed ? harm : undefined);
      choose(EVENTS)(random);
      publishing.push(client.publish(choose(["/a", "/b", "/b/c"]), publishing.length));
      await clock.until(() => false, random() * 3_000);
    }
    node.heal();
    let answered = 0;
    for (const each of publishing) each.then(() => answered++);
    const lacking = () => followers.map(({ subscription, seen }) => node.countOf(subscription.selector) - seen.length);
    const isAll = () => answered === publishing.length && lacking().every((count) => count === 0);
    const isBack = await clock.until(isAll, 2 * BACK_MS_MAX);
    assert.ok(isBack, `${publishing.length - answered} answers, and ${lacking()} messages lack; it last asked ${node.asked.slice(-5)}`);
    for (const { seen } of followers) assert.equal(new Set(seen).size, seen.length);
  });
}
