// The JavaScript client of Godwit, in Node 20 and later.
//
//     import { Client } from "godwit-client";
//
//     const client = new Client("ws://127.0.0.1:8800");
//     await client.publish("/greetings/en", { hello: "world" });
//     for await (const message of client.subscribe("/greetings/**")) console.log(message.subject, message.json());
//
// A broken connection loses nothing: the client reconnects, resumes each subscription at its position, and sends unanswered
// publishes again as the same messages. If messages are no longer available, the subscription receives a gap in their place.
// Backpressure: while a reader is slow the client stops reading, and its messages wait in the server's log.

import { Client as AnyClient } from "./client.js";
import { Inbox as AnyInbox } from "./inbox.js";
import { node } from "./platform/node.js";

export * from "./index.js";
export { PositionFile } from "./position_store/file.js";
export { nodeSocket } from "./transport/node_socket.js";

/** A client over Node's own sockets. */
export class Client extends AnyClient {
  /**
   * @param {import("./session/servers.js").Servers} servers an address, or a list of addresses or [address, weight] pairs
   * @param {import("./client.js").ClientOptions} [options]
   */
  constructor(servers, options = {}) {
    super(servers, options, node);
  }
}

/** A receiver's inbox. */
export class Inbox extends AnyInbox {
  /**
   * @param {Client | null} client whose token may subscribe to the inbox; null: long polls of dispatch
   * @param {import("./inbox.js").InboxOptions} options
   */
  constructor(client, options) {
    super(client, options, node.ask);
  }
}
