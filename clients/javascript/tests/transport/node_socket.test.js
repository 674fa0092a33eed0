// The link over Node's sockets against servers that say what a test wants, bytes and all.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { test } from "node:test";

import { nodeSocket } from "../../src/transport/node_socket.js";

const LIMITS = { timeout: 20_000 };
const OPTIONS = { subprotocol: "godwit.v1.json", frameBytesMax: 1_000 };
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const welcome = (key, protocol = OPTIONS.subprotocol) =>
  `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
  `Sec-WebSocket-Accept: ${createHash("sha1").update(key + GUID).digest("base64")}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`;

/** A certificate for 127.0.0.1 that only this test trusts. */
function certificate() {
  const folder = mkdtempSync(join(tmpdir(), "godwit-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"];
  execFileSync("openssl", [...words, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
  const made = { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  return made;
}

/** A server that is handed each socket with the key its client sent. */
async function serve(converse, tls = undefined) {
  const sockets = new Set();
  const server = (tls ? (listener) => createTlsServer(tls, listener) : createServer)((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", (head) => {
      const key = /sec-websocket-key: (\S+)/i.exec(String(head))?.[1] ?? "";
      converse(socket, key, String(head));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const stop = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { url: `${tls ? "wss" : "ws"}://127.0.0.1:${port}/v1/live`, stop };
}

/** Open a link and keep its events. */
function open(url, tls = {}) {
  const frames = [];
  let tell = () => {};
  const note = (what) => {
    frames.push(what);
    tell();
  };
  const link = nodeSocket(tls)(url, OPTIONS, {
    opened: () => note("opened"),
    frame: (frame) => note(frame),
    drained: () => note("drained"),
    closed: (end) => note(end),
  });
  /** Until this many events arrived. */
  const heard = async (count) => {
    while (frames.length < count) await new Promise((resolve) => (tell = () => resolve(undefined)));
    return frames;
  };
  return { link, frames, heard };
}

test("frames come in order, the first of them with the handshake", LIMITS, async () => {
  const { url, stop } = await serve((socket, key, head) => {
    assert.match(head, /^GET \/v1\/live HTTP\/1.1\r\n/);
    assert.match(head, /sec-websocket-version: 13/i);
    socket.write(Buffer.concat([Buffer.from(welcome(key)), Buffer.from([0x81, 1, 0x61])]));
    socket.write(Buffer.from([0x82, 1, 7, 0x81, 1, 0x62, 0x88, 6, 0x10, 0x68, ...Buffer.from("wait")]));
  });
  const { heard } = open(url);
  assert.deepEqual(await heard(5), ["opened", "a", Uint8Array.of(7), "b", { code: 4200, reason: "wait" }]);
  stop();
});

for (const [name, answer, reason] of /** @type {const} */ ([
  ["a refusal, with what it says", () => 'HTTP/1.1 503 X\r\nContent-Length: 14\r\n\r\n{"title":"No"}', /refused with 503: No$/],
  ["a refusal in words of its own", () => "HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\nNo", /refused with 503: No$/],
  ["a wrong proof", (key) => welcome(`${key}x`), /handshake wrongly/],
  ["another subprotocol", (key) => welcome(key, "chat"), /does not speak godwit/],
  ["no HTTP at all", () => "hello\r\n\r\n", /./],
  ["a head without end", () => `HTTP/1.1 101 X\r\nA: ${"a".repeat(99_999)}`, /overflow|too large/i],
])) {
  test(`a server that answers with ${name} is not connected to`, LIMITS, async () => {
    const { url, stop } = await serve((socket, key) => socket.write(answer(key)));
    const { heard } = open(url);
    const [end] = await heard(1);
    assert.equal(end.code, null);
    assert.match(end.reason, reason);
    stop();
  });
}

test("no server at the address ends the link with a reason", LIMITS, async () => {
  const { url, stop } = await serve(() => {});
  stop();
  const [end] = await open(url).heard(1);
  assert.match(end.reason, /ECONNREFUSED/);
});

for (const [name, bytes, code] of /** @type {const} */ ([
  ["a reserved bit", [0xf1, 0], 1002],
  ["text that is not UTF-8", [0x81, 1, 0xff], 1007],
  ["a message over the limit", [0x82, 126, 0x40, 0], 1009],
])) {
  test(`${name} is answered with ${code}`, LIMITS, async () => {
    let answered;
    const answer = new Promise((resolve) => (answered = resolve));
    const { url, stop } = await serve((socket, key) => {
      socket.write(welcome(key));
      socket.write(Uint8Array.from(bytes));
      socket.on("data", answered);
    });
    const { heard } = open(url);
    const [, end] = await heard(2);
    assert.match(end.reason, /broke the framing/);
    assert.equal(end.isTooLarge, code === 1009 ? true : undefined);
    const frame = await answer;
    const mask = frame.subarray(2, 6);
    assert.deepEqual([frame[0], ((frame[6] ^ mask[0]) << 8) | (frame[7] ^ mask[1])], [0x88, code]);
    stop();
  });
}

test("a close whose reason is not UTF-8 is an end with its code", LIMITS, async () => {
  const { url, stop } = await serve((socket, key) => {
    socket.write(welcome(key));
    socket.write(Uint8Array.of(0x88, 4, 0x0f, 0xa2, 0x61, 0xff));
  });
  const [, end] = await open(url).heard(2);
  assert.deepEqual(end, { code: 4002, reason: "a\ufffd" });
  stop();
});

test("a ping is answered, a break without a word is an end", LIMITS, async () => {
  const { url, stop } = await serve((socket, key) => {
    socket.write(welcome(key));
    socket.write(Uint8Array.of(0x89, 2, 5, 6));
    socket.once("data", (pong) => {
      assert.deepEqual([pong[0], pong[6] ^ pong[2], pong[7] ^ pong[3]], [0x8a, 5, 6]);
      socket.destroy();
    });
  });
  const [, end] = await open(url).heard(2);
  assert.equal(end.code, null);
  assert.match(end.reason, /broke/);
  stop();
});

test("a paused link delivers nothing, not even the rest of a chunk, until it is resumed", LIMITS, async () => {
  const bytes = Array.from({ length: 50 }, (_, n) => [0x82, 1, n]).flat();
  const { url, stop } = await serve((socket, key) => {
    socket.write(welcome(key));
    socket.write(Uint8Array.from(bytes));
  });
  const frames = [];
  let ended = () => {};
  const link = nodeSocket()(url, OPTIONS, {
    opened: () => {},
    drained: () => {},
    closed: () => ended(),
    frame: (frame) => {
      frames.push(frame[0]);
      if (frame[0] % 10 === 9) {
        link.pause();
        const before = frames.length;
        setImmediate(() => {
          assert.equal(frames.length, before);
          if (before === 50) ended();
          link.resume();
        });
      }
    },
  });
  await new Promise((resolve) => (ended = () => resolve(undefined)));
  assert.deepEqual(frames, Array.from({ length: 50 }, (_, n) => n));
  link.abort();
  stop();
});

test("a sender that is faster than the socket is asked to wait, and then to continue", LIMITS, async () => {
  let take = () => {};
  const { url, stop } = await serve((socket, key) => {
    socket.write(welcome(key));
    socket.pause();
    take = () => socket.resume();
  });
  const { link, heard } = open(url);
  await heard(1);
  let sent = 0;
  while (link.send(new Uint8Array(65_536))) assert.ok(++sent < 10_000, "it never says stop");
  take();
  assert.equal((await heard(2))[1], "drained");
  link.abort();
  assert.deepEqual((await heard(3))[2], { code: null, reason: "aborted" });
  stop();
});

test("a close waits for the answer, and not for ever", LIMITS, async () => {
  const { url, stop } = await serve((socket, key) => {
    socket.write(welcome(key));
    socket.once("data", () => socket.write(Uint8Array.of(0x88, 2, 0x03, 0xe8)));
  });
  const one = open(url);
  await one.heard(1);
  one.link.close(1000, "é".repeat(100));
  assert.deepEqual((await one.heard(2))[1], { code: 1000, reason: "" });
  stop();
  const deaf = await serve((socket, key) => socket.write(welcome(key)));
  const other = open(deaf.url);
  await other.heard(1);
  other.link.close(1000, "");
  assert.deepEqual((await other.heard(2))[1], { code: null, reason: "aborted" });
  deaf.stop();
});

test("a link that is closed while it opens ends at once", LIMITS, async () => {
  const { url, stop } = await serve(() => {});
  const { link, heard } = open(url);
  link.close(1000, "");
  assert.deepEqual(await heard(1), [{ code: null, reason: "aborted" }]);
  stop();
});

test("a wss:// server is believed when its certificate is, and never otherwise", LIMITS, async () => {
  const tls = certificate();
  const { url, stop } = await serve((socket, key) => socket.write(Buffer.concat([Buffer.from(welcome(key)), Buffer.from([0x81, 1, 0x61])])), tls);
  const trusting = open(url, { ca: tls.cert });
  assert.deepEqual(await trusting.heard(2), ["opened", "a"]);
  trusting.link.abort();
  const [end] = await open(url).heard(1);
  assert.match(end.reason, /self.signed/);
  stop();
});
