// The errors of the client, as one tree of classes; their codes are those of protocol/codes.toml.
//
//     GodwitError
//     ├── SubjectInvalid      a name that is not a valid subject or pattern
//     ├── PositionInvalid     a text that is not a position
//     ├── PositionFileHeld    a file of saved positions that another process uses
//     ├── PositionFileInvalid a file of saved positions that cannot be read
//     ├── CommandRefused      the node answered one command with an error code; the session lives
//     ├── SessionClosed       the session ended with a closing code that forbids coming back
//     └── ClientError         the root of what only the client raises
//         ├── FrameInvalid        the server sent a frame that the protocol does not allow: one more connection is tried
//         ├── SubscriptionExists  this client already has that selector
//         ├── PublishQueueFull    more publishes wait for an answer than the client may hold
//         ├── AnswerLost          the connection went before the answer to a publish that must not be sent twice
//         ├── StorageUnavailable  a page's storage is blocked or full: positions last as long as the page
//         ├── ReplyTimeout        nobody replied to a request in time
//         ├── Unauthorized        thrown by a token function: there will be no token, and the client ends with it
//         └── ClientClosed        the client was closed by its own side

/** The base class of all errors that Godwit throws on purpose. */
export class GodwitError extends Error {}

/** The subject or pattern is not valid; `reason` names the rule that it breaks. */
export class SubjectInvalid extends GodwitError {
  /**
   * @param {string} subject
   * @param {string} reason
   */
  constructor(subject, reason) {
    super(`${JSON.stringify(subject.slice(0, 80))} ${reason}`);
    this.subject = subject;
    this.reason = reason;
  }
}

/** The text is not a position `EPOCH.SEQUENCE`, or not a saved resume point. */
export class PositionInvalid extends GodwitError {
  /** @param {string} text */
  constructor(text) {
    super(
      `${JSON.stringify(text.slice(0, 80))} is not a position: expected two decimal numbers below 2^64 joined by a dot, such as 7.42`,
    );
    this.text = text;
  }
}

/** Another process uses this file of positions. Give each process its own file. */
export class PositionFileHeld extends GodwitError {
  /**
   * @param {string} path
   * @param {string} host
   * @param {string} pid
   */
  constructor(path, host, pid) {
    super(`${path} is used by process ${pid} on ${host}: end that one, or use another file`);
    this.path = path;
    this.host = host;
    this.pid = pid;
  }
}

/** The file does not contain saved positions. It is not overwritten, because its content may matter. */
export class PositionFileInvalid extends GodwitError {
  /**
   * @param {string} path
   * @param {string} why
   */
  constructor(path, why) {
    super(`${path} does not contain saved positions (${why}): repair the file, or move it away to start without positions`);
    this.path = path;
    this.why = why;
  }
}

/** The node refused a command: its `code`, `codeName` and `reason`. `retry` is true if the same command can succeed later. */
export class CommandRefused extends GodwitError {
  /**
   * @param {number} code
   * @param {string} codeName
   * @param {string} reason
   * @param {boolean} [retry]
   */
  constructor(code, codeName, reason, retry = false) {
    super(`${codeName} (${code}): ${reason}`);
    this.code = code;
    this.codeName = codeName;
    this.reason = reason;
    this.retry = retry;
  }

  /**
   * From what a server answered.
   * @param {{ code: number, codeName: string, reason: string, retry: boolean }} refusal
   */
  static of({ code, codeName, reason, retry }) {
    return new CommandRefused(code, codeName, reason, retry);
  }
}

/** The server closed the session with this code, and the client does not reconnect. */
export class SessionClosed extends GodwitError {
  /**
   * @param {number} code
   * @param {string} reason
   */
  constructor(code, reason) {
    super(`closed with ${code}: ${reason}`);
    this.code = code;
    this.reason = reason;
  }
}

/** The base class of errors that only the client throws. */
export class ClientError extends GodwitError {}

/** The server sent a frame that is not valid. The message shows its beginning. */
export class FrameInvalid extends ClientError {}

/** The client already has a subscription or watch for this selector. */
export class SubscriptionExists extends ClientError {
  /** @param {string} selector */
  constructor(selector) {
    super(`${selector} is subscribed or watched already; close that first, or use a second Client`);
    this.selector = selector;
  }
}

/** A limit of unanswered publishes is reached. The publish was not queued. */
export class PublishQueueFull extends ClientError {
  /**
   * @param {string} limit
   * @param {number} value
   */
  constructor(limit, value) {
    super(`unanswered publishes have reached ${limit} = ${value}; await them, or raise the limit`);
    this.limit = limit;
  }
}

/** It is unknown whether the server accepted the message. */
export class AnswerLost extends ClientError {
  /** @param {string} subject */
  constructor(subject) {
    super(`the connection ended before ${subject} was acknowledged, and it is not sent again: it has neither number nor key, another token was set meanwhile, or the server cannot know whether it took it`);
    this.subject = subject;
  }
}

/** The page's storage is blocked or full. The client passes it to `onSaveFailed`. */
export class StorageUnavailable extends ClientError {}

/** A request was published, and no reply arrived in time. */
export class ReplyTimeout extends ClientError {
  /**
   * @param {string} subject
   * @param {number} timeoutMs
   */
  constructor(subject, timeoutMs) {
    super(`no reply from ${subject} within ${timeoutMs} ms`);
    this.subject = subject;
  }
}

/** The client is closed. */
export class ClientClosed extends ClientError {
  /** @param {string} [what] the client, or one subscription of it */
  constructor(what = "the client") {
    super(`${what} is closed`);
  }
}

/** Throw it in a token function to end the client. After any other error the client calls the function again. */
export class Unauthorized extends ClientError {}

// A class that is minified keeps its name here; a static block would leave out browsers that work otherwise.
const NAMES = {
  GodwitError,
  SubjectInvalid,
  PositionInvalid,
  PositionFileHeld,
  PositionFileInvalid,
  CommandRefused,
  SessionClosed,
  ClientError,
  FrameInvalid,
  SubscriptionExists,
  PublishQueueFull,
  AnswerLost,
  StorageUnavailable,
  ReplyTimeout,
  ClientClosed,
  Unauthorized,
};
for (const [name, { prototype }] of Object.entries(NAMES)) prototype.name = name;
