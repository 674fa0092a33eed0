// The shell around the session: what it does when a reader is slow, a connection is lost, a limit is met, and at its end.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Signal } from "../../src/signal.js";
import { Client, ClientClosed, CommandRefused, GodwitError, PublishQueueFull, SessionClosed } from "../../src/node.js";
import { LIMITS, QUICK, logOf, numbers, open, take } from "./opening.js";
import { Peer } from "./peer.js";

test("what a link brings that was left is not the next one's", LIMITS, async () => {
  const links = [];
  const news = new Signal();
  const transport = (_url, _options, events) => {
    const end = () => events.closed({ code: 1000, reason: "" });
    const link = { heard: [], end, say: (object) => events.frame(JSON.stringify(object)) };
    links.push(link);
    setImmediate(events.opened);
    const send = (frame) => (link.heard.push(...[JSON.parse(frame)].flat()), news.notify(), true);
    return { send, close: () => {}, abort: () => {} }; // closed in good order, it brings what is on the way
  };
  const client = open({ transport }, { settings: { answerTimeoutMs: 40 } });
  const subscription = client.subscribe("/a");
  const ask = async (place, verb) => {
    const found = () => links[place]?.heard.find((command) => verb in command);
    while (!found()) await news.wait();
    return found().id;
  };
  const serve = async (place, say) => {
    links[place].say({ id: await ask(place, "connect"), ok: "connected", session: "s", node: "n", time: 1 });
    const id = await ask(place, "subscribe");
    say();
    links[place].say({ id, ok: "subscribed", subject: "/a", at: "7.1", outcome: "recovered", count: 0 });
  };
  const bring = (place, ...sequences) => sequences.forEach((n) => links[place].say({ message: "/a", at: `7.${n}`, time: 1, content: n }));
  await ask(0, "connect");
  await serve(0, () => {});
  bring(0, 2);
  links[0].say({ notice: "draining", reconnect_after_ms: 0 });
  await ask(1, "connect");
  await serve(1, () => bring(0, 3));
  bring(0, 4);
  bring(1, 3, 4, 5);
  const seen = [];
  for await (const message of subscription) if (seen.push(message.json()) && seen.at(-1) === 5) break;
  assert.deepEqual([seen, subscription.counts.missing], [[2, 3, 4, 5], 0]);
  const closing = client.close();
  links[1].end();
  await closing;
});

describe("a slow consumer", LIMITS, () => {
  test("makes a link that can stop stop, and misses nothing", async () => {
    const peer = new Peer();
    peer.canPause = true;
    const client = open(peer, { settings: { itemsMax: 4 } });
    const subscription = client.subscribe("/a");
    await subscription.joined();
    for (const n of numbers(30)) peer.append("/a", n);
    assert.equal(peer.pauses, 1);
    assert.deepEqual(await take(subscription, 30), numbers(30));
    assert.ok(peer.pauses > 1);
    assert.equal(peer.heard.filter((command) => "unsubscribe" in command).length, 0);
    await client.close();
  });

  test("is left and taken up again where the link cannot stop, and misses nothing", async () => {
    const peer = new Peer();
    const client = open(peer, { settings: { itemsMax: 4 } });
    const subscription = client.subscribe("/a");
    await subscription.joined();
    for (const n of numbers(30)) peer.append("/a", n);
    await peer.hear("unsubscribe");
    assert.deepEqual(await take(subscription, 30), numbers(30));
    const asked = peer.heard.filter((command) => "subscribe" in command).map(({ after }) => after);
    assert.equal(asked[1], "7.3", "from what it had been sent, its status beside three messages");
    assert.deepEqual([subscription.counts.missing, subscription.counts.gaps], [0, 0]);
    await client.close();
  });

  test("does not delay callers that wait for an answer", async () => {
    const peer = new Peer();
    peer.canPause = true;
    const client = open(peer, { settings: { itemsMax: 4 } });
    const subscription = client.subscribe("/a");
    await subscription.joined();
    for (const n of numbers(30)) peer.append("/a", n);
    assert.equal((await client.publish("/b", 1)).position?.sequence, 1n);
    assert.equal(peer.heard.filter((command) => "unsubscribe" in command).length, 1);
    assert.deepEqual(await take(subscription, 30), numbers(30));
    await client.close();
  });

  test("by callback: one at a time, and what it throws ends the subscription", async () => {
    const peer = new Peer();
    const client = open(peer, { settings: { itemsMax: 4 } });
    const seen = [];
    let running = 0;
    const subscription = client.subscribe("/a", async (message) => {
      assert.equal(++running, 1);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      seen.push(message.json());
      if (seen.length === 20) throw new Error("enough");
    });
    await subscription.joined();
    for (const n of numbers(30)) peer.append("/a", n);
    await assert.rejects(subscription.done, /enough/);
    assert.deepEqual(seen, numbers(20));
    assert.equal(String(subscription.resumePoint.after.get("/a")), "7.19", "the one that failed is not handled");
    assert.equal(subscription.isEnded, true);
    await client.close();
  });
});

describe("a lost connection", LIMITS, () => {
  test("is made again, with everything that was wanted", async () => {
    const peer = new Peer();
    const client = open(peer);
    const subscription = client.subscribe("/a");
    await subscription.joined();
    await client.publish("/a", 0);
    peer.cut();
    peer.append("/a", 1);
    assert.deepEqual((await Promise.all([client.publish("/a", 2), take(subscription, 3)]))[1], [0, 1, 2]);
    const [, again] = await peer.hear("subscribe", 2);
    assert.equal(again.after, "7.1");
    assert.equal(client.loss, "cut");
    await client.close();
  });

  test("is reported in words, also if the server closed with an object", async () => {
    const peer = new Peer();
    const client = open(peer);
    await client.connected();
    peer.isClosed = true;
    peer.cut(4200, '{"name":"Draining","reconnect_after_ms":1}');
    await peer.until(() => !client.isConnected);
    assert.match(client.loss, /^Draining: The node stops/);
    await client.close();
  });

  test("before the answer: the publish is sent again under the same key, and is one message", async () => {
    const peer = new Peer();
    peer.isMute = true;
    const client = open(peer);
    peer.isMute = false;
    await client.connected();
    peer.isMute = true;
    const publishing = client.publish("/a", 1);
    const [first] = await peer.hear("publish");
    peer.keys.set(first.key, peer.append("/a", 1)); // it was taken; the answer is lost
    peer.isMute = false;
    peer.cut();
    assert.deepEqual([String((await publishing).position), (await publishing).isDuplicate], ["7.1", true]);
    await client.close();
  });

  test("with once: false the answer is lost, and that is reported", async () => {
    const peer = new Peer();
    const client = open(peer);
    await client.connected();
    peer.isMute = true;
    const publishing = client.publish("/a", 1, { once: false });
    const [first] = await peer.hear("publish");
    assert.equal("key" in first, false);
    peer.cut();
    await assert.rejects(publishing, { name: "AnswerLost" });
    await client.close();
  });

  test("by a closing code ends everything with it", async () => {
    const peer = new Peer();
    const client = open(peer);
    const subscription = client.subscribe("/a");
    await subscription.joined();
    peer.cut(4004, "not you");
    await assert.rejects(take(subscription, 1), SessionClosed);
    await assert.rejects(client.publish("/a", 1), { code: 4004 });
    await assert.rejects(client.connected(), SessionClosed);
    await client.close();
    assert.equal(peer.urls.length, 1);
  });

  test("continues with the next server", async () => {
    const peer = new Peer();
    peer.isClosed = true;
    const client = new Client(["ws://a", ["ws://b", 2]], { transport: peer.transport, settings: QUICK, log: logOf([]) });
    await peer.until(() => peer.urls.length >= 4);
    assert.deepEqual(peer.urls.slice(0, 2).sort(), ["ws://a/v1/live", "ws://b/v1/live"]);
    assert.deepEqual(peer.urls.slice(2, 4).sort(), ["ws://a/v1/live", "ws://b/v1/live"]);
    await client.close();
  });

  test("an invalid frame ends it, and the client reconnects", async () => {
    const peer = new Peer();
    const client = open(peer);
    const subscription = client.subscribe("/a");
    await subscription.joined();
    peer.say("no json");
    await peer.hear("connect", 2);
    assert.match(client.loss, /FrameInvalid/);
    peer.append("/a", 1);
    assert.deepEqual(await take(subscription, 1), [1]);
    await client.close();
  });
});

describe("a half-open connection", LIMITS, () => {
  test("is found by a ping without an answer", async () => {
    const peer = new Peer();
    const client = open(peer, { settings: { answerTimeoutMs: 40, pingIntervalMs: 20 } });
    const tell = peer.say;
    await peer.hear("connect");
    peer.isMute = true;
    tell.call(peer, { id: 1, ok: "connected", session: "s", node: "n", ping_interval_ms: 20 });
    await peer.hear("ping");
    await peer.hear("connect", 2);
    assert.equal(client.loss, "the server does not answer");
    await client.close();
  });

  test("that never opens is given up in time", async () => {
    const opened = [];
    const hanging = (url) => {
      opened.push(url);
      return { send: () => true, close: () => {}, abort: () => {} };
    };
    const client = new Client("ws://x", { transport: hanging, settings: { ...QUICK, connectTimeoutMs: 30 }, log: logOf([]) });
    while (opened.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.match(client.loss, /no answer/);
    await client.close();
  });
});

describe("limits", LIMITS, () => {
  test("publishes wait in a bounded queue while there is no connection", async () => {
    const peer = new Peer();
    peer.isClosed = true;
    const client = open(peer, { settings: { publishQueueMax: 3 } });
    const waiting = numbers(3).map((n) => client.publish("/a", n));
    await assert.rejects(client.publish("/a", 3), PublishQueueFull);
    peer.isClosed = false;
    assert.deepEqual((await Promise.all(waiting)).map(({ position }) => String(position)), ["7.1", "7.2", "7.3"]);
    await client.close();
  });

  test("a publish that is no longer awaited is not sent", async () => {
    const peer = new Peer();
    peer.isClosed = true;
    const client = open(peer);
    const giving = new AbortController();
    const publishing = client.publish("/a", 1, { signal: giving.signal });
    giving.abort(new Error("never mind"));
    await assert.rejects(publishing, /never mind/);
    await assert.rejects(client.publish("/a", 2, { signal: giving.signal }), /never mind/);
    peer.isClosed = false;
    await client.publish("/a", 3);
    assert.deepEqual(peer.log.get("/a"), [3]);
    await client.close();
  });

  test("many commands go together in few frames, and a large one alone", async () => {
    const peer = new Peer();
    const frames = [];
    const transport = (url, options, events) => {
      const link = peer.transport(url, options, events);
      return { ...link, send: (frame) => link.send((frames.push(JSON.parse(frame)), frame)) };
    };
    const client = open(peer, { transport });
    await client.connected();
    frames.length = 0;
    await Promise.all([...numbers(100).map((n) => client.publish("/a", n)), client.publish("/a", "x".repeat(70_000))]);
    assert.deepEqual(frames.map((frame) => [frame].flat().length), [64, 36, 1]);
    assert.deepEqual(peer.log.get("/a").slice(0, 100), numbers(100));
    await client.close();
  });

  test("a link that wants no more is waited for", async () => {
    const peer = new Peer();
    let [sent, drained] = [0, () => {}];
    const transport = (url, options, events) => {
      const link = peer.transport(url, options, events);
      drained = events.drained;
      return { ...link, send: (frame) => (sent++, link.send(frame), sent !== 2) };
    };
    const client = open(peer, { transport });
    await client.connected();
    await client.publish("/a", 1);
    const second = client.publish("/a", 2);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(sent, 2);
    drained();
    await second;
    assert.equal(sent, 3);
    await client.close();
  });
});

describe("the end", LIMITS, () => {
  test("settles everything, and comes once", async () => {
    const peer = new Peer();
    peer.isClosed = true;
    const client = open(peer);
    const publishing = client.publish("/a", 1);
    const requesting = client.request("/a", 1);
    const reading = take(client.subscribe("/a"), 1);
    const watching = client.watch("/a")[Symbol.asyncIterator]().next();
    const settled = Promise.allSettled([publishing, requesting]);
    await Promise.all([client.close(), client.close()]);
    for (const { reason } of /** @type {any[]} */ (await settled)) assert.ok(reason instanceof ClientClosed);
    assert.deepEqual([await reading, (await watching).done], [[], true]);
    await assert.rejects(client.publish("/a", 1), ClientClosed);
    assert.throws(() => client.subscribe("/b"), GodwitError);
  });

  test("of a subscription that is refused reaches its listener", async () => {
    const peer = new Peer();
    peer.isMute = true;
    const client = open(peer);
    const [connect] = await peer.hear("connect");
    peer.say({ id: connect.id, ok: "connected", session: "s", node: "n" });
    const errors = [];
    const subscription = client.subscribe("/a", {}, { message: () => {}, error: (error) => errors.push(error) });
    const [ask] = await peer.hear("subscribe");
    peer.say({ id: ask.id, error: 4113, name: "SubscribeForbidden", reason: "no", retry: false });
    await subscription.done;
    assert.ok(errors[0] instanceof CommandRefused);
    await client.close();
  });

  test("of the replies rejects the request, and a later request subscribes again", async () => {
    const peer = new Peer();
    const client = open(peer);
    peer.refuses = "subscribe";
    await assert.rejects(client.request("/svc", 1), CommandRefused);
    peer.refuses = null;
    await assert.rejects(client.request("/svc", 1, { timeoutMs: 20 }), { name: "ReplyTimeout" });
    assert.equal((await peer.hear("subscribe", 2)).length, 2);
    await client.close();
  });

  test("an invalid request is refused at once", () => {
    const peer = new Peer();
    assert.throws(() => new Client("http://x"), RangeError);
    assert.throws(() => open(peer, { encoding: "xml" }), RangeError);
    assert.throws(() => open(peer, { settings: { itemsMax: 0 } }), RangeError);
  });

  test("comes by `await using` too", async () => {
    const client = open(new Peer());
    await client[Symbol.asyncDispose]();
    await assert.rejects(client.connected(), ClientClosed);
  });

  test("a subscription and a watch come by `await using` too", async () => {
    const peer = new Peer();
    const client = open(peer);
    const [subscription, watch] = [client.subscribe("/a"), client.watch("/b")];
    await subscription.joined();
    for (const each of [subscription, watch]) await each[Symbol.asyncDispose]();
    assert.ok(subscription.isClosed && watch.isClosed);
    assert.equal((await peer.hear("unsubscribe", 1)).length + (await peer.hear("unwatch", 1)).length, 2);
    await client.close();
  });
});

test("gaps and drops among plain messages are logged, never silent", LIMITS, async () => {
  const [peer, lines] = [new Peer(), []];
  const client = open(peer, { log: logOf(lines) });
  const subscription = client.subscribe("/a");
  const seen = [];
  client.subscribe("/b", (message) => seen.push(message.json()));
  await subscription.joined();
  await peer.hear("subscribe", 2);
  await client.publish("/c", 1);
  for (const subject of ["/a", "/b"]) {
    peer.say({ gap: subject, after: "7.0", at: "7.8", reason: "expired", missed: 8 }, { dropped: subject, count: 3 });
    peer.say({ message: subject, at: "7.9", time: 1, content: 9 });
  }
  assert.deepEqual(await take(subscription, 1), [9]);
  while (seen.length === 0) await new Promise((resolve) => setImmediate(resolve));
  for (const subject of ["/a", "/b"]) {
    assert.ok(lines.some((line) => line.includes(`gap on ${subject}: 8 messages missed (expired)`)), lines.join("\n"));
    assert.ok(lines.some((line) => line.includes(`3 standard messages dropped on ${subject}`)));
  }
  await client.close();
});
