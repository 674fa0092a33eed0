// Asks dispatch: the documented requests of /v1/openapi.json and nothing else. Owns the key and the kinds of failure.

import { keepForTab, makeQuery, readFromTab, request } from "../browser.js";
import { Refused, Unreachable } from "../refusals.js";

const TIMEOUT_MS = 10_000;
const KEY = "godwit.dispatch.key";

export const readKey = () => readFromTab(KEY);
export const keepKey = (key) => keepForTab(KEY, key);

// The JSON of an answer; throws Refused with dispatch's own words, or Unreachable if there is no answer.
export async function ask(path, { query = {}, method = "GET", body, key = readKey() } = {}) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const text = makeQuery(query);
  let answer;
  try {
    answer = await request(text ? `${path}?${text}` : path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), timeout_ms: TIMEOUT_MS });
  } catch {
    throw new Unreachable("dispatch does not answer");
  }
  const read = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(answer.status, read?.detail ? `${read.title}: ${read.detail}${read.pointer ? ` (${read.pointer})` : ""}` : `dispatch answered ${answer.status}`);
  return read;
}

export const path = (...parts) => `/v1/${parts.map(encodeURIComponent).join("/")}`;
