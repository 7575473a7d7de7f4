// Many texts as a table with a bar for every emotion, and their summary.

import { count, element, two } from "./dom.js";
import { meter } from "./scores.js";

export const SHOWN = 200; // rows; more make a phone slow, and the download has them all

const heading = (textContent, scope = "col") =>
  element("th", { textContent, scope, role: scope === "col" ? "columnheader" : "rowheader" });

export class Table {
  constructor(rows, summary) {
    this.head = rows.tHead;
    this.body = rows.tBodies[0];
    this.summary = summary.tBodies[0];
  }

  /** Start anew with these labels. */
  clear(labels) {
    this.labels = labels;
    const names = ["Text", "Emotions", ...labels].map((name) => heading(name));
    this.head.replaceChildren(element("tr", { role: "row" }, ...names));
    this.body.replaceChildren();
    this.summary.replaceChildren();
  }

  append(texts, results) {
    const room = Math.max(0, SHOWN - this.body.rows.length);
    this.body.append(...results.slice(0, room).map((result, index) => this.#row(texts[index], result)));
  }

  #row(text, result) {
    // The roles are said because a phone shows the rows as blocks, and a browser may then forget that they are rows.
    const words = element("div", { dir: "auto", className: "clamped", textContent: text });
    const own = element("th", { scope: "row", role: "rowheader" }, words);
    const given = result.labels.join(", ") || (result.unreadable ? "" : "none");
    const labels = element("td", { role: "cell", className: "labels", textContent: given });
    for (const note of notes(result)) labels.append(element("small", { textContent: note }));
    const cells = this.labels.map((id) => {
      const score = result.scores[id];
      const cell = element("td", { role: "cell", className: "number" }, two(score), meter(score, id));
      cell.dataset.label = id;
      if (result.labels.includes(id)) cell.classList.add("given");
      return cell;
    });
    return element("tr", { role: "row" }, own, labels, ...cells);
  }

  summarise(results) {
    const rows = this.labels.map((id) => {
      const carriers = results.filter(({ labels }) => labels.includes(id)).length;
      const mean = results.reduce((sum, { scores }) => sum + scores[id], 0) / results.length;
      return { id, carriers, mean };
    });
    rows.sort((one, other) => other.carriers - one.carriers || other.mean - one.mean);
    this.summary.replaceChildren(
      ...rows.map(({ id, carriers, mean }) => {
        const share = carriers / results.length;
        const number = `${carriers.toLocaleString("en")} (${Math.round(100 * share)} %)`;
        const row = element(
          "tr",
          {},
          heading(id, "row"),
          element("td", {}, element("div", {}, meter(share, id), number)),
          element("td", { className: "number", textContent: two(mean) }),
        );
        row.dataset.label = id;
        return row;
      }),
    );
  }
}

/** What a user must know of a result that is not all it seems. */
export function notes({ unreadable, truncated, cut }) {
  return [
    unreadable && "The model does not know these letters.",
    truncated && "Only the beginning was read.",
    cut && `Too long for the service: only its first ${count(cut, "character")} were sent.`,
  ].filter(Boolean);
}
