// Asks the admin port: the documented endpoints of /openapi.json and nothing else. Owns the token and the kinds of failure.

import { keepForTab, makeQuery, readFromTab, request } from "./browser.js";
import { Refused, Unreachable } from "./refusals.js";

const TIMEOUT_MS = 10_000;
const TOKEN = "godwit.admin.token";

export const readToken = () => readFromTab(TOKEN);
export const keepToken = (token) => keepForTab(TOKEN, token);

// The JSON of an answer; throws Refused with the node's own words, or Unreachable if there is no answer.
export async function ask(path, { query = {}, method = "GET", signal } = {}) {
  const token = readToken();
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const text = makeQuery(query);
  let answer;
  try {
    answer = await request(text ? `${path}?${text}` : path, { method, headers, timeout_ms: TIMEOUT_MS, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable("the node does not answer");
  }
  const body = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(answer.status, body?.title ?? `the node answered ${answer.status}`);
  return body;
}
