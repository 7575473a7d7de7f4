// The choice of a language, and how well the model was measured to do in it.

import { count, element, two } from "./dom.js";

export const ANY = "any"; // turns recognition off
const NOTHING_KNOWN = { weak: false, macro_f1: null, labelled_rows: 0, agreement: null, translated_rows: 0, threshold: null };

/** All that is known of a language; where that is nothing, its code is its name. */
export const languageOf = (languages, code) =>
  languages.find((language) => language.code === code) ?? { code, name: code, ...NOTHING_KNOWN };

export function fillLanguages(select, languages) {
  const sorted = [...languages].sort((one, other) => one.name.localeCompare(other.name, "en"));
  const options = sorted.map(({ code, name, weak }) =>
    element("option", { value: code, textContent: weak ? `${name} (weak)` : name }),
  );
  select.append(...options);
}

/** What was measured, in words, and whether the thresholds in use are the language's own. */
export function quality({ name, weak, macro_f1, labelled_rows, agreement, translated_rows, threshold }, used) {
  const found = [];
  if (macro_f1 !== null) found.push(`macro F1 of ${two(macro_f1)} on ${count(labelled_rows, "labelled text")}`);
  const scale = "1 is full agreement, 0 is chance";
  if (agreement !== null)
    found.push(`κ = ${two(agreement)} with the English of ${count(translated_rows, "translation")} (${scale})`);
  const isOwn = threshold && Object.entries(threshold).every(([id, cut]) => used[id] === cut || used[id] === null);
  const measured = found.length ? `${name}: ${found.join("; ")}.` : `${name}: nobody has measured this language.`;
  return [
    measured,
    weak ? "That is weak: expect many mistakes." : "",
    isOwn ? "It has thresholds of its own, which are used." : "",
  ]
    .filter(Boolean)
    .join(" ");
}
