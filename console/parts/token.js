// The admin token: asked for, kept for this tab alone, sent as a bearer with each request.

import { keepToken, readToken } from "../admin.js";
import { element } from "../element.js";
import { askInDialog } from "./dialog.js";

// `why`: the node's reason for asking for one.
export async function askForToken(why = "") {
  const input = element("input", { name: "token", type: "password", autocomplete: "off", maxlength: 65536 });
  input.value = readToken();
  const given = await askInDialog({
    title: "Admin token", yes: "Keep",
    words: `${why ? `The node: ${why}. ` : ""}It is sent with each request of this tab, and deleted when the tab closes.`,
    fields: [element("label", { class: "field" }, "Token", input)],
  });
  if (given === null) return false;
  keepToken(given.token.trim());
  return true;
}
