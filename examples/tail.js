// Print everything that happens on a pattern, gaps included.
//
//     node examples/tail.js '/host/**' [ws://127.0.0.1:8800]
//
// The client reconnects by itself and resumes at its position. Messages that are no longer available appear as a gap, in order,
// among the messages.

import { Client } from "../clients/javascript/src/node.js"; // elsewhere: from "godwit-client"

const [pattern = "/**", server = "ws://127.0.0.1:8800"] = process.argv.slice(2);
const client = new Client(server);
process.once("SIGINT", () => client.close());

for await (const item of client.subscribe(pattern).items()) {
  if (item.type === "message") console.log(`${item.position} ${item.subject} ${item.text()}`);
  else if (item.type === "gap") console.log(`-- ${item.missed} messages of ${item.subject} are gone: ${item.reason}`);
}
