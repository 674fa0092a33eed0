// A question over the page: the browser's own dialog, which keeps the focus inside and gives it back.

import { find } from "../browser.js";
import { element } from "../element.js";

// Resolves to the form's values, or null when it was dismissed.
export function askInDialog({ title, words, fields = [], yes, isDanger = false }) {
  const form = element("form", { method: "dialog" },
    element("h2", { id: "dialog-title" }, title), element("p", { class: "quiet" }, words), ...fields,
    element("div", { class: "row" },
      element("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      element("button", { type: "submit", class: isDanger ? "danger" : "main", value: "yes" }, yes)));
  const dialog = element("dialog", { "aria-labelledby": "dialog-title" }, form);
  find("main").after(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    resolve(dialog.returnValue === "yes" ? Object.fromEntries([...form.elements].filter((e) => e.name).map((e) => [e.name, e.value])) : null);
    dialog.remove();
  }));
}
