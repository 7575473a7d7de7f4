// Many texts as a table with a bar for every emotion, and their summary.

import { count, element, two } from "./dom.js";
import { languageOf } from "./languages.js";
import { isRead, meter } from "./scores.js";
import { badge, shares } from "./sentiment.js";

export const SHOWN = 200; // rows; more make a phone slow, and the download has them all

const heading = (textContent, scope = "col", className = "") =>
  element("th", { textContent, scope, className, role: scope === "col" ? "columnheader" : "rowheader" });

/** `3 (43 %)` beside a bar. */
function amount(texts, share, name) {
  const number = `${texts.toLocaleString("en")} (${Math.round(100 * share)} %)`;
  return element("td", {}, element("div", {}, meter(share, name), number));
}

export class Table {
  constructor(rows, summary, sentiments) {
    this.head = rows.tHead;
    this.body = rows.tBodies[0];
    this.summary = summary.tBodies[0];
    this.sentiments = sentiments;
  }

  /** Start again with the labels of this model. */
  clear(model) {
    this.model = model;
    this.labels = model.labels.map(({ id }) => id);
    const names = ["Text", "Emotions", ...(model.sentiment ? ["Sentiment"] : []), "Language"];
    const turned = this.labels.map((id) => heading(id, "col", "turned"));
    this.head.replaceChildren(element("tr", { role: "row" }, ...names.map((name) => heading(name)), ...turned));
    this.body.replaceChildren();
    this.summary.replaceChildren();
    this.sentiments.tBodies[0].replaceChildren();
    this.sentiments.hidden = !model.sentiment;
  }

  append(texts, results) {
    const room = Math.max(0, SHOWN - this.body.rows.length);
    this.body.append(...results.slice(0, room).map((result, index) => this.#row(texts[index], result)));
  }

  #row(text, result) {
    // Explicit roles, since phones show rows as blocks, and browsers may then no longer treat them as rows.
    const words = element("div", { dir: "auto", className: "clamped", textContent: text });
    const own = element("th", { scope: "row", role: "rowheader" }, words);
    const given = result.labels.join(", ") || (isRead(result) ? "none" : "");
    const labels = element("td", { role: "cell", className: "labels", textContent: given });
    for (const note of notes(result)) labels.append(element("small", { textContent: note }));
    const { languages, sentiment } = this.model;
    const name = result.language ? languageOf(languages, result.language).name : "";
    const about = [
      ...(sentiment ? [element("td", { role: "cell" }, result.sentiment ? badge(result.sentiment) : "")] : []),
      element("td", { role: "cell", className: "language", textContent: name }),
    ];
    const cells = this.labels.map((id) => {
      const score = result.scores[id];
      const content = score === undefined ? [] : [two(score), meter(score, id)];
      const cell = element("td", { role: "cell", className: "number" }, ...content);
      cell.dataset.label = id;
      if (result.labels.includes(id)) cell.classList.add("given");
      return cell;
    });
    return element("tr", { role: "row" }, own, labels, ...about, ...cells);
  }

  /** Summarise the texts that were read: shares and means. */
  summarise(results) {
    const read = results.filter(isRead);
    const of = Math.max(1, read.length);
    const rows = this.labels.map((id) => {
      const carriers = read.filter(({ labels }) => labels.includes(id)).length;
      const mean = read.reduce((sum, { scores }) => sum + scores[id], 0) / of;
      return { id, carriers, mean };
    });
    rows.sort((one, other) => other.carriers - one.carriers || other.mean - one.mean);
    this.summary.replaceChildren(
      ...rows.map(({ id, carriers, mean }) => {
        const number = element("td", { className: "number", textContent: read.length ? two(mean) : "" });
        const row = element("tr", {}, heading(id, "row"), amount(carriers, carriers / of, id), number);
        row.dataset.label = id;
        return row;
      }),
    );
    if (this.model.sentiment) this.#summariseSentiment(read);
  }

  #summariseSentiment(read) {
    const rows = shares(read).map(({ name, texts, share }) => {
      const row = element("tr", {}, heading(name, "row"), amount(texts, share, name));
      row.dataset.sentiment = name;
      return row;
    });
    this.sentiments.tBodies[0].replaceChildren(...rows);
  }
}

/** Notes on a result that is incomplete. */
export function notes(result) {
  const { unreadable, truncated, cut } = result;
  return [
    unreadable && "The model does not know these letters.",
    !unreadable && !isRead(result) && "There is nothing to read.",
    truncated && "Only the beginning was read.",
    cut && `Too long for the service: only its first ${count(cut, "character")} were sent.`,
  ].filter(Boolean);
}
