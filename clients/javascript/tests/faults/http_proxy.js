// An HTTP proxy as many offices have one: it forwards requests, and knows no Upgrade. It can keep events back, too.

import { once } from "node:events";
import { createServer, request } from "node:http";

/**
 * Forwards to a port of this machine. `upgrades` counts WebSockets refused; with `allowsUpgrade` they pass.
 * @param {number} port
 */
export async function startHttpProxy(port) {
  const proxy = { url: "", port: 0, upgrades: 0, paths: [], buffersEvents: false, allowsUpgrade: false, redirect: (to) => (port = to), stop: () => {} };
  const server = createServer((incoming, outgoing) => {
    proxy.paths.push(`${incoming.method} ${incoming.url}`);
    const forward = request({ host: "127.0.0.1", port, path: incoming.url, method: incoming.method, headers: incoming.headers });
    forward.on("response", (answer) => {
      const isHeld = proxy.buffersEvents && answer.headers["content-type"] === "text/event-stream";
      if (isHeld) {
        answer.resume(); // and is never answered
        return;
      }
      const { connection: _, ...headers } = answer.headers;
      outgoing.writeHead(answer.statusCode, headers);
      outgoing.flushHeaders();
      answer.on("error", () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    forward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forward.destroy());
    incoming.on("error", () => forward.destroy());
    incoming.pipe(forward);
  });
  server.on("upgrade", (incoming, socket, head) => {
    if (!proxy.allowsUpgrade) {
      proxy.upgrades++;
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    const forward = request({ host: "127.0.0.1", port, path: incoming.url, headers: incoming.headers });
    forward.on("upgrade", (answer, there, first) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
      socket.write(first);
      there.write(head);
      there.pipe(socket).pipe(there);
      for (const [one, other] of [[socket, there], [there, socket]]) {
        one.on("error", () => other.destroy());
        one.on("close", () => other.destroy());
      }
    });
    forward.on("error", () => socket.destroy());
    forward.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy.port = /** @type {import("node:net").AddressInfo} */ (server.address()).port;
  proxy.url = `ws://127.0.0.1:${proxy.port}`;
  proxy.stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return proxy;
}
