// Many texts as the user gave them: columns, rows, and which column holds the texts.

import { parse, write } from "./csv.js";

const TEXT_COLUMNS = ["text", "tweet", "comment", "sentence", "message", "content", "review", "post", "body"];

export const fromLines = (lines) => ({ columns: ["text"], rows: lines.map((line) => [line]), column: 0 });

export const linesOf = (text) => text.split(/\r\n|[\r\n]/).filter((line) => line.trim());

/** A file whose name ends with .txt has a text on every line; any other is a table. */
export function fromFile(name, content, hasHeader) {
  if (/\.txt$/i.test(name)) return fromLines(linesOf(content.replace(/^\ufeff/, "")));
  const records = /\.(tsv|tab)$/i.test(name) ? parse(content, "\t") : parse(content);
  const width = records.reduce((most, record) => Math.max(most, record.length), 0);
  const names = hasHeader ? (records.shift() ?? []) : [];
  const columns = Array.from({ length: width }, (_, index) => names[index] ?? `column ${index + 1}`);
  const rows = records.map((record) => columns.map((_, index) => record[index] ?? ""));
  return { columns, rows, column: guessColumn(columns, rows) };
}

function guessColumn(columns, rows) {
  const names = columns.map((name) => name.trim().toLowerCase());
  for (const wanted of TEXT_COLUMNS) if (names.includes(wanted)) return names.indexOf(wanted);
  const first = rows.slice(0, 100);
  const lengths = columns.map((_, index) => first.reduce((sum, row) => sum + row[index].length, 0));
  return lengths.indexOf(Math.max(...lengths));
}

export const textsOf = ({ rows, column }) => rows.map((row) => row[column]);

/** The user's columns as they were, then the labels and a score for each; rows not read yet have none. */
export function toCsv({ columns, rows }, results, labels) {
  const names = ["labels", ...labels].map((name) => (columns.includes(name) ? `emoglot ${name}` : name));
  const body = rows.map((row, index) => {
    const result = results[index];
    const scores = labels.map((id) => result?.scores[id] ?? "");
    return [...row, result?.labels.join("; ") ?? "", ...scores];
  });
  return write([[...columns, ...names], ...body]);
}
