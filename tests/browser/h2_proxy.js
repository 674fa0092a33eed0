// A proxy as it stands before nodes: HTTP/2 and TLS towards browsers, HTTP/1.1 towards the node. Takes a port, a certificate and a key.

import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createSecureServer } from "node:http2";

const [port, certificate, key] = process.argv.slice(2);
const server = createSecureServer({ cert: readFileSync(certificate), key: readFileSync(key) });

server.on("stream", (stream, heads) => {
  const headers = Object.fromEntries(Object.entries(heads).filter(([name]) => !name.startsWith(":")));
  const forward = request({ port, host: "127.0.0.1", method: heads[":method"], path: heads[":path"], headers: { ...headers, host: `127.0.0.1:${port}` } });
  forward.on("response", (answer) => {
    const { connection: _, "transfer-encoding": __, "keep-alive": ___, ...rest } = answer.headers;
    if (!stream.destroyed) stream.respond({ ":status": answer.statusCode, ...rest });
    answer.on("error", () => stream.destroy());
    answer.pipe(stream);
  });
  forward.on("error", () => stream.destroy());
  stream.on("close", () => forward.destroy());
  stream.on("error", () => forward.destroy());
  stream.pipe(forward);
});
process.stdin.on("end", () => process.exit()).resume(); // it ends with who began it
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
