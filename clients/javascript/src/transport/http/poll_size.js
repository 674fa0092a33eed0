// How many messages one answer to a long poll may hold.
//
// An interrupted answer is useless, because the client knows its position only after a complete one. Over connections that end
// before a full answer has arrived, a client would request the same messages without end. Therefore it requests fewer after an
// interrupted answer, and more again after complete ones. One object for each client, because an interruption ends the link.

const MOST = 1_000; // the node's maximum

export class PollSize {
  limit = MOST;

  arrived() {
    this.limit = Math.min(MOST, this.limit * 2);
  }

  broke() {
    this.limit = Math.max(1, Math.floor(this.limit / 4));
  }
}
