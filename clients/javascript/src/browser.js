// The JavaScript client of Godwit, in a browser.
//
//     import { Client } from "./godwit-client/src/browser.js";
//
//     const client = new Client("ws://127.0.0.1:8800");
//     client.subscribe("/rooms/kitchen/temperature", (message) => (output.value = message.json()));
//
// A broken connection loses nothing: the client reconnects, resumes each subscription at its position, and sends unanswered
// publishes again as the same messages. If messages are no longer available, the subscription receives a gap in their place.

import { Client as AnyClient } from "./client.js";
import { Inbox as AnyInbox } from "./inbox.js";
import { browser } from "./platform/browser.js";

export * from "./index.js";

/** A client over the browser's WebSocket. */
export class Client extends AnyClient {
  /**
   * @param {import("./session/servers.js").Servers} servers an address, or a list of addresses or [address, weight] pairs
   * @param {import("./client.js").ClientOptions} [options]
   */
  constructor(servers, options = {}) {
    super(servers, options, browser);
  }
}

/** A receiver's inbox. */
export class Inbox extends AnyInbox {
  /**
   * @param {Client | null} client whose token may subscribe to the inbox; null: long polls of dispatch
   * @param {import("./inbox.js").InboxOptions} options
   */
  constructor(client, options) {
    super(client, options, browser.ask);
  }
}
