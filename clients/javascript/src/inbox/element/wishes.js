// The preferences: a box for each category and channel. A box that is cleared means: not this category on this channel.
//
// A save replaces all preferences. Invariant: one save at a time, and the last one has the latest state of all boxes.

import { build } from "./build.js";

/** @typedef {import("../../inbox.js").Preferences} Preferences */
/** @typedef {{ stored: Preferences, wanted: Preferences }} Form what dispatch has, and what the boxes say */

export class Wishes {
  #page;
  #words;
  #save;
  /** @type {Form} */
  #form = { stored: {}, wanted: {} };
  /** @type {(() => void)[]} set the boxes according to `wanted` */
  #boxes = [];
  #isSaving = false;
  /** Resolves when nothing is being saved. @type {Promise<void>} */
  saving = Promise.resolve();

  /**
   * @param {Document} page
   * @param {import("./words.js").Words} words
   * @param {(preferences: Preferences) => Promise<boolean>} save resolves with whether they were saved
   */
  constructor(page, words, save) {
    this.#page = page;
    this.#words = words;
    this.#save = save;
    this.root = build(page, "div", { class: "wishes", part: "preferences" });
  }

  /**
   * @param {Preferences} given
   * @param {Map<string, string>} categories names and labels, in addition to the given ones
   * @param {readonly string[]} channels
   */
  show(given, categories, channels) {
    this.#form = { stored: given, wanted: given };
    this.#boxes = [];
    const named = new Map([["*", this.#words.everything], ...categories]);
    for (const name of Object.keys(given)) if (!named.has(name)) named.set(name, name);
    const page = this.#page;
    const head = build(page, "tr", {}, build(page, "td"), ...channels.map((channel) => build(page, "th", { scope: "col" }, this.#words.channels[channel] ?? channel)));
    const rows = [...named].map(([name, label]) =>
      build(page, "tr", {}, build(page, "th", { scope: "row" }, label), ...channels.map((channel) => build(page, "td", {}, this.#box(name, label, channel)))),
    );
    this.root.replaceChildren(build(page, "table", {}, build(page, "thead", {}, head), build(page, "tbody", {}, ...rows)));
  }

  /** Forgets the preferences of this receiver: what has not been saved yet is not. */
  clear() {
    this.#form = { stored: {}, wanted: {} };
    this.#boxes = [];
    this.root.replaceChildren();
  }

  /**
   * @param {string} category
   * @param {string} label
   * @param {string} channel
   */
  #box(category, label, channel) {
    const box = build(this.#page, "input", {
      type: "checkbox",
      "aria-label": `${label}: ${this.#words.channels[channel] ?? channel}`,
      change: () => {
        const { wanted } = this.#form;
        this.#form.wanted = { ...wanted, [category]: { ...wanted[category], [channel]: box.checked } };
        if (!this.#isSaving) this.saving = this.#saveLatest();
      },
    });
    const set = () => (box.checked = this.#form.wanted[category]?.[channel] ?? true);
    set();
    this.#boxes.push(set);
    return box;
  }

  /** Saves until the latest state is saved. If that fails, the boxes show the stored state again. */
  async #saveLatest() {
    this.#isSaving = true;
    while (this.#form.wanted !== this.#form.stored) {
      const form = this.#form;
      const sent = form.wanted;
      if (await this.#save(sent)) form.stored = sent;
      else if (form.wanted === sent) {
        form.wanted = form.stored;
        if (form === this.#form) for (const set of this.#boxes) set();
      }
    }
    this.#isSaving = false;
  }
}
