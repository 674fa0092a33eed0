// The watches of one session, by selector: requested on each connection, and given what the server sends.

import { CommandRefused } from "../errors.js";

/** @typedef {import("../errors.js").GodwitError} GodwitError */
/** @typedef {import("../model.js").Interest} Interest */
/** @typedef {import("./asking.js").Asking} Asking */
/** @typedef {import("./watching.js").Watching} Watching */

/** One per selector. */
export class Watches {
  /** @type {Map<string, Watching>} */
  #table = new Map();
  #asking;

  /** @param {Asking} asking */
  constructor(asking) {
    this.#asking = asking;
  }

  get size() {
    return this.#table.size;
  }

  /** @param {string} selector */
  has(selector) {
    return this.#table.has(selector);
  }

  /** @param {Watching} watching */
  add(watching) {
    this.#table.set(watching.selector, watching);
  }

  /**
   * @param {Watching} watching
   * @param {boolean} isWelcome whether the command can be sent now
   */
  remove(watching, isWelcome) {
    if (this.#table.get(watching.selector) === watching) {
      this.#table.delete(watching.selector);
      if (isWelcome) this.#asking.tell({ verb: "unwatch", id: this.#asking.takeId(), selector: watching.selector });
    }
    watching.end(null);
  }

  /** A new connection is to be asked for them all. */
  askAll() {
    for (const watching of this.#table.values()) this.ask(watching);
  }

  /** @param {Watching} watching */
  ask(watching) {
    if (watching.isEnded) return;
    this.#asking.ask(
      (id) => watching.ask(id),
      (answer) => {
        if (answer.type === "reply" || this.#table.get(watching.selector) !== watching) return;
        this.#table.delete(watching.selector);
        watching.end(CommandRefused.of(answer));
      },
    );
  }

  /** @param {Interest | import("../codec/push.js").InterestState} push */
  handle(push) {
    if (push.type === "interest_state") this.#table.get(push.selector)?.stateReported(push.isComplete);
    else for (const watching of this.#table.values()) watching.handle(push);
  }


  /** @param {GodwitError | null} error */
  end(error) {
    for (const watching of this.#table.values()) watching.end(error);
  }
}
