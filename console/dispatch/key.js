// The API key: asked for, kept for this tab alone, sent as a bearer with each request.

import { element } from "../element.js";
import { askInDialog } from "../parts/dialog.js";
import { keepKey, readKey } from "./api.js";

export async function askForKey() {
  const input = element("input", { name: "key", type: "password", autocomplete: "off", maxlength: 1024 });
  input.value = readKey();
  const given = await askInDialog({
    title: "API key", yes: "Keep", words: "Sent with each request of this tab, and forgotten when the tab closes.",
    fields: [element("label", { class: "field" }, "Key", input)],
  });
  if (given === null) return false;
  keepKey(given.key.trim());
  return true;
}
