// The scripts of event streams, protocol/vectors/streams.json, as the client receives them: what it reports for each event, and the position
// from which it would continue, which is the event's id.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Streaming } from "../../src/transport/http/streaming.js";
import { Wanted, resumeTokenOf } from "../../src/transport/http/wanted.js";
import { vectors } from "../vectors.js";

const NAMES = { s: "/v/1", e: "7", f: "8", g: "9" };
const fill = (text) =>
  text
    .replaceAll('"time":"${}"', '"time":1795250000000')
    .replace(/\$\{(\w*)\}/g, (_, name) => NAMES[name] ?? `a1.${Number(name.slice(1) || 0) + 1}.1795250000000.0badcafe`);

/** The streams of a script: the request of each, and the events that it receives. */
function streamsOf({ lines }) {
  const streams = [];
  for (const [, way, text] of lines.map((line) => /^s ([?<~]) (.*)$/s.exec(line)).filter(Boolean)) {
    if (way === "?") streams.push({ target: fill(text).split(" @ ")[0], events: [] });
    else streams.at(-1).events.push(JSON.parse(fill(text)));
  }
  return streams;
}

function render({ event, id, data }) {
  const lines = JSON.stringify(data, null, 1).split("\n"); // on several lines, as a publisher may have written it
  return `${id ? `id: ${id}\n` : ""}${event ? `event: ${event}\n` : ""}${lines.map((line) => `data: ${line}\n`).join("")}\n`;
}

/** A host that answers with these bytes, in pieces, and records the requests; resolves when the stream has ended. */
function hear(text, wanted) {
  return new Promise((resolve) => {
    const pushes = [];
    const bytes = new TextEncoder().encode(text);
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, n) => bytes.subarray(n * 7, n * 7 + 7));
    const host = {
      ...{ frameBytesMax: 10_000, streamTimeoutMs: 60_000, isEnded: false, isPaused: false, pace: null, now: () => 0 },
      ask: async () => new Response(ReadableStream.from(pieces), { headers: { "content-type": "text/event-stream" } }),
      tell: (text) => pushes.push(JSON.parse(text)),
      fail: () => resolve(pushes),
      soon: (awaited) => awaited,
      worked() {},
      settled() {},
    };
    const streaming = new Streaming(host);
    for (const each of wanted) streaming.wanted.set(each.selector, each);
    streaming.change();
  });
}

const CASES = vectors("streams").cases;

test("there are scripts", () => assert.ok(CASES.length > 10));

for (const script of CASES) {
  test(`a stream is received as in the script: ${script.name} (${script.clause})`, async () => {
    for (const { target, events } of streamsOf(script)) {
      const selectors = new URL(target, "http://a").searchParams.getAll("subject");
      const wanted = selectors.map((selector, index) => new Wanted({ id: index + 1, subscribe: selector }));
      const pushes = await hear(events.map(render).join(""), wanted);
      const said = events.filter(({ event }) => event !== "resume_token").map(({ data }) => data);
      assert.deepEqual(pushes.filter(({ resume_token: token }) => token === undefined).map(({ id: _, ...data }) => data), said);
      const last = events.findLast(({ id }) => id)?.id;
      for (const each of wanted) {
        const ats = events.filter(({ data }) => [data.message, data.gap].includes(each.selector)).map(({ data }) => data.at);
        if (each.isPattern) assert.equal(each.place, resumeTokenOf(last));
        else if (ats.length > 0) assert.equal(each.place, ats.at(-1) ?? each.place);
        if (wanted.length === 1 && !each.isPattern && last) assert.equal(each.place, last, "the id says where it stands");
      }
    }
  });
}
