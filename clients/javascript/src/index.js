// What both entries, browser.js and node.js, export besides their Client.

export { Code, CODES } from "./codes.js";
export { JsonText } from "./content.js";
export * from "./errors.js";
export { DispatchRefused, DispatchTimeout } from "./inbox/requests.js";
export { Dropped, Gap, Interest, Message, Position, Published, Status } from "./model.js";
export { PositionStorage } from "./position_store/storage.js";
export { ResumePoint } from "./session/resume_point.js";
export { checkPattern, checkSubject, isPattern, matches } from "./subject.js";
export { Subscription } from "./subscription.js";
export { Watch } from "./watch.js";

/** @typedef {import("./client.js").ClientOptions} ClientOptions */
/** @typedef {import("./client.js").PublishOptions} PublishOptions */
/** @typedef {import("./client.js").SubscribeOptions} SubscribeOptions */
/** @typedef {import("./inbox.js").InboxOptions} InboxOptions */
/** @typedef {import("./inbox/state.js").InboxFilter} InboxFilter */
/** @typedef {import("./inbox/state.js").InboxItem} InboxItem */
/** @typedef {import("./listening.js").Listener} Listener */
/** @typedef {import("./model.js").Item} Item */
/** @typedef {import("./position_store/store.js").PositionStore} PositionStore */
/** @typedef {import("./session/resume_point.js").SavedResumePoint} SavedResumePoint */
/** @typedef {import("./session/settings.js").Settings} Settings */
/** @typedef {import("./transport/transport.js").Transport} Transport */
