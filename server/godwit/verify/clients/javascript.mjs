// One subscription through the JavaScript client; every item it yields becomes one line of JSON on standard output.
// Its argument names the client, the node and the selector. It reads no items between the lines `stall` and `go` on
// standard input. It also prints the client's log lines, and after a silence what it waits for.

import { createInterface } from "node:readline";

const SILENCES_MS = [10_000, 30_000];
const REQUESTS_MAX = 6;

const asked = JSON.parse(process.argv[2]);
const { Client } = await import(asked.client);

const settings = {
  itemsMax: 200,
  reconnectFirstMs: 20,
  reconnectMaxMs: 400,
  answerTimeoutMs: 2_000,
  pingIntervalMs: 2_000,
  connectTimeoutMs: 4_000,
  frameBytesMax: 4 << 20,
};

function describe(item) {
  if (item.type === "message") {
    const { subject, kind, position, after, pattern, conflated, isSnapshot } = item;
    const content = Buffer.from(item.bytes()).toString("hex");
    return { is: "message", subject, kind, at: position, after, pattern, conflated, snapshot: isSnapshot, content };
  }
  if (item.type === "gap") {
    const { subject, position, after, reason, missed, pattern } = item;
    return { is: "gap", subject, at: position, after, reason, missed, pattern };
  }
  if (item.type === "status" && item.state === "subscribed") {
    return { is: "subscribed", outcome: item.outcome, at: item.position, count: item.count };
  }
  return item.type === "status" ? { is: "disconnected", reason: item.reason } : { is: item.type };
}

const requests = []; // the last of them, and what became of each
const fetched = globalThis.fetch;
globalThis.fetch = async (url, request) => {
  const words = `${request.method ?? "GET"} ${new URL(url).pathname}`;
  const one = { words, at: performance.now(), became: "no answer" };
  if (requests.push(one) > REQUESTS_MAX) requests.shift();
  try {
    const answer = await fetched(url, request);
    one.became = answer.status;
    return answer;
  } catch (error) {
    one.became = error.cause?.code ?? String(error);
    throw error;
  }
};

let gate = { isOpen: true, opened: Promise.resolve(), open: () => {} };
createInterface({ input: process.stdin }).on("line", (line) => {
  gate.open();
  const isOpen = line !== "stall";
  gate = { isOpen, opened: Promise.resolve(), open: () => {} };
  if (!isOpen) gate.opened = new Promise((open) => (gate.open = open));
  say(isOpen ? "continues" : "is stalled");
});

const put = (object) => process.stdout.write(`${JSON.stringify(object)}\n`);
const say = (words) => put({ is: "said", words });
const log = { info: say, warn: say, error: (...words) => say(words.join(" ")) };
const client = new Client(asked.url, { encoding: asked.encoding, transport: asked.transport, settings, log });

let silences = []; // timers, from the last item on
function hear() {
  silences.forEach(clearTimeout);
  silences = SILENCES_MS.map((ms) => setTimeout(explain, ms, ms));
}

function explain(ms) {
  if (!gate.isOpen) return;
  const now = performance.now();
  const place = client.isConnected ? `connected by ${client.transport}` : `not connected (${client.loss})`;
  const last = requests.map(({ words, at, became }) => `${words} ${((now - at) / 1000).toFixed(1)} s ago: ${became}`);
  say(`${ms / 1000} s without an item, ${place}; ${last.join(", ") || "no requests"}`);
}

hear();
for await (const item of client.subscribe(asked.selector, { onGap: asked.onGap }).items()) {
  hear();
  if (!put(describe(item))) await new Promise((taken) => process.stdout.once("drain", taken));
  await gate.opened;
}
