// One subscription through the JavaScript client; every item it yields becomes one line of JSON on standard output.
// Its argument says which client, which node and which selector. It reads on only when a line has been taken.

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

function told(item) {
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

const client = new Client(asked.url, { wire: asked.wire, settings });
for await (const item of client.subscribe(asked.selector, { onGap: asked.onGap }).items()) {
  if (!process.stdout.write(`${JSON.stringify(told(item))}\n`)) {
    await new Promise((taken) => process.stdout.once("drain", taken));
  }
}
