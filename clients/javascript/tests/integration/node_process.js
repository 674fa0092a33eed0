// A node in a process of its own, on ports of its own choosing, read from its line.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const { GODWIT_PYTHON: CHOSEN, ...ENVIRONMENT } = process.env; // a node refuses variables of its name that it does not know
const PYTHON = CHOSEN ?? `${ROOT}.venv/bin/python`;
const FOLLOWING = `${ROOT}tests/following.py`; // it ends with this process, also where a test that hangs is killed
const ERRORS_CHARACTERS_MAX = 4_000; // of a node's output, shown if it did not start

/**
 * Start one with these settings, as `{ "limits.log_messages_max": 10 }`; returns when it listens.
 * @param {Record<string, unknown>} [settings]
 * @param {string[]} [more] options of its command
 */
export async function startNode(settings = {}, more = []) {
  if (!existsSync(PYTHON)) throw new Error(`${PYTHON} is missing: run make setup`);
  const options = Object.entries(settings).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
  const words = [FOLLOWING, `${process.pid}`, "godwit", "serve", "--client", "127.0.0.1:0", "--admin", "127.0.0.1:0", ...options, ...more];
  const child = spawn(PYTHON, words, { stdio: ["ignore", "pipe", "pipe"], env: ENVIRONMENT });
  let errors = "";
  child.stderr.on("data", (text) => (errors = (errors + text).slice(-ERRORS_CHARACTERS_MAX)));
  const exited = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^listening .*client=(\S+) .*admin=(\S+)/.exec(line);
    if (found === null) continue;
    child.stdout.resume();
    const [host, port] = found[1].split(":");
    return {
      url: `ws://${found[1]}`,
      adminUrl: `http://${found[2]}`,
      dispatchUrl: `http://${/dispatch=(\S+)/.exec(line)?.[1]}`,
      host,
      port: Number(port),
      child,
      /** As by power loss. */
      async kill() {
        child.kill("SIGKILL");
        await exited;
      },
      /** Ask it to leave; returns its exit code. */
      async terminate() {
        child.kill("SIGTERM");
        const [code] = await exited;
        return code;
      },
    };
  }
  throw new Error(`the node ended with ${(await exited)[0]} before it listened:\n${errors}`);
}
