// The model object of the page that `bertwright serve` gives: each answer comes from the server.

import { start } from "./talk.js";
import { admit, authorization } from "./token.js";

// What went wrong, as the page tells it: `kind` is a text of texts.js, `seconds` when to ask again.
const trouble = (kind, message = "", seconds = 0) => Object.assign(new Error(message), { kind, seconds });

const KINDS = { 401: "token", 403: "token", 413: "long", 429: "busy", 503: "busy", 504: "slow" };

async function ask(path, body, signal) {
  const headers = authorization();
  if (body) headers["Content-Type"] = "application/json";
  let response, answer;
  try {
    response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      signal,
    });
    answer = await response.json();
  } catch (error) {
    // Without a response there is no server; a response that is no JSON comes from something else at its address.
    throw signal?.aborted ? error : trouble("lost", error.message);
  }
  if (response.ok) return answer;
  const kind = KINDS[response.status] ?? "failed";
  throw trouble(kind, answer.error?.message ?? response.statusText, Number(response.headers.get("Retry-After")) || 1);
}

const results = async (path, body, signal) => (await ask(path, body, signal)).results;
const first = async (path, body, signal) => (await results(path, body, signal))[0];

export const served = {
  admit,
  training: async () => (await fetch("watch/", { method: "HEAD" }).catch(() => ({ ok: false }))).ok,
  models: async (signal) => (await ask("v1/models", null, signal)).data,
  fillMask: (model, text, top, signal) => first("v1/fill-mask", { model, text, top }, signal),
  alternatives: (model, text, top, signal) => first("v1/alternatives", { model, text, top }, signal),
  tokenize: (model, text, signal) => first("v1/tokenize", { model, text }, signal),
  neighbours: (model, word, top, signal) => results("v1/neighbours", { model, word, top }, signal),
  similar: (model, query, texts, top, signal) => results("v1/similar", { model, query, texts, top }, signal),
  classify: (model, text, pair, signal) => first("v1/classify", { model, text, pair }, signal),
  tag: (model, text, signal) => first("v1/tag", { model, text }, signal),
  answer: (model, question, context, signal) => first("v1/answer", { model, question, context }, signal),
  choose: (model, text, choices, signal) => first("v1/choose", { model, text, choices }, signal),
};

start(served);
