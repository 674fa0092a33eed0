// A node of values only: logs, positions, keys and resume tokens, just enough of the contract to run sessions against.
//
// It answers commands with what a connection would read, held back in `outbox` so that a test can break the connection
// between any two of them.

import { TextBody } from "../../src/content.js";
import { Message, Position } from "../../src/model.js";
import { isPattern, matches } from "../../src/subject.js";
import { replyOf } from "../../src/codec/push.js";

const EPOCH = 7;

/** @param {string} subject @param {string} content @param {object} [fields] */
export const messageOf = (subject, content, fields) => new Message(subject, "json", new TextBody(content), fields);

/** Keeps everything for ever; one connection at a time. */
export class ModelNode {
  feed = []; // the arrival of a message is its index here, from 1
  keys = new Map();
  selectors = new Map(); // subscription: the arrival up to which it was sent
  outbox = [];

  disconnect() {
    this.outbox = [];
    this.selectors.clear();
  }

  take(command) {
    const { id } = command;
    switch (command.verb) {
      case "connect":
        this.outbox.push(replyOf(id, "connected", { session: "s", node: "n", pingIntervalMs: 25_000 }));
        break;
      case "subscribe":
        this.#subscribe(command);
        break;
      case "unsubscribe":
        this.selectors.delete(command.selector);
        this.outbox.push(replyOf(id, "unsubscribed"));
        break;
      case "publish": {
        const key = command.draft.key ?? String(id);
        const isDuplicate = this.keys.has(key);
        if (!isDuplicate) this.keys.set(key, this.append(command.draft.subject, command.draft.content));
        this.outbox.push(replyOf(id, "published", { position: this.keys.get(key), isDuplicate }));
        break;
      }
      default:
        this.outbox.push(replyOf(id, "pong"));
    }
  }

  append(subject, content) {
    const position = new Position(EPOCH, 1 + this.feed.filter((each) => each.subject === subject).length);
    this.feed.push(messageOf(subject, content, { position }));
    this.deliver();
    return position;
  }

  deliver(resumeToken = false) {
    for (const [selector, arrival] of this.selectors) {
      for (const message of this.feed.slice(arrival)) this.#send(selector, message);
      this.selectors.set(selector, this.feed.length);
      if (resumeToken && isPattern(selector)) {
        this.outbox.push({ type: "marked", resumeToken: `1.${this.feed.length}.0`, pattern: selector, node: null });
      }
    }
  }

  #subscribe({ id, selector, resumePoint }) {
    const start = resumePoint.since === null ? 0 : Number(resumePoint.since.split(".")[1]);
    const isWanted = ({ subject, position }, place) =>
      matches(selector, subject) && (resumePoint.after.has(subject) ? !position.isAtOrBefore(resumePoint.after.get(subject)) : place >= start);
    const backlog = this.feed.filter(isWanted);
    const head = this.feed.filter((each) => each.subject === selector).length;
    const position = isPattern(selector) ? null : new Position(EPOCH, head);
    const count = position === null ? 0 : backlog.length;
    this.outbox.push(replyOf(id, "subscribed", { position, outcome: "recovered", count }));
    for (const message of backlog) this.#send(selector, message);
    this.selectors.set(selector, this.feed.length);
  }

  #send(selector, { subject, position }) {
    if (!matches(selector, subject)) return;
    const content = this.feed.find((each) => each.subject === subject && each.position === position).text();
    this.outbox.push(messageOf(subject, content, { position, pattern: isPattern(selector) ? selector : null }));
  }
}
