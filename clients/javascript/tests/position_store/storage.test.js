// Positions in a browser's storage: each tab keeps its own, and a new one begins from the furthest back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Signal } from "../../src/signal.js";
import { PositionInvalid, PositionStorage } from "../../src/node.js";
import { LIMITS, open as opened, take } from "../shell/opening.js";
import { Peer } from "../shell/peer.js";

const DAY_MS = 86_400_000;

/** As a browser has it. */
class FakeStorage {
  entries = new Map();
  get length() {
    return this.entries.size;
  }
  key = (index) => [...this.entries.keys()][index] ?? null;
  getItem = (key) => this.entries.get(key) ?? null;
  setItem = (key, value) => this.entries.set(key, value);
  removeItem = (key) => this.entries.delete(key);
}

const open = (storage, id, name = "n") => new PositionStorage(name, storage, { id });
const at = (position, since) => ({ after: { "/a": position }, ...(since && { since }) });

test("each tab has its own, also when its name changes", () => {
  const [storage, tab] = [new FakeStorage(), { id: "one" }];
  const [first, second] = [new PositionStorage("n", storage, tab), open(storage, "two")];
  first.set("/a", at("7.1"));
  second.set("/a", at("7.9"));
  assert.deepEqual([first.get("/a"), second.get("/a")], [at("7.1"), at("7.9")]);
  tab.id = "new";
  first.set("/a", at("7.2"));
  assert.deepEqual(open(storage, "one").get("/a"), at("7.1"));
  first.delete("/a");
  assert.deepEqual(second.get("/a"), at("7.9"));
});

test("a tab without one begins from the furthest back of the last day, under its name alone", () => {
  const storage = new FakeStorage();
  open(storage, "1").set("/a", at("7.20"));
  open(storage, "2").set("/a", at("7.3"));
  open(storage, "3").set("/b/a", at("7.1"));
  open(storage, "4", "other").set("/a", at("7.1"));
  storage.setItem("godwit:n:5:/a", JSON.stringify({ used: Date.now() - 2 * DAY_MS, resumePoint: at("7.1") }));
  assert.deepEqual(open(storage, "6").get("/a"), at("7.3"));
  open(storage, "1").set("/p/*", at("7.2", "9.40.2000"));
  open(storage, "2").set("/p/*", at("7.8", "9.30.1000"));
  assert.deepEqual(open(storage, "6").get("/p/*"), at("7.8", "9.30.1000"));
  assert.equal(open(storage, "6").get("/none"), undefined);
});

test("what was unused for seven days goes, and so does what is no entry", () => {
  const storage = new FakeStorage();
  storage.setItem("godwit:n:1:/a", JSON.stringify({ used: Date.now() - 8 * DAY_MS, resumePoint: at("7.1") }));
  storage.setItem("godwit:other:1:/a", JSON.stringify({ used: 0, resumePoint: at("7.1") }));
  storage.setItem("theirs", "x");
  open(storage, "2").set("/a", at("7.1"));
  open(storage, "2");
  assert.deepEqual([...storage.entries.keys()].sort(), ["godwit:n:2:/a", "godwit:other:1:/a", "theirs"]);
  storage.setItem("godwit:n:2:/b", "no json");
  assert.throws(() => storage.getItem("godwit:n:2:/b") && new PositionStorage("n", { ...storage, length: 0 }, { id: "2" }).get("/b"), PositionInvalid);
});

const denied = () => {
  throw new DOMException("The operation is insecure.", "SecurityError");
};
const BLOCKED = {
  "is not there": null,
  "throws at everything": { get length() { return denied(); }, key: denied, getItem: denied, setItem: denied, removeItem: denied },
  "is full": { ...new FakeStorage(), length: 0, setItem: denied },
};

for (const [how, storage] of Object.entries(BLOCKED)) {
  test(`a storage that ${how} is an event and no error, and positions last as long as the page`, LIMITS, async () => {
    const [peer, failed, reported] = [new Peer(), new Signal(), []];
    const positions = new PositionStorage("n", storage, { id: "1" });
    const onSaveFailed = async (error) => {
      reported.push(error.name);
      failed.notify();
      throw new Error("the user's own mistake, later");
    };
    const client = opened(peer, { settings: { positionsSaveMs: 2 }, positions, onSaveFailed });
    const waiting = failed.wait();
    for (let count = 1; count <= 3; count++) {
      peer.append("/a", count);
      const subscription = client.subscribe("/a");
      assert.deepEqual(await take(subscription, 1), [count]);
      subscription.handled();
      if (count === 1) await waiting;
      subscription.close();
      await client.publish("/b", 1);
    }
    positions.delete("/a");
    assert.equal(positions.get("/a"), undefined);
    await client.close();
    assert.deepEqual(reported, ["StorageUnavailable"]);
  });
}

test("an entry of this tab that is no position is refused; the tab does not start without a position", () => {
  const storage = new FakeStorage();
  storage.setItem("godwit:n:tab:/a", "{broken");
  assert.throws(() => open(storage, "tab").get("/a"), PositionInvalid);
  assert.equal(open(storage, "oth").get("/a"), undefined);
});
