// A link over HTTP against answers made up: tokens in requests, refusals passed to the right subscription, answers that are too large or invalid.

import assert from "node:assert/strict";
import { test } from "node:test";

import { httpTransport } from "../../src/transport/http/http_link.js";

const LIMITS = { timeout: 10_000 };

/** An answer as fetch gives it. */
const answer = (status, body, headers = {}) => new Response(body, { status, headers });
const problem = (status, code, title, headers = {}) =>
  answer(status, JSON.stringify({ title, status, detail: "because", code, retry: status >= 429 }), headers);
const events = (...texts) =>
  answer(200, new ReadableStream({ start: (to) => texts.forEach((text) => to.enqueue(new TextEncoder().encode(text))) }), {
    "content-type": "text/event-stream",
  });

/** A link whose requests are answered by `reply`; its requests, its events, and how it ended. */
function open(way, reply, frameBytesMax = 10_000) {
  const asked = [];
  const pushes = [];
  const waiting = [];
  const ring = () => waiting.splice(0).forEach((each) => each());
  let end = null;
  const ask = async (url, request) => {
    asked.push({ url, ...request });
    const given = await reply(new URL(url), request, asked.length);
    request.signal?.addEventListener("abort", () => given.body?.locked || given.body?.cancel());
    return given;
  };
  const link = httpTransport(way, { ask, now: () => performance.now() })("ws://n:1/v1/live", { subprotocol: "", frameBytesMax, streamTimeoutMs: 300 }, {
    opened: () => {},
    frame: (text) => (pushes.push(JSON.parse(text)), ring()),
    drained: () => {},
    closed: (found) => ((end = found), ring()),
  });
  const say = (...commands) => link.send(commands.length === 1 ? JSON.stringify(commands[0]) : JSON.stringify(commands));
  const until = async (found) => {
    while (!found()) await new Promise((resolve) => waiting.push(resolve));
    return found();
  };
  return { link, say, asked, pushes, ended: () => until(() => end), heard: (test) => until(() => pushes.flat().find(test)) };
}

test("a token that no head can hold refuses the connect, as a WebSocket does", LIMITS, async () => {
  const { link, say, heard } = open("sse", () => problem(431, 4155, "HeaderTooBig"));
  say({ id: 1, connect: { token: "x".repeat(60_000) } });
  assert.equal((await heard(({ id }) => id === 1)).error, 4155);
  assert.equal(link.isEnded, false);
  link.close(1000, "");
});

test("each request shows the token of the last connect", LIMITS, async () => {
  const { link, say, asked, heard, ended } = open("poll", () => answer(200, "[]"));
  say({ id: 1, connect: { token: "one" } });
  await heard(({ id }) => id === 1);
  say({ id: 2, connect: { token: "two" } });
  await heard(({ id }) => id === 2);
  assert.deepEqual(asked.map(({ url, headers }) => [url, headers.Authorization]), [
    ["http://n:1/v1/messages", "Bearer one"],
    ["http://n:1/v1/messages", "Bearer two"],
  ]);
  assert.ok(asked.every(({ url }) => !url.includes("one") && !url.includes("two")), "a token stands in no address");
  link.close(1000, "");
  assert.equal((await ended()).code, 1000);
});

for (const [code, status, title] of [[4002, 401, "TokenInvalid"], [4005, 401, "TokenRevoked"], [4200, 503, "Draining"]]) {
  test(`a refusal with ${code} ends the link with that code`, LIMITS, async () => {
    const { say, ended } = open("sse", () => problem(status, code, title, status === 503 ? { "retry-after": "2" } : {}));
    say({ id: 1, connect: { token: "t" } });
    const end = await ended();
    assert.equal(end.code, code);
    if (status === 503) assert.equal(JSON.parse(end.reason).reconnect_after_ms, 2000);
  });
}

for (const command of [{ subscribe: "/a" }, { publish: "/a", content: 1 }]) {
  test(`a node that leaves takes nothing more: the link ends, and the next one asks, after ${Object.keys(command)[0]}`, LIMITS, async () => {
    const { say, ended, pushes } = open("sse", () => problem(503, 4124, "NodeDraining", { "retry-after": "1" }));
    say({ id: 1, ...command });
    const { code, reason } = await ended();
    assert.deepEqual([code, JSON.parse(reason).reconnect_after_ms], [null, 1000]);
    assert.deepEqual(pushes.map(({ id, error }) => [id, error]), "publish" in command ? [[1, 4124]] : [], "a publish was not taken for sure");
  });
}

test("a refusal of somebody between, which is no node's, is a connection that failed", LIMITS, async () => {
  const { say, ended } = open("poll", () => answer(502, "<html>bad gateway</html>"));
  say({ id: 1, connect: {} });
  assert.equal((await ended()).code, null);
});

test("what answers something else to an empty array of publishes is no node", LIMITS, async () => {
  const { say, ended } = open("poll", () => answer(200, "<html>welcome</html>"));
  say({ id: 1, connect: {} });
  assert.match((await ended()).reason, /not a Godwit node/);
});

for (const way of /** @type {const} */ (["sse", "poll"])) {
  test(`by ${way} a refusal reaches only its subscription, and the others continue`, LIMITS, async () => {
    const { link, say, heard, pushes } = open(way, (url) => {
      if (url.search.includes("/secret")) return problem(403, 4113, "SubscribeForbidden");
      const refused = { id: 1, error: 4113, name: "SubscribeForbidden", reason: "because", retry: false };
      if (way === "poll") return url.search.includes("wait=0") ? answer(200, "[]", { "godwit-position": "7.0" }) : new Promise(() => {});
      const subscribed = '{"id":2,"ok":"subscribed","subject":"/a","at":"7.0","outcome":"live","count":0}';
      return events(`event: refused\ndata: ${JSON.stringify(refused)}\n\nevent: subscribed\nid: 7.0\ndata: ${subscribed}\n\n`);
    });
    say({ id: 1, subscribe: "/secret" }, { id: 2, subscribe: "/a" });
    assert.deepEqual(await heard(({ id }) => id === 1), { id: 1, error: 4113, name: "SubscribeForbidden", reason: "because", retry: false });
    assert.equal((await heard(({ id }) => id === 2)).ok, "subscribed");
    assert.equal(pushes.flat().filter(({ error }) => error).length, 1);
    link.abort();
  });
}

test("after an interrupted answer a poll requests fewer messages, on the next link too, and more after complete ones", LIMITS, async () => {
  const limits = [];
  const whole = () => answer(200, "[]", { "godwit-position": "7.0" });
  const broken = () => answer(200, new ReadableStream({ start: (to) => to.error(new TypeError("terminated")) }), { "godwit-position": "7.0" });
  const ask = async (url, { method }) => {
    if (method === "POST") return answer(200, "[]");
    limits.push(Number(new URL(url).searchParams.get("limit")));
    if (limits.length === 2) throw new TypeError("fetch failed"); // by a proxy that had waited for the whole answer
    return limits.length === 1 ? broken() : limits.length < 6 ? whole() : new Promise(() => {});
  };
  const transport = httpTransport("poll", { ask, now: () => performance.now() });
  const follow = () =>
    new Promise((closed) => {
      const events = { opened: () => {}, frame: () => {}, drained: () => {}, closed };
      const link = transport("ws://n:1/v1/live", { subprotocol: "", frameBytesMax: 10_000 }, events);
      link.send(JSON.stringify({ id: 1, subscribe: "/a" }));
      if (limits.length === 2) setImmediate(function look() { limits.length < 6 ? setImmediate(look) : link.abort(); });
    });
  for (let links = 0; links < 3; links++) await follow();
  assert.deepEqual(limits, [1_000, 250, 62, 124, 248, 496]);
});

test("a link that ends while it is paused asks for nothing more", LIMITS, async () => {
  const { link, say, asked, heard, ended } = open("poll", () => answer(200, "[]", { "godwit-position": "7.0" }));
  say({ id: 1, subscribe: "/a" });
  await heard(({ id }) => id === 1);
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  link.pause();
  await settle();
  const count = asked.length;
  link.abort();
  await ended();
  await settle();
  assert.equal(asked.length, count);
});

test("publishes that are refused together are tried one by one, and only the invalid one is refused", LIMITS, async () => {
  const { link, say, heard, asked } = open("poll", (_, { body }) => {
    const commands = JSON.parse(body);
    if (commands.some(({ publish }) => publish === "/huge")) return problem(413, 4156, "BodyTooBig");
    return answer(200, JSON.stringify(commands.map(({ id }) => ({ id, ok: "published", at: `7.${id}` }))));
  });
  say({ id: 1, publish: "/a", content: 1 }, { id: 2, publish: "/huge", content: 2 }, { id: 3, publish: "/a", content: 3 });
  assert.equal((await heard(({ id }) => id === 2)).error, 4156);
  assert.equal((await heard(({ id }) => id === 1)).at, "7.1");
  assert.equal((await heard(({ id }) => id === 3)).at, "7.3");
  assert.equal(asked.length, 4, "all at once, then each alone");
  link.abort();
});

test("an event that is larger than allowed ends the link", LIMITS, async () => {
  const { say, ended } = open("sse", () => events(`data: {"message":"/a","text":"${"x".repeat(20_000)}"}\n\n`));
  say({ id: 1, subscribe: "/a" });
  assert.match((await ended()).reason, /more than 10000/);
});

test("an answer that is not a stream, and a silent stream, end the link; after a silent one another transport may work", LIMITS, async () => {
  const none = open("sse", () => answer(200, "<html></html>", { "content-type": "text/html" }));
  none.say({ id: 1, subscribe: "/a" });
  assert.match((await none.ended()).reason, /not a stream of events/);
  const mute = open("sse", () => events());
  mute.say({ id: 1, subscribe: "/a" });
  assert.equal((await mute.ended()).isUnusable, true);
});

test("a stream that a node closes ends the link with the node's code", LIMITS, async () => {
  const { say, ended } = open("sse", () => events('event: closed\ndata: {"closed":4003,"name":"TokenExpired","reason":"late","retry":false}\n\n'));
  say({ id: 1, subscribe: "/a" });
  assert.deepEqual(await ended(), { code: 4003, reason: "late" });
});

test("what needs a WebSocket is refused in words", LIMITS, async () => {
  const { link, say, heard } = open("poll", () => answer(200, "[]"));
  say({ id: 1, watch: "/a/*" });
  assert.match((await heard(({ id }) => id === 1)).reason, /watch needs a WebSocket or events/);
  link.abort();
});

for (const way of /** @type {const} */ (["sse", "poll"])) {
  test(`by ${way} a command that is withdrawn before the node answers has its answer, too`, LIMITS, async () => {
    const { link, say, heard, pushes } = open(way, () => new Promise(() => {}));
    say({ id: 1, subscribe: "/a" }, { id: 2, subscribe: "/b" }, { id: 3, unsubscribe: "/a" }, { id: 4, subscribe: "/b" }, { id: 5, unsubscribe: "/b" });
    await heard(({ id }) => id === 5);
    assert.deepEqual(pushes.map(({ id, ok }) => [id, ok]), [1, 3, 2, 4, 5].map((id) => [id, "unsubscribed"]));
    if (way === "sse") {
      say({ id: 6, watch: "/w" }, { id: 7, unwatch: "/w" });
      await heard(({ id }) => id === 7);
      assert.deepEqual(pushes.slice(5).map(({ id, ok }) => [id, ok]), [6, 7].map((id) => [id, "unwatched"]));
    }
    link.close(1000, "");
  });
}

test("the reason of a request that fails is one line, with its cause", LIMITS, async () => {
  const { say, ended } = open("poll", () => Promise.reject(new TypeError("fetch failed", { cause: new Error("wrong version\nnumber\n") })));
  say({ id: 1, connect: {} });
  assert.equal((await ended()).reason, "TypeError: fetch failed: Error: wrong version number");
});
