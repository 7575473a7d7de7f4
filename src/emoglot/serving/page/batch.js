// Sends many texts in pieces that the service accepts, one piece at a time.

import { predictPatiently } from "./api.js";

const PIECE = 250; // texts: the progress bar moves every second or so
const ENVELOPE = 1000; // bytes of a request without its texts

/** Truncate a text to a number of code points, which is how the service counts. */
export function cut(text, limit) {
  if (text.length <= limit) return text;
  const characters = [...text];
  return characters.length <= limit ? text : characters.slice(0, limit).join("");
}

export function* pieces(texts, limits) {
  const most = Math.min(PIECE, limits.texts);
  const encoder = new TextEncoder();
  let piece = [];
  let bytes = ENVELOPE;
  for (const text of texts) {
    const size = encoder.encode(JSON.stringify(text)).length + 1;
    if (piece.length && (piece.length === most || bytes + size > limits.body_bytes)) {
      yield piece;
      piece = [];
      bytes = ENVELOPE;
    }
    piece.push(text);
    bytes += size;
  }
  if (piece.length) yield piece;
}

/** Score all texts, and yield the answer to each piece. */
export async function* readMany(texts, options, limits, signal, onWait) {
  for (const piece of pieces(texts, limits)) yield await predictPatiently({ texts: piece, ...options }, signal, onWait);
}
