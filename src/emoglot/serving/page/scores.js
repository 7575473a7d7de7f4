// The list of all labels with their scores, predicted ones first.

import { element, hue, two } from "./dom.js";

/** Whether the model read the text: an empty or unreadable one has no scores. */
export const isRead = ({ scores }) => Object.keys(scores).length > 0;

/** A score as shown, `0.87`; nothing if there is none. */
export const shown = (score) => (score === undefined ? "" : two(score));

export function meter(score, label, threshold = null) {
  const bar = element("span", { className: "meter", ariaHidden: "true" }, element("span"));
  bar.style.setProperty("--hue", hue(label));
  bar.style.setProperty("--score", score);
  if (threshold !== null && threshold <= 1) {
    const tick = element("i");
    tick.style.setProperty("--at", threshold);
    bar.append(tick);
  }
  return bar;
}

export function listScores(place, labels, result, thresholds) {
  const given = new Set(result.labels);
  const scoreOf = (id) => result.scores[id] ?? 0;
  const ranked = labels
    .map(({ id }) => id)
    .sort((one, other) => given.has(other) - given.has(one) || scoreOf(other) - scoreOf(one));
  place.replaceChildren(
    ...ranked.map((id) => {
      const row = element(
        "li",
        { className: given.has(id) ? "given" : "" },
        element("span", { className: "name", textContent: id }),
        meter(scoreOf(id), id, thresholds[id]),
        element("span", { className: "score", textContent: shown(result.scores[id]) }),
        element("span", { className: "tick", textContent: given.has(id) ? "✓" : "" }),
      );
      row.dataset.label = id;
      return row;
    }),
  );
}

/** The predicted labels in words, strongest first; nothing for a text that was not read. */
export function inWords({ labels, scores }) {
  if (!isRead({ scores })) return "";
  if (!labels.length) return "No emotion reaches its threshold.";
  const ranked = [...labels].sort((one, other) => scores[other] - scores[one]);
  return ranked.map((label) => `${label} ${two(scores[label])}`).join(", ");
}
