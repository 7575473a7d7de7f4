// Sends requests to the service and returns the answer, or throws an error with one sentence.

const TOKEN = "emoglot-token";
const NO_ACCESS = "The service requires an access token, or does not accept this one.";

export class ServiceError extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);

export const getModel = () => ask("v1/model");

// Half an emoji, left by a careless cut, is not valid Unicode; the service would reject the whole request.
const wellFormed = (_, value) => (typeof value === "string" ? (value.toWellFormed?.() ?? value) : value);

const predict = (question, signal) =>
  ask("v1/predict", { method: "POST", body: JSON.stringify(question, wellFormed), signal });

/** Repeat a request while the service is busy, after the time that it states; `onWait` is called with the seconds. */
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

/** Request a report of a scored table; `options` are the names of its columns and the format of its dates. */
export function getReport(name, table, options) {
  const given = Object.entries({ name, ...options }).filter(([, value]) => value);
  return ask(`v1/report?${new URLSearchParams(given)}`, { method: "POST", body: table }, "text/csv");
}

async function ask(path, options = {}, type = "application/json") {
  const headers = { "Content-Type": type };
  const token = sessionStorage.getItem(TOKEN);
  // A token with characters that a header cannot contain is invalid; the browser would fail as if the service were down.
  if (token && !/^[\x20-\x7e]+$/.test(token)) throw new ServiceError(401, NO_ACCESS);
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
    if (response.ok) return await (type === "text/csv" ? response.text() : response.json());
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "The service does not answer. Is it still running? The results shown are from before.");
  }
  throw await problem(response);
}

async function problem(response) {
  const { detail } = await response.json().catch(() => ({}));
  const said = Array.isArray(detail) ? detail.map((part) => `${part.loc?.join(" ")}: ${part.msg}`).join("; ") : detail;
  // Retry-After may also be a date; in this case, and without the header, wait one second.
  const wait = Math.max(1, Number(response.headers.get("Retry-After")) || 1);
  const sentence = {
    401: NO_ACCESS,
    413: `This is more than the service accepts at once: ${said}`,
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
