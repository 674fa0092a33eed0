// What each client published and received: the proof is a comparison of the two.
//
// A Ledger keeps every acknowledged publish by subject and sequence. A Reader holds one subscription to the contract as it
// goes: no loss, no duplicate, every content as acknowledged, and missing messages only where a gap was received.

import assert from "node:assert/strict";

import { Signal } from "../../src/signal.js";

/** Acknowledged publishes. Sequences of a subject must come out as 1, 2, 3, … with nothing twice. */
export class Ledger {
  contents = new Map();
  total = 0;
  repeats = 0;
  changed = new Signal();

  write(subject, content, { position, isDuplicate }) {
    if (!this.contents.has(subject)) this.contents.set(subject, new Map());
    const kept = this.contents.get(subject);
    const sequence = Number(position.sequence);
    assert.ok(!kept.has(sequence), `${subject} ${sequence} was given to ${kept.get(sequence)} and to ${content}`);
    kept.set(sequence, content);
    this.total++;
    if (isDuplicate) this.repeats++;
    this.changed.notify();
  }

  /** How many messages each subject of these got. */
  heads(holds) {
    return new Map([...this.contents].filter(([subject]) => holds(subject)).map(([subject, kept]) => [subject, kept.size]));
  }

  check() {
    for (const [subject, kept] of this.contents) {
      assert.equal(Math.max(...kept.keys()), kept.size, `${subject} has holes: something was numbered twice`);
    }
  }
}

/** What one subscription was given, checked as it comes. */
export class Reader {
  stands = new Map();
  received = new Map();
  gaps = [];
  missed = new Map();
  lived = new Map(); // messages that were no snapshot
  moved = new Signal();

  constructor(name, ledger, isConflated = false) {
    this.name = name;
    this.ledger = ledger;
    this.isConflated = isConflated;
  }

  take(item) {
    if (item.type === "message") this.#message(item);
    else if (item.type === "gap") this.#gap(item);
    this.moved.notify();
  }

  isAt(heads) {
    return [...heads].every(([subject, head]) => (this.stands.get(subject) ?? 0) >= head);
  }

  async reach(heads) {
    while (!this.isAt(heads)) await this.moved.wait();
  }

  /** Everything that was acknowledged arrived once, with its content, or was reported as missing. */
  check(heads) {
    for (const [subject, head] of heads) {
      const acknowledged = this.ledger.contents.get(subject);
      for (const [sequence, content] of this.received.get(subject) ?? []) {
        assert.deepEqual(content, acknowledged.get(sequence), `${this.name}: ${subject} ${sequence}`);
      }
      const accounted = (this.lived.get(subject) ?? 0) + (this.missed.get(subject) ?? 0);
      assert.ok(this.isConflated || accounted === head, `${this.name}: ${subject} has ${head}, received or was notified of ${accounted}`);
    }
  }

  #message(message) {
    const { subject, isSnapshot, conflated } = message;
    const sequence = Number(message.position.sequence);
    const after = Number(message.after?.sequence ?? sequence - 1);
    const resumePoint = this.stands.get(subject) ?? (this.gaps.length > 0 ? after : 0);
    if (!isSnapshot) {
      this.lived.set(subject, (this.lived.get(subject) ?? 0) + (conflated || 1));
      const isNext = this.isConflated ? after <= resumePoint && resumePoint < sequence : after === resumePoint && sequence === resumePoint + 1;
      assert.ok(isNext, `${this.name}: ${subject} ${sequence} after ${after} at ${resumePoint}: hole or repeat`);
    }
    if (!this.received.has(subject)) this.received.set(subject, new Map());
    this.received.get(subject).set(sequence, message.json());
    this.stands.set(subject, sequence);
  }

  #gap(gap) {
    this.gaps.push(gap);
    assert.ok(gap.position !== null, `${this.name}: a gap of a whole pattern`);
    const resumePoint = this.stands.get(gap.subject) ?? 0;
    const upto = Number(gap.position.sequence);
    assert.deepEqual([Number(gap.after?.sequence ?? 0), gap.missed], [resumePoint, upto - resumePoint], `${this.name}: ${gap.subject}`);
    this.stands.set(gap.subject, upto);
    this.missed.set(gap.subject, (this.missed.get(gap.subject) ?? 0) + gap.missed);
  }
}
