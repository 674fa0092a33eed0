// The client's commands, as values; each encoding writes them in its own way.
//
// `id` comes from one counter per client; the answer has the same `id`.

import { utf8Length } from "../content.js";
import { NO_FIELDS, sizeOfFields } from "../model.js";

/** @typedef {import("../content.js").Kind} Kind */
/** @typedef {import("../model.js").Ack} Ack */
/** @typedef {import("../session/resume_point.js").ResumePoint} ResumePoint */

/**
 * @typedef {object} Connect
 * @property {"connect"} verb
 * @property {number} id
 * @property {string | null} token
 * @property {string} client
 * @property {number} [frameBytesMax]
 * @property {string} [publisher] id of this client object
 * @property {number} [number] the first that this publisher has not used
 */

/**
 * @typedef {object} Choice the options of a subscription, without its position
 * @property {number} [last] begin with the last n kept messages of each subject
 * @property {boolean} [snapshot] begin with the snapshot; default true
 * @property {"snapshot" | "oldest"} [onGap] where to continue when messages are gone; default "snapshot"
 * @property {number} [conflateMs] one merged message a window
 */

/** @typedef {{ verb: "subscribe", id: number, selector: string, resumePoint: ResumePoint, choice: Choice }} Subscribe */
/** @typedef {{ verb: "unsubscribe" | "watch" | "unwatch", id: number, selector: string }} Named */
/**
 * @typedef {object} Numbered the number of a publish among those of this client
 * @property {number} number
 * @property {number} floor no number below it is sent again; 0: unknown
 * @property {boolean} isAgain it was sent before, and has no answer
 */

/** @typedef {{ verb: "publish", id: number, draft: Draft, isAlone?: boolean, numbered?: Numbered | null }} Publish alone: in a frame of its own */
/** @typedef {{ verb: "ping", id: number }} Ping */
/** @typedef {Connect | Subscribe | Named | Publish | Ping} Command */

/**
 * @typedef {object} DraftFields
 * @property {string | null} [key]
 * @property {string | null} [replyTo]
 * @property {boolean | null} [retain] null: the server's default
 * @property {boolean | null} [merge] null: use the setting of the subject's pattern
 * @property {import("../model.js").Fields} [fields] null removes one
 * @property {boolean} [isRemoval] it removes the subject's snapshot, and has no content
 * @property {boolean} [guaranteed]
 * @property {Ack | null} [ack]
 */

/**
 * A copy: the caller may use its buffers again while a publish waits.
 * @param {import("../model.js").Fields} fields
 */
function copyOf(fields) {
  if (fields === NO_FIELDS) return NO_FIELDS;
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value instanceof Uint8Array ? new Uint8Array(value) : value]));
}

/** A message before it is published. */
export class Draft {
  /**
   * @param {string} subject
   * @param {Kind} kind
   * @param {string | Uint8Array} content json and text as text
   * @param {DraftFields} [fields]
   */
  constructor(subject, kind, content, fields = {}) {
    this.subject = subject;
    this.kind = kind;
    this.content = content;
    this.fields = copyOf(fields.fields ?? NO_FIELDS);
    this.size = (typeof content === "string" ? utf8Length(content) : content.byteLength) + sizeOfFields(this.fields);
    this.key = fields.key ?? null;
    this.replyTo = fields.replyTo ?? null;
    this.retain = fields.retain ?? null;
    this.merge = fields.merge ?? null;
    this.isRemoval = fields.isRemoval ?? false;
    this.guaranteed = fields.guaranteed ?? true;
    this.ack = fields.ack ?? null;
  }
}
