// A lease on a file of positions, so that two processes never write it at the same time: `FILE.lock` beside it.
//
// It holds `{"owner": RANDOM, "host": HOST, "pid": PID, "beat": COUNT}`, in the same form for all clients of Godwit. Its owner
// counts `beat` up every 2 seconds. One that has not changed for 10 seconds is void: its owner was killed, or is frozen. No clock
// of another machine is read.

import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { performance } from "node:perf_hooks";

import { PositionFileHeld } from "../errors.js";

const VOID_MS = 10_000;
export const RENEW_MS = 2_000;
const LOOK_MS = 100;

/** @typedef {{ owner?: unknown, host?: unknown, pid?: unknown }} Holder */

/** The lease on one file; without one `isHeld` is false and nothing is checked. */
export class Lease {
  isHeld = false;
  #path;
  #lock;
  #voidMs;
  #owner = randomBytes(16).toString("hex");
  #beat = 0;
  /** @type {PositionFileHeld | null} another has it */
  #lost = null;
  #isReleased = false;

  /**
   * @param {string} path
   * @param {number} [voidMs]
   */
  constructor(path, voidMs = VOID_MS) {
    this.#path = path;
    this.#lock = `${path}.lock`;
    this.#voidMs = voidMs;
  }

  /** Take it, waiting for one that may be void; rejects with PositionFileHeld where its owner lives. */
  async acquire() {
    this.#lost = null;
    this.#isReleased = false;
    const until = performance.now() + this.#voidMs;
    let [seen, voidAt] = ["", 0];
    while (!this.#isReleased && !this.#create()) {
      const text = this.#text();
      const now = performance.now();
      if (text === null) {
        // released between the two looks, or a symbolic link that leads nowhere
        if (now >= until) throw new Error(`${this.#lock} is there, and cannot be read`);
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        continue;
      }
      if (text !== seen) [seen, voidAt] = [text, now + this.#voidMs];
      if (now >= voidAt) {
        this.#write(); // if two do this at once, the loser notices at its first save
        this.isHeld = true;
        return;
      }
      if (now >= until && voidAt > until + LOOK_MS) throw this.#heldBy(holderOf(text));
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** Throws PositionFileHeld where another took it meanwhile, because this process did not run for so long. */
  check() {
    if (this.#lost !== null) throw this.#lost;
    const text = this.isHeld ? this.#text() : null;
    if (text === null || holderOf(text).owner === this.#owner) return;
    this.isHeld = false;
    this.#lost = this.#heldBy(holderOf(text));
    throw this.#lost;
  }

  /** Say that this owner lives; throws PositionFileHeld. */
  renew() {
    this.check();
    if (!this.isHeld) return;
    this.#beat++;
    this.#write();
  }

  /** Let the next one have it at once. */
  release() {
    this.#isReleased = true; // also while it is awaited
    const text = this.isHeld ? this.#text() : null;
    if (text !== null && holderOf(text).owner === this.#owner) rmSync(this.#lock, { force: true });
    this.isHeld = false;
  }

  /** False where there is one. */
  #create() {
    const beside = this.#writeBeside();
    try {
      linkSync(beside, this.#lock); // whole, or not at all
    } catch (error) {
      if (codeOf(error) === "EEXIST") return false;
      throw error;
    } finally {
      rmSync(beside, { force: true });
    }
    this.isHeld = true;
    return true;
  }

  #write() {
    renameSync(this.#writeBeside(), this.#lock);
  }

  #writeBeside() {
    const beside = `${this.#lock}.${this.#owner}`;
    try {
      writeFileSync(beside, JSON.stringify({ owner: this.#owner, host: hostname(), pid: process.pid, beat: this.#beat }));
    } catch (error) {
      rmSync(beside, { force: true }); // a full disk keeps a part of it
      throw error;
    }
    return beside;
  }

  /** The holder that is written there, or null. */
  #text() {
    try {
      return readFileSync(this.#lock, "utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  /** @param {Holder} holder */
  #heldBy({ host = "?", pid = "?" }) {
    return new PositionFileHeld(this.#path, String(host), String(pid));
  }
}

/**
 * A file of another form counts as a holder without a name.
 * @param {string} text
 * @returns {Holder}
 */
function holderOf(text) {
  try {
    const read = JSON.parse(text);
    return read !== null && typeof read === "object" ? read : {};
  } catch {
    return {};
  }
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
