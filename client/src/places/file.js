// Stands kept in a JSON file, one entry per selector, written whole and moved into place. The Python client reads it too.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";

import { PositionFileInvalid } from "../errors.js";

/** @typedef {import("./store.js").SavedResumePoint} SavedResumePoint */

/** A file that does not exist is empty; one that cannot be read throws PositionFileInvalid. */
export class PositionFile {
  #path;
  /** @type {Map<string, SavedResumePoint>} */
  #saved = new Map();
  #isChanged = false;

  /** @param {string} path */
  constructor(path) {
    this.#path = path;
    if (!existsSync(path)) return;
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

  /** Write what has changed: a reader finds the old file or the new one, never half of one. */
  save() {
    if (!this.#isChanged) return;
    const beside = `${this.#path}.new`;
    const file = openSync(beside, "w");
    try {
      writeSync(file, JSON.stringify(Object.fromEntries(this.#saved)));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(beside, this.#path);
    this.#isChanged = false;
  }
}
