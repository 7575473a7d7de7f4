// Highlights the words of a text by their weights.

import { element } from "./dom.js";

const FAINTEST = 0.15; // of the heaviest word; less is not worth a colour

/** Split a text into words and the characters between them, also in scripts without spaces. */
function* pieces(text) {
  if (!globalThis.Intl?.Segmenter) {
    yield* text.match(/\s+|\S+/gu) ?? [];
    return;
  }
  for (const { segment } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)) yield segment;
}

/** Return the words with the sum of their tokens' weights; a token across two words is divided by length. */
export function weigh(text, tokens) {
  const words = [];
  const wordAt = []; // by code point, as the service counts
  for (const piece of pieces(text)) {
    const word = { text: piece, weight: 0 };
    words.push(word);
    for (const _ of piece) wordAt.push(word);
  }
  for (const { start, end, weight } of tokens) {
    const covered = wordAt.slice(start, Math.max(end, start + 1));
    for (const word of covered) word.weight += weight / covered.length;
  }
  return words;
}

/** Put the text into an element with words highlighted, and return the words with the largest weights. */
export function paint(place, text, tokens) {
  const words = weigh(text, tokens);
  const heaviest = words.reduce((most, { weight }) => Math.max(most, weight), 0);
  place.replaceChildren();
  for (const { text: word, weight } of words) {
    const isHeavy = word.trim() && weight > FAINTEST * heaviest;
    place.append(isHeavy ? marked(word, weight, heaviest) : word);
  }
  place.normalize();
  return words
    .filter(({ text: word, weight }) => weight > 0.4 * heaviest && /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(word))
    .sort((one, other) => other.weight - one.weight)
    .map(({ text: word }) => word);
}

function marked(word, weight, heaviest) {
  const mark = element("mark", { textContent: word, title: `weight ${weight.toFixed(2)}` });
  mark.style.setProperty("--weight", `${Math.round((100 * weight) / heaviest)}%`);
  return mark;
}
