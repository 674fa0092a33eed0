// The HTTP address of a node, from that of its WebSocket, and the errors of requests as text.

const LIVE_END = "/v1/live";

/**
 * The HTTP address of a node, from the address of its WebSocket; null if it cannot be derived.
 * @param {string} url
 */
export function httpAddress(url) {
  const [address = ""] = url.split(/[?#]/);
  return address.endsWith(LIVE_END) ? address.replace(/^ws/, "http").slice(0, -LIVE_END.length) : null;
}

/**
 * An error as one line of text: the errors of fetch have the reason only in their cause, and OpenSSL's end with a line feed.
 * @param {unknown} error
 */
export function reasonOf(error) {
  const cause = error instanceof Error ? error.cause : undefined;
  return (cause === undefined ? String(error) : `${error}: ${cause}`).replace(/\s+/g, " ").trim();
}
