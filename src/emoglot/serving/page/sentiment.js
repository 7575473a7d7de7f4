// Whether texts are positive, negative, neutral or mixed.

import { element, two } from "./dom.js";

export const SENTIMENTS = ["positive", "negative", "neutral", "mixed"];

/** The sentiment of a result in words; nothing if it has none. */
export const inWords = (sentiment) => (sentiment ? `${sentiment.name} ${two(sentiment.score)}` : "");

/** The words with a dot in their colour. */
export function badge(sentiment) {
  const made = element("span", { className: "sentiment", textContent: inWords(sentiment) });
  made.dataset.sentiment = sentiment.name;
  return made;
}

/** How many of these results have each sentiment, with the share of all that have one. */
export function shares(results) {
  const found = results.map(({ sentiment }) => sentiment?.name).filter(Boolean);
  return SENTIMENTS.map((name) => {
    const texts = found.filter((other) => other === name).length;
    return { name, texts, share: found.length ? texts / found.length : 0 };
  });
}
