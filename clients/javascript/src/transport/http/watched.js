// One watch as a stream carries it. Each new stream carries the state again, between two marks; the session compares.

export class Watched {
  isServed = false; // its reply was passed on

  /** @param {{ id: number, watch: string }} command */
  constructor({ id, watch }) {
    this.id = id;
    this.selector = watch;
  }

  get command() {
    return { id: this.id, watch: this.selector };
  }
}
