// A server in memory behind a transport of its own: answers in the JSON encoding as the contract says, records the commands,
// and has valves that a test can turn. It shows too what another transport must do.

import { Signal } from "../../src/signal.js";

export class Peer {
  heard = [];
  urls = []; // that were opened
  links = new Set();
  log = new Map();
  keys = new Map();
  news = new Signal();
  isMute = false; // takes everything, answers nothing
  isClosed = false; // refuses connections
  hasPublisher = false; // it knows publishes by their numbers
  canPause = false;
  refuses = null; // a verb
  pauses = 0;

  /** @type {import("../../src/transport/transport.js").Transport} */
  transport = (url, { subprotocol }, events) => {
    this.urls.push(url);
    const link = new PeerLink(this, events, subprotocol);
    this.news.notify();
    setImmediate(() => (this.isClosed ? link.end(null, "refused") : link.opened()));
    return this.canPause ? link : { send: (frame) => link.send(frame), close: (...end) => link.close(...end), abort: () => link.abort() };
  };

  /** Until a condition is true; it is checked after each received command. */
  async until(isTrue) {
    while (!isTrue()) await this.news.wait();
  }

  /** Until this many commands of a verb were received; returns them. */
  async hear(verb, count = 1) {
    const found = () => this.heard.filter((command) => verb in command);
    await this.until(() => found().length >= count);
    return found();
  }

  say(...objects) {
    for (const link of this.links) for (const each of objects) link.tell(each);
  }

  cut(code = null, reason = "cut") {
    for (const link of [...this.links]) link.end(code, reason);
  }

  append(subject, content) {
    if (!this.log.has(subject)) this.log.set(subject, []);
    const sequence = this.log.get(subject).push(content);
    const message = { message: subject, at: `7.${sequence}`, time: 1, content };
    for (const link of this.links) if (link.subjects.has(subject)) link.tell(message);
    return `7.${sequence}`;
  }
}

class PeerLink {
  subjects = new Set();
  #peer;
  #events;
  #waiting = [];
  #isPaused = false;
  #isEnded = false;

  constructor(peer, events, subprotocol) {
    this.#peer = peer;
    this.#events = events;
    this.subprotocol = subprotocol;
  }

  opened() {
    if (this.#isEnded) return;
    this.#peer.links.add(this);
    this.#events.opened();
  }

  send(frame) {
    const read = JSON.parse(frame);
    for (const command of [read].flat()) {
      this.#peer.heard.push(command);
      if (!this.#peer.isMute) setImmediate(() => this.#take(command));
    }
    this.#peer.news.notify();
    return true;
  }

  close(code, reason) {
    this.closed = { code, reason };
    setImmediate(() => this.end(code, reason));
  }

  abort() {
    this.end(null, "aborted");
  }

  pause() {
    this.#peer.pauses++;
    this.#isPaused = true;
  }

  resume() {
    this.#isPaused = false;
    while (this.#waiting.length > 0 && !this.#isPaused && !this.#isEnded) this.#events.frame(this.#waiting.shift());
  }

  tell(object) {
    const frame = typeof object === "string" ? object : JSON.stringify(object);
    if (this.#isPaused) this.#waiting.push(frame);
    else if (!this.#isEnded) this.#events.frame(frame);
  }

  end(code, reason) {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#peer.links.delete(this);
    queueMicrotask(() => {
      this.#events.closed({ code, reason });
      this.#peer.news.notify();
    });
  }

  #take(command) {
    const { id } = command;
    if (this.#peer.refuses !== null && this.#peer.refuses in command) {
      this.tell({ id, error: 4113, name: "SubscribeForbidden", reason: "no", retry: false });
    } else if ("connect" in command) {
      this.tell({ id, ok: "connected", session: "s", node: "n", time: 1, ping_interval_ms: 25_000, publisher: this.#peer.hasPublisher });
    } else if ("subscribe" in command) {
      const subject = command.subscribe;
      const kept = this.#peer.log.get(subject) ?? [];
      const after = Number(command.after?.split(".")[1] ?? 0);
      this.tell({ id, ok: "subscribed", subject, at: `7.${kept.length}`, outcome: "recovered", count: kept.length - after });
      kept.slice(after).forEach((content, n) => {
        this.tell({ message: subject, at: `7.${after + n + 1}`, time: 1, content });
      });
      this.subjects.add(subject);
    } else if ("unsubscribe" in command) {
      this.subjects.delete(command.unsubscribe);
      this.tell({ id, ok: "unsubscribed", subject: command.unsubscribe });
    } else if ("publish" in command) {
      const key = command.key ?? String(this.#peer.keys.size);
      const duplicate = this.#peer.keys.has(key);
      if (!duplicate) this.#peer.keys.set(key, this.#peer.append(command.publish, command.content));
      this.tell({ id, ok: "published", at: this.#peer.keys.get(key), duplicate });
    } else {
      this.tell({ id, ok: "pong", time: 1 });
    }
  }
}
