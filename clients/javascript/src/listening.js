// Callbacks: a reader that hands each item to the user's functions, one at a time, awaiting what they return.
//
// An item counts as handled when its function has returned (or its promise is settled), so a slow one slows the stream and
// loses nothing. What a function throws ends the subscription and is what `done` rejects with.

import { ClientClosed, ClientError } from "./errors.js";

/** @typedef {import("./model.js").Dropped} Dropped */
/** @typedef {import("./model.js").Gap} Gap */
/** @typedef {import("./model.js").Interest} Interest */
/** @typedef {import("./model.js").Message} Message */
/** @typedef {import("./model.js").Status} Status */
/** @typedef {import("./subscription.js").Subscription} Subscription */
/** @typedef {import("./watch.js").Watch} Watch */

/**
 * @typedef {object} Listener what to call with what; each may return a promise
 * @property {(message: Message) => unknown} [message]
 * @property {(gap: Gap) => unknown} [gap] without it gaps are logged
 * @property {(dropped: Dropped) => unknown} [dropped] without it drops are logged
 * @property {(status: Status) => unknown} [status]
 * @property {(error: unknown) => unknown} [error] the subscription was refused or ended; without it `done` rejects
 */

/**
 * A promise of the end, and the function that settles it. Without a handler its rejection is not "unhandled", because the
 * reading loop throws the same error. A listener's promise replaces it, and its rejection is reported.
 * @returns {[Promise<void>, (error: unknown) => void]}
 */
export function newDone() {
  let settle = (/** @type {unknown} */ _error) => {};
  /** @type {Promise<void>} */
  const done = new Promise((resolve, reject) => {
    settle = (error) => (error === null ? resolve() : reject(error));
  });
  done.catch(() => {});
  return [done, settle];
}

/**
 * Hand everything to a listener until the subscription ends.
 * @param {Subscription} subscription
 * @param {Listener | ((message: Message) => unknown)} listener
 * @param {Pick<Console, "warn">} log
 */
export function listen(subscription, listener, log) {
  const functions = typeof listener === "function" ? { message: listener } : listener;
  const {
    gap = (/** @type {Gap} */ { subject, missed, reason }) =>
      log.warn(`godwit: gap on ${subject}: ${missed ?? "some"} messages missed (${reason})`),
    dropped = (/** @type {Dropped} */ { selector, count }) =>
      count !== null && // after a pause, which has been logged
      log.warn(`godwit: ${count} standard messages dropped on ${selector}`),
  } = functions;
  /** @type {Record<string, ((item: any) => unknown) | undefined>} */
  const byType = { message: functions.message, gap, dropped, status: functions.status };
  const reading = (async () => {
    for await (const item of subscription.items()) {
      if (subscription.isClosed) return; // items in the queue were not handled: the position stays before them
      const returned = byType[item.type]?.call(functions, item);
      if (returned instanceof Promise) await returned;
      subscription.handled();
    }
  })();
  subscription.done = ended(reading, subscription, functions.error, log);
}

/**
 * Hand every change of interest to a function until the watch ends.
 * @param {Watch} watch
 * @param {(interest: Interest) => unknown} listener
 * @param {Pick<Console, "warn">} log
 */
export function listenToInterest(watch, listener, log) {
  const reading = (async () => {
    for await (const change of watch) {
      if (watch.isClosed) return;
      await listener(change);
    }
  })();
  watch.done = ended(reading, watch, undefined, log);
}

/**
 * Why a user's signal gives up; browsers of 2021 do not say.
 * @param {AbortSignal | undefined} signal
 */
export const reasonOf = (signal) => signal?.reason ?? new ClientError("the publish was aborted");

/**
 * Call a user's function whose result does not matter; an error, immediate or later, is logged.
 * @param {string} name
 * @param {() => unknown} call
 * @param {Pick<Console, "error">} log
 */
export function callUser(name, call, log) {
  const failed = (/** @type {unknown} */ error) => log.error(`godwit: ${name} threw`, error);
  try {
    Promise.resolve(call()).catch(failed);
  } catch (error) {
    failed(error);
  }
}

/**
 * @param {Promise<void>} reading
 * @param {{ close: () => void, isClosed: boolean }} what
 * @param {((error: unknown) => unknown) | undefined} tell
 * @param {Pick<Console, "warn">} log
 */
async function ended(reading, what, tell, log) {
  try {
    await reading;
  } catch (error) {
    if (what.isClosed) {
      // The function awaited something that ended with this client: not a failure. The error of another client ends this subscription.
      if (!(error instanceof ClientClosed)) log.warn("godwit: a listener failed after close()", error);
      return;
    }
    what.close();
    if (tell === undefined) throw error;
    await tell(error);
  }
}
