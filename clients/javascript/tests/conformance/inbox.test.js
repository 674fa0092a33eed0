// A client's state of an inbox is as in protocol/vectors/inbox.json after each step.

import assert from "node:assert/strict";
import { test } from "node:test";

import { InboxState } from "../../src/inbox/state.js";
import { vectors } from "../vectors.js";

const TAKES = {
  live: (state, { live }) => state.takeLive(live),
  head: (state, { head }) => state.takeHead(head),
  changes: (state, { changes }) => state.takeChanges(changes),
  older: (state, { older, filter, before }) => state.takeOlder(older, filter, before ?? state.before(filter) ?? ""),
};
const ids = (state, filter) => state.list(filter).map((item) => item.id);
const SHOWS = {
  known: (state) => (state.known === null ? null : String(state.known)),
  unread: (state) => state.unread,
  unseen: (state) => state.unseen,
  active: (state) => ids(state, "active"),
  unread_list: (state) => ids(state, "unread"),
  archived: (state) => ids(state, "archived"),
};

for (const { name, items_max: itemsMax, steps } of vectors("inbox").cases) {
  test(`an inbox follows the table: ${name}`, () => {
    const state = new InboxState(itemsMax);
    for (const step of steps) {
      const [take] = Object.keys(TAKES).filter((kind) => kind in step);
      assert.equal(TAKES[take](state, step), step.is, JSON.stringify(step));
      const { before = {}, ...shows } = step.shows ?? {};
      for (const [what, expected] of Object.entries(shows)) assert.deepEqual(SHOWS[what](state), expected, what);
      for (const [filter, expected] of Object.entries(before)) assert.equal(state.before(filter), expected, filter);
    }
  });
}
