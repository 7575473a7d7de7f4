// The list of all labels with their scores, those given first.

import { element, hue, two } from "./dom.js";

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
  const ranked = labels
    .map(({ id }) => id)
    .sort((one, other) => given.has(other) - given.has(one) || result.scores[other] - result.scores[one]);
  place.replaceChildren(
    ...ranked.map((id) => {
      const row = element(
        "li",
        { className: given.has(id) ? "given" : "" },
        element("span", { className: "name", textContent: id }),
        meter(result.scores[id], id, thresholds[id]),
        element("span", { className: "score", textContent: two(result.scores[id]) }),
        element("span", { className: "tick", textContent: given.has(id) ? "✓" : "" }),
      );
      row.dataset.label = id;
      return row;
    }),
  );
}

/** The given labels in words, strongest first. */
export function inWords({ labels, scores }) {
  if (!labels.length) return "No emotion reaches its threshold.";
  const ranked = [...labels].sort((one, other) => scores[other] - scores[one]);
  return ranked.map((label) => `${label} ${two(scores[label])}`).join(", ");
}
