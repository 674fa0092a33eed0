// A connection in words, and how to end one: asked first, then done with the admin token.

import { ask } from "../admin.js";
import { askInDialog } from "./dialog.js";
import { askForToken } from "./token.js";

export const hexOf = (row) => BigInt(row.connection).toString(16);
export const standOf = (row) => row.subscriptions === 0 ? "no subscriptions" : row.behind === 0 ? "at the head" : `${row.behind} of ${row.subscriptions} behind`;
export const toneOf = (row) => row.subscriptions === 0 ? "quiet" : row.behind === 0 ? "good" : "warn";

// Ends it when the operator says so; "" when that went well or was dismissed, else why not. Without a token, or with a wrong one, asks for it.
export async function endConnection(row) {
  const yes = await askInDialog({
    title: "Disconnect this client?", yes: "Disconnect", isDanger: true,
    words: `${row.client || "A client"} at ${row.address}${row.identity ? `, ${row.identity}` : ""}. It is closed with code 4000, after which Godwit’s own clients do not come back by themselves.`,
  });
  if (yes === null) return "";
  for (;;) {
    try {
      await ask(`/v1/connections/${row.connection}`, { method: "DELETE" });
      return "";
    } catch (error) {
      if (error.status !== 401 || !(await askForToken(error.message))) return error.message;
    }
  }
}
