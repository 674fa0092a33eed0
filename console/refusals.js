// How a request fails, on either port: refused with a status and the server's own words, or answered by nobody.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
export class Unreachable extends Error {}
