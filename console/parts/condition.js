// The top of every page of a console: the condition of the node or of dispatch, and a banner if something is wrong.

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
