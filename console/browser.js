// The one door to the browser: its document, storage, network, clock and events. No other module names a global of the
// browser (a test holds that), so that what each part of the console may touch can be seen in its imports.

export const find = (id) => document.getElementById(id);
export function beginAtTop(main) {
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

const SVG = "http://www.w3.org/2000/svg";

export function makeElement(name) {
  return document.createElement(name);
}

export function makeIcon(id) {
  const icon = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${id}`);
  icon.setAttribute("aria-hidden", "true");
  icon.append(use);
  return icon;
}

export const isNode = (value) => value instanceof Node;
export const setTitle = (text) => { document.title = text; };

// Where the page is: the part after #, as a path and its query.
export function readPlace() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path, query: new URLSearchParams(query) };
}
export function writePlace(path, query) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined)).toString();
  history.replaceState(null, "", `#/${path}${text ? `?${text}` : ""}`);
}
export const makeQuery = (values) =>
  new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null)).toString();
export const onPlace = (listener) => window.addEventListener("hashchange", listener);
export const hostName = () => location.hostname.includes(":") && !location.hostname.startsWith("[") ? `[${location.hostname}]` : location.hostname;

// A request that ends: with its answer, or after the time given, or when `signal` says so.
export function request(path, { method = "GET", headers = {}, body, timeout_ms, signal }) {
  const ends = [AbortSignal.timeout(timeout_ms), ...(signal ? [signal] : [])];
  return fetch(path, { method, headers, body, cache: "no-store", credentials: "same-origin", signal: AbortSignal.any(ends) });
}
export const makeId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""); // without https, too
export const makeAbort = () => new AbortController();
export function openSocket(port, path, protocol) {
  return new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${hostName()}:${port}${path}`, protocol);
}

// What the tab remembers (tokens), and what the browser does (the theme); either may be forbidden.
export const keepForTab = (key, value) => keep(() => sessionStorage, key, value);
export const readFromTab = (key) => recall(() => sessionStorage, key);
export const keepForever = (key, value) => keep(() => localStorage, key, value);
export const readForever = (key) => recall(() => localStorage, key);

function keep(find_storage, key, value) {
  try {
    if (value) find_storage().setItem(key, value);
    else find_storage().removeItem(key);
  } catch { /* a browser that forbids storage forgets at the next reload */ }
}
function recall(find_storage, key) {
  try { return find_storage().getItem(key) ?? ""; } catch { return ""; }
}

export const isHidden = () => document.hidden;
export function onVisibility(listener) {
  document.addEventListener("visibilitychange", listener);
  return () => document.removeEventListener("visibilitychange", listener);
}
export const onKey = (listener) => document.addEventListener("keydown", listener);
export const nowMs = () => performance.now();
export const later = (action, ms) => setTimeout(action, ms);
export const cancel = (timer) => clearTimeout(timer);
export const nextFrame = (action) => requestAnimationFrame(action);

const dark = matchMedia("(prefers-color-scheme: dark)");
export const prefersDark = () => dark.matches;
export const onPreference = (listener) => dark.addEventListener("change", listener);
export const setTheme = (theme) => { document.documentElement.dataset.theme = theme; };
export const readColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const markStale = (isStale) => document.body.classList.toggle("stale", isStale);

export function onResize(element, listener) {
  const observer = new ResizeObserver(() => listener(element.clientWidth, element.clientHeight));
  observer.observe(element);
  return () => observer.disconnect();
}
