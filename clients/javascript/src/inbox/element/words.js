// The component's texts, in English. A page sets its own with the property `words`.

export const WORDS = {
  title: "Notifications",
  bell: (/** @type {number} */ unread) => (unread === 0 ? "Notifications, none unread" : `Notifications, ${unread} unread`),
  active: "All",
  unread: "Unread",
  archived: "Archived",
  markAllRead: "Mark all as read",
  preferences: "Preferences",
  back: "Back",
  older: "Load older",
  empty: "No notifications.",
  loading: "Loading…",
  failed: "Notifications cannot be loaded right now. Trying again.",
  refused: "Notifications cannot be loaded.",
  notMarked: "The change could not be saved.",
  untitled: "Notification",
  isUnread: "unread",
  markRead: "Mark as read",
  markUnread: "Mark as unread",
  archive: "Archive",
  restore: "Restore",
  everything: "Everything",
  /** @type {Record<string, string>} */
  channels: { inbox: "Inbox", email: "E-mail", webhook: "Webhook" },
};

/** @typedef {typeof WORDS} Words */
