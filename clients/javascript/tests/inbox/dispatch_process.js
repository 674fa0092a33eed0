// Dispatch and a node, in one process over a folder of its own: `godwit serve --dispatch`.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startNode } from "../integration/node_process.js";

const FREE_PORTS = { "dispatch.address": "127.0.0.1:0", "mqtt.enabled": "false" };

/** A folder for a node's data, gone when the test ends. */
export function dataFolder(test) {
  const folder = mkdtempSync(join(tmpdir(), "godwit-inbox-"));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts one over a folder, which may be that of one that ended. */
export async function startDispatch(folder, settings = {}) {
  const running = await startNode({ ...FREE_PORTS, ...settings }, ["--dispatch", "--data", folder]);
  const key = readFileSync(join(folder, "dispatch", "admin.key"), "ascii");

  /** One request with the admin key; returns the answer's JSON. */
  async function api(method, path, body) {
    const answer = await fetch(running.dispatchUrl + path, {
      method,
      headers: { Authorization: `Bearer ${key}` },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  return {
    ...running,
    api,
    send: (id, receiver = "ann") => api("PUT", `/v1/notifications/${id}`, { to: { receiver: { id: receiver } }, content: { title: id } }),
    token: async (receiver = "ann") => (await api("POST", `/v1/receivers/${receiver}/token`)).token,
  };
}

/** An inbox and a promise of the next time that it fits; `errors` has what it reported. */
export function watched(open) {
  const errors = [];
  const waiting = new Set();
  const look = () => {
    for (const entry of [...waiting]) {
      if (!entry.fits(inbox)) continue;
      waiting.delete(entry);
      entry.resolve();
    }
  };
  const inbox = open({ onChange: () => queueMicrotask(look), onError: (error) => errors.push(error) });
  const until = (fits) =>
    new Promise((resolve) => {
      waiting.add({ fits, resolve });
      queueMicrotask(look);
    });
  return { inbox, errors, until, ids: () => inbox.items.map((item) => item.id) };
}
