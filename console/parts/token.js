// The admin token: asked for, kept for this tab alone, sent as a bearer with each request.

import { keepToken, readToken } from "../admin.js";
import { element } from "../element.js";
import { askInDialog } from "./dialog.js";

export async function askForToken() {
  const input = element("input", { name: "token", type: "password", autocomplete: "off", maxlength: 65536 });
  input.value = readToken();
  const given = await askInDialog({
    title: "Admin token", yes: "Keep",
    words: "Sent with each request of this tab, and forgotten when it closes. Leave it empty where the port asks for none.",
    fields: [element("label", { class: "field" }, "Token", input)],
  });
  if (given === null) return false;
  keepToken(given.token.trim());
  return true;
}
