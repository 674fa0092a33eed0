// The interface between a session and what carries its frames: a transport opens links, a link carries frames of one encoding.
//
// A WebSocket is one kind (the browser's, or one on Node's sockets); anything that carries frames in order can be another, for
// example one request for events and another for commands. A transport decides nothing about the protocol, holds no subscription,
// and never reconnects: it only reports, once, how its link ended.

/**
 * @typedef {object} LinkEvents events of a link; none before `open` has returned, none after `closed`
 * @property {() => void} opened frames can be sent
 * @property {(frame: string | Uint8Array) => void} frame one came; a text frame is a string
 * @property {() => void} drained frames can be sent again, after `send` answered false
 * @property {(end: LinkEnd) => void} closed it has ended, or could not be opened; called exactly once
 */

/**
 * @typedef {object} LinkEnd
 * @property {number | null} code the close code, if one was received
 * @property {string} reason the peer's reason, or what went wrong
 * @property {boolean} [isTooLarge] a frame was longer than `frameBytesMax`
 * @property {boolean} [isInvalid] a frame cannot be read
 * @property {boolean} [isUntried] no link was opened at all
 * @property {boolean} [isWrongPort] the server answered 421: clients of Godwit are served at another address
 * @property {boolean} [isUnusable] this way of carrying does not work here, and another may
 */

/**
 * @typedef {object} Link
 * @property {(frame: string | Uint8Array) => boolean} send false: enough is on the way, wait for `drained`; it was taken
 * @property {(code: number, reason: string) => void} close end it in good order, or soon without
 * @property {() => void} abort end it now, without a close handshake
 * @property {(() => void)} [pause] stop reading, so that the server's log waits; absent if the link cannot
 * @property {(() => void)} [resume] read on
 */

/**
 * @typedef {object} LinkOptions
 * @property {string} subprotocol
 * @property {number} frameBytesMax of one frame received, if the transport can enforce it
 * @property {number} [streamTimeoutMs] for the first event of a stream
 * @property {number} [pingIntervalMs] how often the server sends something on each stream
 * @property {number} [silenceMs] after it an answer is no longer expected
 */

/** @typedef {(url: string, options: LinkOptions, events: LinkEvents) => Link} Transport */

export const SEND_BUFFER_BYTES_MAX = 1 << 20; // on the way to the kernel; beyond it `send` answers false
export const CLOSE_TIMEOUT_MS = 2_000; // for the peer's answer to a close

/** Ends that are ours to word. */
export const BROKE = "the connection broke";
export const SILENT = "nothing came by the connection any more";
