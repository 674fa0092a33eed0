// How many messages one answer to a long poll may hold.
//
// An answer that breaks off is of no use: where a client stands is known of a whole one only. Over connections that live for
// less than a full answer takes, a client would ask for the same messages for ever; so it asks for fewer when one breaks
// off, and for more again as they come whole. Of a client, and not of a link: what broke off has ended the link, too.

const MOST = 1_000; // what a node gives at most

export class Portion {
  limit = MOST;

  arrived() {
    this.limit = Math.min(MOST, this.limit * 2);
  }

  broke() {
    this.limit = Math.max(1, Math.floor(this.limit / 4));
  }
}
