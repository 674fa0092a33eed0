// Publishes by POST: one request at a time, so that their order is kept, each with all waiting publishes (within bounds).
//
// A request that fails ends the link: its outcome is unknown, and the session sends the publishes again with their old keys. If
// one is refused, its publishes are sent again one by one, so that each gets its own answer.

import { utf8Length } from "../../content.js";
import { Refused } from "./answer.js";

/** @typedef {import("./http_link.js").Host} Host */
/** @typedef {{ id: number, text: string, isAlone: boolean }} Item */

const ANSWER_MS = 2_000; // then the stream is closed, because the request may wait for its connection
const YIELD_MS = 1_000; // how long it stays closed: enough to send the request, and short enough for messages to continue
const BATCH_ITEMS_MAX = 500;
const BATCH_CHARACTERS_MAX = 65_536; // as in the connection's own frames; a single larger publish is sent in a batch of its own

export class Poster {
  #host;
  /** @type {Item[]} */
  #waiting = [];
  #isPosting = false;
  characters = 0; // not answered yet
  isHeld = () => false; // while a subscription before them has no answer, for a while
  #heldSince = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {Host} host */
  constructor(host) {
    this.#host = host;
  }

  /**
   * @param {number} id
   * @param {string} text the command
   */
  push(id, text) {
    this.#waiting.push({ id, text, isAlone: false });
    this.characters += text.length;
    this.stir();
  }

  /** It may be held no more. */
  stir() {
    if (this.#isPosting || this.#waiting.length === 0) return;
    if (!this.isHeld()) this.#heldSince = -Infinity;
    else if (this.#heldSince === -Infinity) this.#heldSince = this.#host.now();
    const leftMs = this.#heldSince + ANSWER_MS - this.#host.now();
    clearTimeout(this.#timer);
    if (leftMs > 0) this.#timer = setTimeout(() => this.stir(), leftMs);
    else this.#post();
  }

  stop() {
    clearTimeout(this.#timer);
  }

  async #post() {
    this.#isPosting = true;
    await Promise.resolve(); // publishes made together are sent together
    const batch = this.#take();
    this.#timer = setTimeout(() => this.#yield(), ANSWER_MS);
    try {
      const answer = await this.#host.ask("/v1/messages", { method: "POST", body: `[${batch.map(({ text }) => text).join()}]` });
      this.#host.tell(await this.#host.read(answer));
    } catch (error) {
      if (!(error instanceof Refused && error.isOfCommand)) {
        if (error instanceof Refused && error.isOfLeaving) for (const { id } of batch) this.#host.tell(error.toPush(id)); // the node accepted none of them
        this.#host.fail(error);
        return;
      }
      const [only] = batch;
      if (batch.length === 1 && only) this.#host.tell(error.toPush(only.id, sizeOf(only.text)));
      else this.#again(batch);
    } finally {
      clearTimeout(this.#timer);
      this.#host.takeUp();
    }
    this.#isPosting = false;
    this.#host.sent();
    this.stir();
  }

  /** The request may wait for the connection of the client's stream. */
  #yield() {
    this.#host.letGo();
    this.#timer = setTimeout(() => this.#host.takeUp(), YIELD_MS);
  }

  #take() {
    let [count, characters] = [0, 0];
    for (const { text, isAlone } of this.#waiting) {
      if (count > 0 && (isAlone || characters + text.length > BATCH_CHARACTERS_MAX || count >= BATCH_ITEMS_MAX)) break;
      count++;
      characters += text.length;
      if (isAlone) break;
    }
    this.characters -= characters;
    return this.#waiting.splice(0, count);
  }

  /** @param {Item[]} batch */
  #again(batch) {
    for (const item of batch) {
      item.isAlone = true;
      this.characters += item.text.length;
    }
    this.#waiting = [...batch, ...this.#waiting];
  }
}

/**
 * A publish and its size, for people.
 * @param {string} text
 */
function sizeOf(text) {
  return `${JSON.parse(text).publish}, ${utf8Length(text) + 2} bytes as sent`; // in the brackets of an array
}
