// What changes the node: the operator is asked first, then it is done with the admin token, which is asked for where it is missing or wrong.

import { ask } from "../admin.js";
import { askInDialog } from "./dialog.js";
import { askForToken } from "./token.js";

// Resolves to { answer } when it was done, { fault } with the node's words when it was not, {} when the operator thought better of it.
export async function change({ title, words, yes, isDanger = false }, path, options) {
  if (await askInDialog({ title, words, yes, isDanger }) === null) return {};
  for (;;) {
    try {
      return { answer: await ask(path, options) };
    } catch (error) {
      if (error.status !== 401 || !(await askForToken(error.message))) return { fault: error.message };
    }
  }
}
