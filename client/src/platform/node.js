// Node: a WebSocket of our own over its sockets, its fetch, and no page.

import { randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";

import { nodeSocket } from "../transport/node_socket.js";
import { hexadecimal } from "./platform.js";

/** @type {import("./platform.js").Platform} */
export const node = {
  open: nodeSocket(),
  ask: (url, request) => fetch(url, { ...request, redirect: "error" }),
  now: () => performance.now(),
  randomText: (bytes) => hexadecimal(randomBytes(bytes)),
  watchPage: () => () => {},
};
