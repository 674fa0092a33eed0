// A connection in words, and how to end one.

import { change } from "./change.js";

export const standOf = (row) => row.subscriptions === 0 ? "no subscriptions" : row.behind === 0 ? "at the head" : `${row.behind} of ${row.subscriptions} behind`;
export const toneOf = (row) => row.subscriptions === 0 ? "quiet" : row.behind === 0 ? "good" : "warn";

// Ends it when the operator says so; "" when that went well or was dismissed, else why not.
export async function endConnection(row) {
  const words = `${row.client || "A client"} at ${row.address}${row.identity ? `, ${row.identity}` : ""}. The connection is closed with code 4000. Godwit’s own clients then do not reconnect.`;
  const { fault = "" } = await change({ title: "Disconnect this client?", yes: "Disconnect", isDanger: true, words }, `/v1/connections/${row.connection}`, { method: "DELETE" });
  return fault;
}
