// The choice of a language, and the measured quality of the model in it.

import { count, element, two } from "./dom.js";

export const ANY = "any"; // turns recognition off
const NOTHING_KNOWN = { weak: false, macro_f1: null, labelled_rows: 0, agreement: null, translated_rows: 0, threshold: null };

/** The measurements of a language; by default only its code, as its name. */
export const languageOf = (languages, code) =>
  languages.find((language) => language.code === code) ?? { code, name: code, ...NOTHING_KNOWN };

export function fillLanguages(select, languages) {
  const sorted = [...languages].sort((one, other) => one.name.localeCompare(other.name, "en"));
  const options = sorted.map(({ code, name, weak }) =>
    element("option", { value: code, textContent: weak ? `${name} (weak)` : name }),
  );
  select.append(...options);
}

/** The measurements in words, and whether the language has its own thresholds. */
export function quality({ name, weak, macro_f1, labelled_rows, agreement, translated_rows, threshold }, used) {
  const found = [];
  if (macro_f1 !== null) found.push(`macro F1 of ${two(macro_f1)} on ${count(labelled_rows, "labelled text")}`);
  const scale = "1 is full agreement, 0 is chance";
  if (agreement !== null)
    found.push(`κ = ${two(agreement)} with the English of ${count(translated_rows, "translation")} (${scale})`);
  const isOwn = threshold && Object.entries(threshold).every(([id, cut]) => used[id] === cut || used[id] === null);
  const measured = found.length ? `${name}: ${found.join("; ")}.` : `${name}: this language was not measured.`;
  return [
    measured,
    weak ? "This is weak: expect many mistakes." : "",
    isOwn ? "It has its own thresholds, which are used." : "",
  ]
    .filter(Boolean)
    .join(" ");
}
