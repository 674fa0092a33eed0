// Positions in a JSON file, one entry per selector, replaced atomically. The Python client reads it too.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";

import { PositionFileHeld, PositionFileInvalid } from "../errors.js";
import { Lease, RENEW_MS } from "./lease.js";

/** @typedef {import("./store.js").SavedResumePoint} SavedResumePoint */

/** A file that does not exist is empty; one that cannot be read throws PositionFileInvalid. */
export class PositionFile {
  #path;
  /** @type {Map<string, SavedResumePoint>} */
  #saved = new Map();
  #isChanged = false;
  #users = 0; // clients that use it now
  #lease;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #beating;

  /** @param {string} path */
  constructor(path) {
    this.#path = path;
    this.#lease = new Lease(path);
    this.#read();
  }

  /**
   * A client begins to use it: take the lease, and read what its holder before wrote last. Rejects with PositionFileHeld where
   * another process uses it. If no lease can be created, it only logs a warning.
   * @param {(error: PositionFileHeld) => void} lost called when another process has taken it
   * @param {Pick<Console, "warn">} log
   */
  async open(lost, log) {
    this.#users++;
    if (this.#users > 1) return;
    try {
      await this.#lease.acquire();
    } catch (error) {
      if (error instanceof PositionFileHeld) {
        this.#users--;
        throw error;
      }
      log.warn(`godwit: ${this.#path} has no lease: use by a second process would not be noticed`, error);
    }
    if (this.#users === 0) return; // closed meanwhile
    try {
      if (!this.#isChanged) this.#read();
    } catch (error) {
      this.close();
      throw error;
    }
    this.#beating = setInterval(() => this.#beat(lost, log), RENEW_MS);
    this.#beating.unref();
  }

  /** A client uses it no longer. */
  close() {
    if (this.#users === 0 || --this.#users > 0) return;
    clearInterval(this.#beating);
    try {
      this.#lease.release();
    } catch {
      // a disk that fails: it is void in a moment
    }
  }

  /**
   * @param {(error: PositionFileHeld) => void} lost
   * @param {Pick<Console, "warn">} log
   */
  #beat(lost, log) {
    try {
      this.#lease.renew();
    } catch (error) {
      if (!(error instanceof PositionFileHeld)) return log.warn("godwit: the lease on the positions was not renewed", error);
      clearInterval(this.#beating);
      lost(error);
    }
  }

  #read() {
    const path = this.#path;
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return;
    if (!found.isFile() && !found.isDirectory()) throw new PositionFileInvalid(path, "not a regular file"); // reading a pipe or a device may never end
    const text = readFileSync(path, "utf8");
    let read;
    try {
      read = JSON.parse(text);
    } catch (error) {
      throw new PositionFileInvalid(path, error instanceof Error ? error.message : String(error));
    }
    if (read === null || typeof read !== "object" || Array.isArray(read)) {
      throw new PositionFileInvalid(path, "not a JSON object");
    }
    this.#saved = new Map(Object.entries(read));
  }

  /** @param {string} selector */
  get(selector) {
    return this.#saved.get(selector);
  }

  /**
   * @param {string} selector
   * @param {SavedResumePoint} saved
   */
  set(selector, saved) {
    this.#saved.set(selector, saved);
    this.#isChanged = true;
  }

  /** @param {string} selector */
  delete(selector) {
    if (this.#saved.delete(selector)) this.#isChanged = true;
  }

  /**
   * Write what has changed: a reader finds the old file or the new one, never half of one. Throws PositionFileHeld where another
   * process took the lease, because this one did not run for 10 seconds.
   */
  save() {
    this.#lease.check();
    if (!this.#isChanged) return;
    const beside = `${this.#path}.new`;
    const file = openSync(beside, "w");
    try {
      writeFileSync(file, JSON.stringify(Object.fromEntries(this.#saved))); // all of it: one write may take a part
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(beside, this.#path);
    this.#isChanged = false;
  }
}
