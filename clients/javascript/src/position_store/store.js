// Where positions are kept between runs: anything with `get`, `set` and `delete`, such as a Map; `save` is called after a change.

/** @typedef {import("../session/resume_point.js").SavedResumePoint} SavedResumePoint */

/**
 * @typedef {object} PositionStore
 * @property {(selector: string) => SavedResumePoint | null | undefined} get the last saved value: at once, not as a promise
 * @property {(selector: string, saved: SavedResumePoint) => unknown} set keep this
 * @property {(selector: string) => unknown} [delete] delete the saved value: a gap of the whole pattern made it void
 * @property {(lost: (error: import("../errors.js").PositionFileHeld) => void, log: Pick<Console, "warn">) => unknown} [open] a client begins to use it; may return a
 *   promise, and a rejection ends the client, as does a call of `lost`
 * @property {() => unknown} [close] a client uses it no longer
 * @property {() => unknown} [save] write what was set; may return a promise, which is awaited before the next call, 10 seconds at most
 */
