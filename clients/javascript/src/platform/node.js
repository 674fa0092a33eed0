// Node: a WebSocket of our own over its sockets, its fetch, and no page.

import { randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";

import { nodeSocket } from "../transport/node_socket.js";
import { hexadecimal } from "./platform.js";

// Redirects are refused by their status: with `redirect: "error"` Node 20 and 22 forget the signal that ends a request once
// the garbage was collected, and a stream that was left is never closed.

/** @type {import("./platform.js").Platform} */
export const node = {
  open: nodeSocket(),
  ask: (url, request) => fetch(url, { ...request, redirect: "manual" }),
  now: () => performance.now(),
  randomText: (bytes) => hexadecimal(randomBytes(bytes)),
  watchPage: () => () => {},
};
