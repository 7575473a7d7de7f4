// Talks to the service: one question, one answer, or an error that says in a sentence what is wrong.

const TOKEN = "emoglot-token";
const NO_ACCESS = "The service asks for an access token, or does not accept this one.";

export class ServiceError extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);

export const getModel = () => ask("v1/model");

// Half an emoji, as a careless cut leaves it, is no Unicode; the service would refuse the whole question.
const wellFormed = (_, value) => (typeof value === "string" ? (value.toWellFormed?.() ?? value) : value);

const predict = (question, signal) =>
  ask("v1/predict", { method: "POST", body: JSON.stringify(question, wellFormed), signal });

/** Ask as often as the service says it is busy, waiting as long as it says; `onWait` hears how many seconds. */
export async function predictPatiently(question, signal, onWait) {
  for (;;) {
    try {
      return await predict(question, signal);
    } catch (error) {
      if (error.status !== 503) throw error;
      onWait(error.retryAfter);
      await pause(error.retryAfter * 1000, signal);
    }
  }
}

/** Have a scored table made into a page; `options` are the names of its columns and the format of its dates. */
export function getReport(name, table, options) {
  const given = Object.entries({ name, ...options }).filter(([, value]) => value);
  return ask(`v1/report?${new URLSearchParams(given)}`, { method: "POST", body: table }, "text/csv");
}

async function ask(path, options = {}, type = "application/json") {
  const headers = { "Content-Type": type };
  const token = sessionStorage.getItem(TOKEN);
  // What no header can carry is no token; the browser would fail as if the service were gone.
  if (token && !/^[\x20-\x7e]+$/.test(token)) throw new ServiceError(401, NO_ACCESS);
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
    if (response.ok) return await (type === "text/csv" ? response.text() : response.json());
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "The service does not answer. Is it still running? What you see is from before.");
  }
  throw await problem(response);
}

async function problem(response) {
  const { detail } = await response.json().catch(() => ({}));
  const said = Array.isArray(detail) ? detail.map((part) => `${part.loc?.join(" ")}: ${part.msg}`).join("; ") : detail;
  // A date is allowed in Retry-After too; then, and without one, a second is a fair guess.
  const wait = Math.max(1, Number(response.headers.get("Retry-After")) || 1);
  const sentence = {
    401: NO_ACCESS,
    413: `This is more than the service takes at once: ${said}`,
    422: `The service cannot read this: ${said}`,
  }[response.status];
  const otherwise = `The service failed (${response.status}): ${said ?? "no reason given"}`;
  return new ServiceError(response.status, sentence ?? otherwise, wait);
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
