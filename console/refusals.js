// How a request fails, on either port: refused with a status and the server's own words, or without an answer.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
export class Unreachable extends Error {}
