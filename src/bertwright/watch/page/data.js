// Asks the server. Answers are kept with their tags: one that has not changed is not sent again.

import { authorization } from "./token.js";

const MOST = 60;
const known = new Map();

// By how many seconds the clock of this machine is ahead of the server's.
export const clock = { ahead: 0 };

// What went wrong, as the page tells it: `kind` is a text of texts.js.
const trouble = (kind, message = "") => Object.assign(new Error(message), { kind });

export async function ask(what, query = {}) {
  const path = `data/${what}?${new URLSearchParams(query)}`;
  const before = known.get(path);
  const headers = authorization();
  if (before) headers["If-None-Match"] = before.tag;
  let response, answer;
  try {
    response = await fetch(path, { headers, cache: "no-store" });
    const date = Date.parse(response.headers.get("Date"));
    if (date) clock.ahead = Math.round((Date.now() - date) / 1000);
    if (response.status === 304 && before) return before.answer;
    answer = await response.json();
  } catch (error) {
    throw trouble("lost", error.message);
  }
  if (!response.ok)
    throw trouble(response.status === 401 ? "token" : "failed", answer.error?.message ?? response.statusText);
  const tag = response.headers.get("ETag");
  known.delete(path);
  if (tag) known.set(path, { tag, answer });
  if (known.size > MOST) known.delete(known.keys().next().value);
  return answer;
}
