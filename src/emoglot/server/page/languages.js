// The choice of a language, and how well the model was measured to do in it.

import { count, element, two } from "./dom.js";

export function fillLanguages(select, languages) {
  const sorted = [...languages].sort((one, other) => one.name.localeCompare(other.name, "en"));
  const options = sorted.map(({ code, name, weak }) =>
    element("option", { value: code, textContent: weak ? `${name} (weak)` : name }),
  );
  select.append(...options);
}

/** What was measured, in words. */
export function quality({ name, weak, macro_f1, labelled_rows, agreement, translated_rows, threshold }) {
  const found = [];
  if (macro_f1 !== null) found.push(`macro F1 of ${two(macro_f1)} on ${count(labelled_rows, "labelled text")}`);
  const scale = "1 is full agreement, 0 is chance";
  if (agreement !== null)
    found.push(`κ = ${two(agreement)} with the English of ${count(translated_rows, "translation")} (${scale})`);
  const measured = found.length ? `${name}: ${found.join("; ")}.` : `${name}: nobody has measured this language.`;
  return [
    measured,
    weak ? "That is weak: expect many mistakes." : "",
    threshold ? "It has thresholds of its own, which are used." : "",
  ]
    .filter(Boolean)
    .join(" ");
}
