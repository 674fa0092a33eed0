// Server-Sent Events as a client reads them: bytes in, whole events out, one at a time. Pure.
//
// Lines end as the standard says; a comment is an event without data, so that its reader knows that the stream is alive. A part that
// has not ended yet is bounded.

/**
 * @typedef {object} StreamEvent
 * @property {string} type empty: a message
 * @property {string | null} id id of this event
 * @property {string | null} data null: nothing but a comment
 */

/** The stream sent an event that is larger than allowed. */
export class EventTooBig extends Error {}

/** Collects chunks and returns complete events, so that its user can stop between two. */
export class EventReader {
  #charactersMax;
  #decoder = new TextDecoder();
  #rest = ""; // of a line
  /** @type {string[]} */
  #lines = [];
  #first = 0; // lines before it are read
  #type = "";
  /** @type {string | null} */
  #id = null;
  /** @type {string[]} */
  #data = [];
  #size = 0; // of the data so far

  /** @param {number} charactersMax of one event */
  constructor(charactersMax) {
    this.#charactersMax = charactersMax;
  }

  /** @param {Uint8Array} chunk */
  push(chunk) {
    let text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    const isCut = text.endsWith("\r"); // a line feed may follow, of the same end
    if (isCut) text = text.slice(0, -1);
    const lines = text.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + (isCut ? "\r" : "");
    if (this.#rest.length > this.#charactersMax) throw new EventTooBig(`an event has more than ${this.#charactersMax}`);
    this.#lines = [...this.#lines.slice(this.#first), ...lines];
    this.#first = 0;
  }

  /**
   * The next complete event, or null.
   * @returns {StreamEvent | null}
   */
  next() {
    while (this.#first < this.#lines.length) {
      const line = this.#lines[this.#first++] ?? "";
      if (line.startsWith(":")) return { type: "", id: null, data: null };
      if (line !== "") this.#field(line);
      else if (this.#data.length > 0) return this.#take();
      else this.#clear();
    }
    return null;
  }

  #take() {
    const event = { type: this.#type, id: this.#id, data: this.#data.join("\n") };
    this.#clear();
    return event;
  }

  #clear() {
    [this.#type, this.#id, this.#data, this.#size] = ["", null, [], 0];
  }

  /** @param {string} line */
  #field(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "event") this.#type = value;
    else if (name === "id") this.#id = value;
    else if (name === "data") {
      this.#size += value.length + 1;
      if (this.#size > this.#charactersMax) throw new EventTooBig(`an event has more than ${this.#charactersMax}`);
      this.#data.push(value);
    }
  }
}
