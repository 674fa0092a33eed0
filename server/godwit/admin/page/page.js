// The page: joins the figures, the live tail and the lists. Plain modules, no build step, nothing loaded from elsewhere.

import { clock, duration } from "/format.js";
import { watchFigures } from "/figures.js";
import { List, count } from "/lists.js";
import { Tail } from "/tail.js";

const find = (id) => document.getElementById(id);
const form = find("tail-form");
const tail = new Tail(find("messages").tBodies[0], find("tail-status"));
let clientPort = "";

function startTail() {
  if (clientPort) tail.open(`${location.hostname}:${clientPort}`, find("pattern").value.trim(), find("token").value);
}

form.addEventListener("submit", (event) => { event.preventDefault(); startTail(); });
find("pause").addEventListener("click", (event) => {
  const isPaused = event.target.getAttribute("aria-pressed") !== "true";
  event.target.setAttribute("aria-pressed", String(isPaused));
  tail.pause(isPaused);
});

const subjects = new List("subjects", "pattern", [
  ["subject", "subject"], ["at", "position"], ["messages", "kept", count], ["bytes", "bytes", count],
  ["listeners", "listeners", count], ["last_ms", "last", clock],
], (subject) => { find("pattern").value = subject; find("tail").scrollIntoView(); startTail(); });

const connections = new List("connections", "search", [
  ["address", "address"], ["identity", "identity"], ["client", "client"], ["wire", "wire"],
  ["subscriptions", "subscriptions", count], ["behind", "behind", count], ["connected_ms", "connected for", duration],
]);

watchFigures((stats) => {
  if (clientPort) return;
  clientPort = stats.client.split(":").at(-1);
  startTail();
  subjects.read("");
  connections.read("");
});
