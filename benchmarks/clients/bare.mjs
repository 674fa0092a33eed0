// The baseline in JavaScript: reads COUNT messages of a subject, prints the CPU of each in microseconds, and keeps nothing.
//
//     node bare.mjs FOLDER URL SUBJECT COUNT WARM ENCODING       FOLDER holds node_modules; ENCODING is json
//
// A listener of the WebSocket library that the client uses: it parses each frame and counts its messages. No position, no
// bound, no reconnect, no type for a message.

import { createRequire } from "node:module";

const [folder, url, subject, count, warm] = process.argv.slice(2);
const { WebSocket } = createRequire(`${folder}/`)("ws");

const socket = new WebSocket(`${url}/v1/live`, "godwit.v1.json", { perMessageDeflate: false });
let read = 0;
let counted = 0;
let began = null;
socket.on("open", () => {
  socket.send(JSON.stringify({ id: 1, connect: { client: "bare/1" } }));
  socket.send(JSON.stringify({ id: 2, subscribe: subject, last: Number(count) }));
});
socket.on("message", (bytes) => {
  const frame = JSON.parse(bytes.toString());
  for (const push of Array.isArray(frame) ? frame : [frame]) if ("content" in push) read++;
  if (!began && read >= Number(warm)) {
    began = process.cpuUsage();
    counted = read;
  }
  if (read >= Number(count)) {
    const { user, system } = process.cpuUsage(began);
    console.log((user + system) / (Number(count) - counted));
    socket.terminate();
  }
});
