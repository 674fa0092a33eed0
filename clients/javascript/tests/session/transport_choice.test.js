// Which way is taken next, as values: a WebSocket, events, long poll; what is remembered, and when a WebSocket is tried again.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { TransportChoice } from "../../src/transport_choice.js";

const SETTINGS = { connectTimeoutMs: 10_000, webSocketAgainMs: 1_000, frameBytesMax: 1_000 };
const FAILED = { code: null, reason: "refused" };
let addresses = 0;
const fresh = () => `ws://n${++addresses}/v1/live`;

/** A TransportChoice whose WebSockets open when `isOpen` is true. */
function make(choice = "auto", encoding = "json") {
  const sockets = [];
  const platform = {
    open: (_url, _options, events) => {
      const link = { events, isAborted: false, abort: () => ((link.isAborted = true), events.closed(FAILED)) };
      sockets.push(link);
      return link;
    },
  };
  return { transports: new TransportChoice(choice, encoding, platform, SETTINGS), sockets };
}

test("a WebSocket that is never welcomed is followed by events at once, and these are kept", () => {
  const { transports } = make();
  const url = fresh();
  assert.equal(transports.choose(url).name, "websocket");
  transports.ended(false, FAILED);
  assert.equal(transports.isNextAtOnce, true);
  assert.equal(transports.choose(url).name, "sse");
  transports.worked(() => {});
  transports.ended(true, FAILED);
  assert.deepEqual([transports.isNextAtOnce, transports.choose(url).name], [false, "sse"]);
  transports.stop();
});

test("events that are held back are followed by long poll, which the next client begins with", () => {
  const url = fresh();
  const { transports } = make();
  transports.choose(url);
  transports.ended(false, FAILED);
  transports.choose(url);
  transports.ended(false, { ...FAILED, isUnusable: true });
  assert.deepEqual([transports.isNextAtOnce, transports.choose(url).name], [true, "poll"]);
  assert.equal(make().transports.choose(url).name, "poll");
  assert.equal(make().transports.choose(fresh()).name, "websocket", "another address is another matter");
});

test("if nothing works it begins again with a WebSocket, after a wait", () => {
  const { transports } = make();
  const url = fresh();
  transports.choose(url);
  transports.ended(false, FAILED);
  transports.choose(url);
  transports.ended(false, FAILED);
  assert.deepEqual([transports.isNextAtOnce, transports.choose(url).name], [false, "websocket"]);
});

test("a WebSocket that has worked is given up only after three failures, and never if the server gave a reason", () => {
  const { transports } = make();
  const url = fresh();
  transports.choose(url);
  transports.worked(() => {});
  for (const name of ["websocket", "websocket", "sse"]) {
    transports.ended(false, FAILED);
    assert.equal(transports.choose(url).name, name);
  }
  const other = make().transports;
  other.choose(fresh());
  other.ended(false, { code: 4002, reason: "TokenInvalid" });
  assert.equal(other.choose(fresh()).name, "websocket", "who gives a code was reached");
});

test("while events work, a WebSocket is tried less and less often, and used when it opens", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { transports, sockets } = make();
  const url = fresh();
  transports.choose(url);
  transports.ended(false, FAILED);
  transports.choose(url);
  let left = 0;
  transports.worked(() => left++);
  for (const [count, waitMs] of [[1, 1_000], [2, 2_000], [3, 4_000]]) {
    mock.timers.tick(waitMs - 1);
    assert.equal(sockets.length, count - 1, `not before ${waitMs} ms`);
    mock.timers.tick(1);
    assert.equal(sockets.length, count);
    if (count < 3) sockets.at(-1).events.closed(FAILED);
  }
  sockets.at(-1).events.opened();
  assert.equal(left, 1);
  transports.ended(true, { code: 1000, reason: "" });
  assert.deepEqual([transports.isNextAtOnce, transports.choose(url).name], [true, "websocket"]);
  mock.timers.reset();
});

test("a WebSocket that is taken up and never answered is given up, and tried again", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { transports, sockets } = make();
  transports.choose(fresh());
  transports.ended(false, FAILED);
  transports.worked(() => {});
  mock.timers.tick(1_000);
  assert.equal(sockets.length, 1);
  mock.timers.tick(5_000); // the longest that a handshake may take while another transport is in use
  assert.equal(sockets[0].isAborted, true);
  mock.timers.tick(2_000);
  assert.equal(sockets.length, 2);
  transports.stop();
  mock.timers.reset();
});

test("cut connections do not delay the next WebSocket: none was tried", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { transports, sockets } = make();
  const url = fresh();
  transports.choose(url);
  transports.ended(false, FAILED);
  for (let cuts = 0; cuts < 5; cuts++) {
    transports.choose(url);
    transports.worked(() => {});
    mock.timers.tick(900);
    transports.ended(true, FAILED);
  }
  transports.worked(() => {});
  mock.timers.tick(1_000);
  assert.equal(sockets.length, 1);
  transports.stop();
  mock.timers.reset();
});

test("one way alone is never left, and what cannot be is refused in words", () => {
  for (const choice of ["websocket", "sse", "poll"]) {
    const { transports } = make(choice);
    const url = fresh();
    transports.choose(url);
    transports.ended(false, { ...FAILED, isUnusable: true });
    assert.equal(transports.choose(url).name, choice);
  }
  assert.throws(() => make("carrier pigeon"), TypeError);
  assert.throws(() => make("sse", "binary"), /needs a WebSocket/);
});

test("an address without an HTTP address stays with its WebSocket, and its reason is what the user sees", () => {
  const { transports } = make();
  transports.check(["ws://n/other"]);
  for (let failures = 0; failures < 3; failures++) {
    assert.equal(transports.choose("ws://n/other").name, "websocket");
    transports.ended(false, FAILED);
    assert.equal(transports.isNextAtOnce, false);
  }
  const url = fresh();
  transports.choose(url);
  transports.ended(false, FAILED);
  assert.equal(transports.choose(url).name, "sse", "other addresses of the client are tried over HTTP");
  assert.equal(transports.choose("ws://n/other").name, "websocket");
});

test("an address that HTTP can never use is refused at once, without its query", () => {
  for (const choice of ["sse", "poll"]) {
    make(choice).transports.check([fresh(), "ws://n/behind/v1/live?x=1"]);
    assert.throws(() => make(choice).transports.check([fresh(), "ws://n/v1/stream?secret"]), /^RangeError: the server address ws:\/\/n\/v1\/stream\?\.\.\. has a path/);
  }
});
