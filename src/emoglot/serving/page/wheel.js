// Plutchik's wheel: eight petals, opposites facing each other; dyads between them, joined to the two that they combine.

import { drawing, hue, two } from "./dom.js";

const ORDER = ["joy", "trust", "fear", "surprise", "sadness", "disgust", "anger", "anticipation"];
const STEP = 360 / ORDER.length;
const RADIUS = 150; // of a petal with score 1
const DYAD = { from: 0.74 * RADIUS, length: 0.5 * RADIUS }; // starts where the gap between two petals opens
const ARC = 1.045 * RADIUS; // just outside the tips

const LABEL_GAP = 20;

const angleOf = (label) => ORDER.indexOf(label) * STEP;
const at = (angle, radius) => {
  const radians = ((angle - 90) * Math.PI) / 180;
  return [radius * Math.cos(radians), radius * Math.sin(radians)];
};

/** Half the width of a petal of length 1 at a distance from its foot: at most 0.21, so that neighbours just touch. */
const halfWidth = (distance) => 2.29 * distance ** 2 * (1 - distance) ** 1.5;

/** The outline of one half of a petal of length 1 that points up: side -1 is the left one. */
function half(side) {
  const points = Array.from({ length: 33 }, (_, index) => index / 32);
  return points.map((distance) => `${(side * halfWidth(distance)).toFixed(4)},${-distance.toFixed(4)}`);
}

const HALVES = [-1, 1].map((side) => `M0,0L${half(side).join("L")}Z`);
const WHOLE = `M${half(-1).join("L")}L${half(1).reverse().join("L")}Z`;

/** A petal of length 1 in one colour, or in two halves. */
function shape(colours) {
  const parts = colours.map((colour, side) => {
    const part = drawing("path", { d: colours.length === 1 ? WHOLE : HALVES[side] });
    part.style.setProperty("--hue", hue(colour));
    return part;
  });
  return [...parts, drawing("path", { class: "edge", d: WHOLE })];
}

export class Wheel {
  /** Draws the petals of labels with a place on the wheel; `svg` stays hidden without a primary emotion. */
  constructor(svg, labels) {
    this.svg = svg;
    this.petals = new Map();
    const primary = labels.filter(({ kind, id }) => kind === "primary" && ORDER.includes(id));
    svg.replaceChildren();
    svg.toggleAttribute("hidden", !primary.length);
    if (!primary.length) return;
    svg.setAttribute("viewBox", "-264 -236 528 478");
    this.ghosts = drawing("g"); // below all petals, so that none is hidden by its neighbour's outline
    svg.append(drawing("circle", { r: RADIUS, class: "ring" }), this.ghosts);
    for (const { id } of primary) this.#petal(id, angleOf(id), 0, RADIUS, [id]);
    this.#dyads(labels.filter(({ kind, of }) => kind === "dyad" && of.every((part) => ORDER.includes(part))));
  }

  #dyads(dyads) {
    const taken = new Set();
    for (const { id, of } of dyads) {
      const [first, last, span] = inOrder(of);
      const gaps = Array.from({ length: span / STEP }, (_, index) => (angleOf(first) + (index + 0.5) * STEP) % 360);
      // Above and below the wheel there is more room for a name than at its sides.
      gaps.sort((one, other) => Math.abs(at(other, 1)[1]) - Math.abs(at(one, 1)[1]));
      const place = gaps.find((gap) => !taken.has(gap));
      if (place === undefined) continue; // it is still in the list of scores
      taken.add(place);
      const [start, end] = [at(angleOf(first), ARC), at(angleOf(last), ARC)];
      this.svg.append(
        drawing("path", { class: "join", d: `M${start}A${ARC} ${ARC} 0 0 1 ${end}` }),
        ...[start, end].map(([cx, cy]) => drawing("circle", { class: "join-end", cx, cy, r: 3.5 })),
      );
      this.#petal(id, place, DYAD.from, DYAD.length, [first, last]);
    }
  }

  #petal(id, angle, from, length, colours) {
    const fill = drawing("g", { class: "fill" }, ...shape(colours));
    const threshold = drawing("path", { class: "threshold" });
    const transform = `rotate(${angle}) translate(0 ${-from})`;
    this.ghosts.append(drawing("g", { class: "ghost", transform: `${transform} scale(${length})` }, ...shape(colours)));
    const body = drawing("g", { transform }, fill, threshold);
    const name = drawing("tspan", { class: "name" }, id);
    const score = drawing("tspan", { class: "score", dy: "1.15em" });
    const group = drawing("g", { class: "petal", "data-label": id }, body, label(angle, from + length, name, score));
    this.svg.append(group);
    this.petals.set(id, { group, fill, threshold, score, length });
  }

  /** Fill the petals; without scores only the thresholds are shown. */
  show(scores, given, thresholds) {
    for (const [id, petal] of this.petals) {
      const score = scores?.[id] ?? 0;
      const isGiven = given.includes(id);
      petal.group.classList.toggle("given", isGiven);
      petal.group.dataset.score = score;
      petal.fill.style.transform = `scale(${score * petal.length})`;
      petal.threshold.setAttribute("d", line(thresholds[id], petal.length));
      petal.score.textContent = scores ? `${isGiven ? "✓ " : ""}${two(score)}` : "";
    }
    const said = given.map((id) => `${id} ${two(scores[id])}`).join(", ");
    this.svg.setAttribute("aria-label", `Plutchik's wheel: ${said || "no emotion given"}`);
  }
}

/** The two parts of a dyad clockwise, the short way round, and the angle between them. */
function inOrder([one, other]) {
  const span = (angleOf(other) - angleOf(one) + 360) % 360;
  return span <= 180 ? [one, other, span] : [other, one, 360 - span];
}

/** The threshold across a petal, a little wider than the petal is there; none for a label that is never predicted. */
function line(threshold, length) {
  if (threshold === null || threshold > 1) return "";
  const width = (halfWidth(threshold) + 0.015) * length;
  return `M${-width},${-threshold * length}H${width}`;
}

function label(angle, tip, name, score) {
  const [x, y] = at(angle, tip + LABEL_GAP);
  const sideways = Math.abs(x) < 20 ? "middle" : x > 0 ? "start" : "end";
  // Two lines stand on the point below the wheel, hang from it above, and are centred on it at its sides.
  const lift = (y / (tip + LABEL_GAP) - 1) * 12 + 6;
  name.setAttribute("x", x.toFixed(1));
  score.setAttribute("x", x.toFixed(1));
  return drawing("text", { y: (y + lift).toFixed(1), "text-anchor": sideways }, name, score);
}
