// Commands without an answer, and commands that wait to be sent: assigns ids, and matches answers to them.

/** @typedef {import("../codec/command.js").Command} Command */
/** @typedef {import("../codec/push.js").Refusal} Refusal */
/** @typedef {import("../codec/push.js").Reply} Reply */
/** @typedef {(answer: Reply | Refusal) => void} Answered */

/** The commands of one session, except its publishes, which have their own queue. */
export class Asking {
  /** @type {Map<number, Answered>} */
  #awaiting = new Map();
  /** @type {Command[]} */
  #out = [];
  #lastId = 0;

  /** Ids are never used twice, on no connection. */
  takeId = () => ++this.#lastId;

  get isAwaiting() {
    return this.#awaiting.size > 0;
  }

  get hasOut() {
    return this.#out.length > 0;
  }

  /**
   * @param {(id: number) => Command} command
   * @param {Answered} answered
   */
  ask(command, answered) {
    const id = this.takeId();
    this.#awaiting.set(id, answered);
    this.#out.push(command(id));
  }

  /** Any answer will do: something was received. */
  ping() {
    this.ask(
      (id) => ({ verb: "ping", id }),
      () => {},
    );
  }

  /**
   * A command whose answer is ignored.
   * @param {Command} command
   */
  tell(command) {
    this.#out.push(command);
  }

  /**
   * False when no command has this id.
   * @param {Reply | Refusal} answer
   */
  answer(answer) {
    const answered = this.#awaiting.get(answer.id ?? 0);
    if (answered === undefined) return false;
    this.#awaiting.delete(answer.id ?? 0);
    answered(answer);
    return true;
  }

  /** The commands to send now. */
  takeOut() {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  /** The connection went, and with it every answer. */
  clear() {
    this.#awaiting.clear();
    this.#out = [];
  }
}
