// Shares connections between the pages of a browser: it opens six to each origin over HTTP/1.1, for all its tabs together.
//
// Pages only count each other. A hidden page keeps no connection, unless its options say so; from the fifth visible page on
// each has its connection for a limited time only. Over HTTP/2 and 3 none of this is needed.

/**
 * @typedef {object} Page the state of a browser's page and of the other pages of its origin
 * @property {string} id unguessable
 * @property {(name: string, heard: (word: Word) => void) => { say: (word: Word) => void, close: () => void }} join the channel of all pages of one origin
 * @property {(changed: () => void) => () => void} watch calls when it is hidden or shown; returns how to stop
 * @property {() => boolean} isHidden
 * @property {(base: string) => boolean} isMultiplexed whether requests there share one connection (HTTP/2, HTTP/3)
 */

/** @typedef {{ id: string, is: "here" | "gone" | "who" }} Word */
/** @typedef {{ leaseMs: number, restMs: number, waitS: number }} Pace how long a page keeps a connection, and how long it then does without */

/** @type {Readonly<Pace>} */
const HIDDEN = Object.freeze({ leaseMs: 500, restMs: 4_500, waitS: 0 });
/** @type {Readonly<Pace>} */
const SHARED = Object.freeze({ leaseMs: 1_000, restMs: 0, waitS: 1 });
const VISIBLE_MAX = 4; // of six connections, two are left for publishes and changes
const HERE_MS = 3_000; // between two signs of life
const GONE_MS = 10_000; // without one

export class TabPacing {
  #page;
  #base;
  #whenHidden;
  #changed;
  #id = "";
  /** @type {Map<string, ReturnType<typeof setTimeout>>} until each is taken to have gone */
  #others = new Map();
  #say = (/** @type {Word} */ _) => {};
  #close = () => {};
  #unwatch = () => {};
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /** @type {Readonly<Pace> | null} */
  #last = null;

  /**
   * @param {string} base
   * @param {Page | undefined} page undefined outside browsers
   * @param {"poll" | "stay"} whenHidden
   * @param {() => void} changed the pace
   */
  constructor(base, page, whenHidden, changed) {
    this.#base = base;
    this.#page = page;
    this.#whenHidden = whenHidden;
    this.#changed = changed;
    if (page === undefined) return;
    this.#id = page.id;
    const { say, close } = page.join(`godwit ${base}`, (word) => this.#heard(word));
    [this.#say, this.#close] = [(word) => say(word), close];
    this.#unwatch = page.watch(() => this.#turned());
    this.#timer = setInterval(() => this.#show(), HERE_MS);
    this.#last = this.pace;
    this.#say({ id: this.#id, is: "who" });
    this.#show();
  }

  /** How connections are to be had now; null: for as long as they last. */
  get pace() {
    const page = this.#page;
    if (page === undefined) return null;
    const isAway = page.isHidden() && this.#whenHidden === "poll";
    if (!isAway && this.#others.size < VISIBLE_MAX) return null;
    return page.isMultiplexed(this.#base) ? null : isAway ? HIDDEN : SHARED;
  }

  leave() {
    if (this.#page === undefined) return;
    this.#say({ id: this.#id, is: "gone" });
    this.#close();
    this.#unwatch();
    clearInterval(this.#timer);
    for (const timer of this.#others.values()) clearTimeout(timer);
    this.#page = undefined;
  }

  #show() {
    if (!this.#page?.isHidden()) this.#say({ id: this.#id, is: "here" });
  }

  #turned() {
    if (this.#page?.isHidden()) this.#say({ id: this.#id, is: "gone" });
    else this.#show();
    this.#look();
  }

  /** @param {Word} word */
  #heard({ id, is }) {
    if (id === this.#id || this.#page === undefined) return;
    clearTimeout(this.#others.get(id));
    if (is === "who") this.#show();
    else if (is === "gone") this.#others.delete(id);
    else this.#others.set(id, setTimeout(() => this.#heard({ id, is: "gone" }), GONE_MS));
    this.#look();
  }

  #look() {
    const pace = this.pace;
    if (pace === this.#last) return;
    this.#last = pace;
    this.#changed();
  }
}
