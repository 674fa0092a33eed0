// How the shell's tests open a client: on a peer in memory, quick to reconnect, without log; on a page whose events the test decides.

import { Client as AnyClient } from "../../src/client.js";
import { Client } from "../../src/node.js";
import { node } from "../../src/platform/node.js";

export const QUICK = { reconnectFirstMs: 2, reconnectMaxMs: 8 };
export const LIMITS = { timeout: 20_000 };

export const logOf = (lines) => ({ info: () => {}, warn: (...all) => lines.push(all.join(" ")), error: (...all) => lines.push(all.join(" ")) });

export function open(peer, options = {}) {
  const { settings, ...rest } = options;
  return new Client("ws://x", { transport: peer.transport, settings: { ...QUICK, ...settings }, log: logOf([]), ...rest });
}

/** A page whose life a test decides. */
export function openOnPage(peer, options) {
  const page = { events: null, isWatched: true };
  const watchPage = (events) => {
    page.events = events;
    return () => (page.isWatched = false);
  };
  const settings = { ...QUICK, ...options.settings };
  const client = new AnyClient("ws://x", { log: logOf([]), ...options, settings, transport: peer.transport }, { ...node, watchPage });
  return { client, page };
}

export async function take(subscription, count) {
  const found = [];
  for await (const message of subscription) if (found.push(message.json()) === count) break;
  return found;
}

export const numbers = (count, first = 0) => Array.from({ length: count }, (_, n) => n + first);
