// A TCP proxy that breaks connections at random: each gets a budget of bytes, drawn from a seeded generator.
//
// When the budget is spent the rest of the chunk is not forwarded and both sides are reset, so that cuts fall inside frames,
// inside the handshake, and between a command and its answer. `calm` ends the cutting, `redirect` moves the target.

import { once } from "node:events";
import { connect, createServer } from "node:net";

/** A generator of numbers in [0, 1) from a seed. */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0; // mulberry32
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Forwards to a port of this machine; counts the connections that it broke, and those that are open. */
export async function startProxy(port, random, meanBytes) {
  const proxy = { url: "", cuts: 0, open: 0, isCalm: false, calm: () => (proxy.isCalm = true), redirect: (to) => (port = to), stop: () => {} };
  const sockets = new Set();
  const server = createServer((here) => {
    const there = connect(port, "127.0.0.1");
    proxy.open++;
    here.on("close", () => proxy.open--);
    let budget = -Math.log(1 - random()) * meanBytes;
    const reset = () => {
      for (const socket of [here, there]) {
        sockets.delete(socket);
        // Of one that is ending Node 20 loses the handle when it is reset: the program would spin at its exit, for ever.
        if (socket.writableEnded) socket.destroy();
        else if (!socket.destroyed) socket.resetAndDestroy();
      }
    };
    for (const [from, to] of [[here, there], [there, here]]) {
      sockets.add(from);
      from.on("error", reset);
      from.on("end", () => to.end());
      from.on("close", () => to.destroy());
      to.on("drain", () => from.resume());
      from.on("data", (chunk) => {
        if (proxy.isCalm || (budget -= chunk.length) >= 0) {
          if (!to.write(chunk)) from.pause();
          return;
        }
        proxy.cuts++;
        to.write(chunk.subarray(0, Math.max(0, Math.floor(budget + chunk.length))));
        setImmediate(reset); // after what was still forwarded
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  proxy.url = `ws://127.0.0.1:${address.port}`;
  proxy.stop = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return proxy;
}
