// Turns figures into text and texts into elements. Everything shown goes through textContent, never through markup:
// subjects, contents, identities and client names are strangers' words.

const UNITS = ["", "k", "M", "G", "T"];

export function number(value, unit = "") {
  if (!Number.isFinite(value)) return "–";
  let size = 0;
  while (Math.abs(value) >= 10000 && size < UNITS.length - 1) [value, size] = [value / 1000, size + 1];
  const digits = size === 0 && Number.isInteger(value) ? 0 : Math.abs(value) < 100 ? 1 : 0;
  return `${value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: size ? digits : 0 })}${size || unit ? " " : ""}${UNITS[size]}${unit}`;
}

export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).map(([size, name], at) => `${Math.floor(at ? (seconds % parts[first][0]) / size : seconds / size)} ${name}`).join(" ");
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString("en", { hour12: false }) + "." + String(ms % 1000).padStart(3, "0");
}

// Control and direction characters would let a text pretend to be another; they are shown as what they are.
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = visible(text);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function row(cells, attributes = {}) {
  const made = element("tr", undefined, attributes);
  for (const cell of cells) made.append(cell instanceof Node ? cell : element("td", cell));
  return made;
}
