// Elements from values. Everything shown goes through text nodes, never through markup: subjects, contents, identities and
// client names are strangers' words.

import { isNode, makeElement } from "./browser.js";
import { visible } from "./format.js";

// element("a", { href, class: "x", onclick: f }, "text", child): attributes that are null or false are left out.
export function element(name, attributes = {}, ...children) {
  const made = makeElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(asNode));
  return made;
}

const asNode = (child) => (isNode(child) ? child : visible(child));

// Changes a text only when it differs: a screen reader hears, and a selection keeps, what stays the same.
export function say(target, text) {
  const shown = visible(text);
  if (target.textContent !== shown) target.textContent = shown;
}

export function panel(title, { id, right, level = "h2", label }, ...children) {
  const heading = element(level, { id: `${id}-title` }, title);
  return element("section", { class: "panel", id, "aria-labelledby": `${id}-title`, "aria-label": label },
    element("header", {}, heading, right ? element("div", { class: "right" }, right) : null), ...children);
}

export function empty(title, ...words) {
  return element("div", { class: "empty" }, element("b", {}, title), ...words);
}

// A choice of a few words, of which one is pressed.
export function choice(label, words, chosen, onChoose) {
  const buttons = Object.entries(words).map(([key, text]) =>
    element("button", { type: "button", "aria-pressed": String(key === chosen), onclick: () => {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === buttons[Object.keys(words).indexOf(key)]));
      onChoose(key);
    } }, text));
  return element("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
}
