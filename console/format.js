// Figures as text. Quantities keep three digits or so: what is read is the size, what is exact is in the tooltip.

const UNITS = ["", "k", "M", "G", "T", "P"];

// [digits, unit]: 12345 → ["12.3", "k"]; bytes → ["12.3", "kB"].
export function split(value, unit = "") {
  if (value === null || value === undefined || !Number.isFinite(value)) return ["–", ""];
  let size = 0;
  let rest = value;
  while (Math.abs(rest) >= (size === 0 && !unit ? 10000 : 1000) && size < UNITS.length - 1) [rest, size] = [rest / 1000, size + 1];
  const isWhole = size === 0 && Number.isInteger(rest);
  const digits = isWhole ? 0 : Math.abs(rest) < 10 ? 2 : Math.abs(rest) < 100 ? 1 : 0;
  const text = rest.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: size ? digits : 0 });
  return [text, `${UNITS[size]}${unit}`];
}

export function number(value, unit = "") {
  const [digits, suffix] = split(value, unit);
  return suffix ? `${digits} ${suffix}` : digits;
}

export const bytes = (value) => number(value, "B");
export const exact = (value) => value === null || value === undefined ? "–" : Number(value).toLocaleString("en");
// "1 message", "2 messages", "0 deliveries": a count with its noun.
export const counted = (value, one, many = `${one}s`, show = exact) => `${show(value)} ${Number(value) === 1 ? one : many}`;
export const rate = (value) => `${number(value)}/s`;
export const percent = (value) => value === null || value === undefined ? "–" : `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`;

const PARTS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const seconds = Math.floor(ms / 1000);
  const first = PARTS.findIndex(([size]) => seconds >= size);
  if (first < 0) return ms > 0 && ms < 1000 && Number.isFinite(ms) ? "under 1 s" : "0 s";
  return PARTS.slice(first, first + 2)
    .map(([size, name], at) => `${Math.floor(at ? (seconds % PARTS[first][0]) / size : seconds / size)} ${name}`)
    .filter((part, at) => at === 0 || !part.startsWith("0 ")).join(" ");
}

// "just now", "12 s ago": from a time of the node to now by the node's clock.
export function ago(ms, now_ms) {
  if (!ms) return "–";
  const passed = now_ms - ms;
  return passed < 1000 ? "just now" : `${duration(passed).split(" ").slice(0, 2).join(" ")} ago`;
}

export function clock(ms, hasMillis = true) {
  const at = new Date(ms);
  const text = at.toLocaleTimeString("en-GB", { hour12: false });
  return hasMillis ? `${text}.${String(at.getMilliseconds()).padStart(3, "0")}` : text;
}

// Control and direction characters would let a text pretend to be another; they are shown as what they are.
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// The value of a limit by the unit in its name: `_ms` is a time, `_bytes` bytes, anything else a count.
export function quantity(name, value) {
  if (/_ms(_|$)/.test(name)) return value === 0 ? "0 ms" : value < 1000 || value % 1000 ? `${exact(value)} ms` : duration(value);
  if (/_bytes(_|$)/.test(name)) return value >= 1024 && value % 1024 === 0 ? binary(value) : `${exact(value)} B`;
  return exact(value);
}

function binary(value) {
  const size = Math.min(Math.floor(Math.log2(value) / 10), 4);
  const rest = value / 1024 ** size;
  return `${rest.toLocaleString("en", { maximumFractionDigits: 1 })} ${["B", "KiB", "MiB", "GiB", "TiB"][size]}`;
}
