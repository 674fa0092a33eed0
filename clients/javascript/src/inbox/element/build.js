// Elements from values. Everything shown goes through text nodes, never through markup: titles, texts and labels are untrusted.

/**
 * @param {Document} page
 * @param {string} name
 * @param {Record<string, string | boolean | ((event: any) => unknown) | null | undefined>} [attributes] functions listen to events
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function build(page, name, attributes = {}, ...children) {
  const made = page.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** The picture of the bell. @param {Document} page */
export function bell(page) {
  const space = "http://www.w3.org/2000/svg";
  const picture = page.createElementNS(space, "svg");
  const path = page.createElementNS(space, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", fill: "none", "aria-hidden": "true" })) picture.setAttribute(key, value);
  for (const [key, value] of Object.entries({
    d: "M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15L6 16Zm4 4a2 2 0 0 0 4 0",
    stroke: "currentColor",
    "stroke-width": "1.6",
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  })) path.setAttribute(key, value);
  picture.append(path);
  return picture;
}

/**
 * A link that a page may follow: HTTP and mail only, so that no notification runs a script. Null for any other.
 * @param {unknown} text
 * @param {string} base
 */
export function linkOf(text, base) {
  if (typeof text !== "string") return null;
  try {
    const url = new URL(text, base);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
