// What stands above every page of a console: the condition of what it shows, and a banner where something is wrong with it.

import { find } from "../browser.js";
import { element, say } from "../element.js";

export function showBanner(title, words) {
  const banner = find("banner");
  if (banner.textContent !== `${title} ${words}`) banner.replaceChildren(title, " ", element("span", {}, words));
}

export function showCondition(condition) {
  const shown = find("condition");
  say(shown, condition);
  shown.dataset.condition = condition;
}
