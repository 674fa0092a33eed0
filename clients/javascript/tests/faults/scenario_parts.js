// What a scenario gives its clients besides addresses: tokens that the suite signs, and position stores that fail.

import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const [ISSUER, SECRET] = ["https://login.example", "0123456789abcdef0123456789abcdef"];
const TOKEN_S = 600;
const HANG_MS = 3_000; // longer than the answer timeout of the scenarios' clients

/** The options of a node that takes this suite's tokens alone. */
export function writeAccess(folder) {
  const [secret, config] = ["secret", "node.toml"].map((name) => join(folder, name));
  writeFileSync(secret, SECRET);
  writeFileSync(config, `[access]\nmode = "jwt"\n[issuers."${ISSUER}"]\nkeys_file = "${secret}"\nalgorithms = ["HS256"]\n`);
  return ["--config", config];
}

/** A token of this identity; the one of `forged` has a signature of somebody else. */
export function tokenOf(identity) {
  const permissions = { allow: { both: ["/all/**", `/of/${identity}/**`] } };
  const claims = { iss: ISSUER, sub: identity, exp: Math.floor(Date.now() / 1000) + TOKEN_S, permissions };
  const head = [{ alg: "HS256", typ: "JWT" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  const secret = identity === "forged" ? [...SECRET].reverse().join("") : SECRET;
  return `${head}.${createHmac("sha256", secret).update(head).digest("base64url")}`;
}

/** Each save fails, by a promise. What was set is known to this process alone. */
export class RejectingStore {
  #set = new Map();
  get = (selector) => this.#set.get(selector);
  set = (selector, saved) => this.#set.set(selector, saved);
  save = () => Promise.reject(new Error("the database is gone"));
}

/** The first save does not end for a while; the others are at once. */
export class HangingStore {
  #set = new Map();
  #saved = new Map();
  #hang = () => {};
  #isHung = false;
  hung = new Promise((resolve) => (this.#hang = () => resolve(undefined)));

  get = (selector) => this.#saved.get(selector);
  set = (selector, saved) => this.#set.set(selector, saved);

  async save() {
    const set = new Map(this.#set);
    if (set.size && !this.#isHung) {
      this.#isHung = true;
      this.#hang();
      await new Promise((resolve) => setTimeout(resolve, HANG_MS));
    }
    for (const [selector, saved] of set) this.#saved.set(selector, saved);
  }
}
