// The user's table: columns, rows, and which column contains the texts.

import { decode, parse, write } from "./csv.js";
import { isZip, readSpreadsheet } from "./spreadsheet.js";
import { TEXT_COLUMNS } from "./text_columns.js";

export const fromLines = (lines) => ({ columns: ["text"], rows: lines.map((line) => [line]), column: 0 });

export const linesOf = (text) => text.split(/\r\n|[\r\n]/).filter((line) => line.trim());

const TABBED = "Read as a table, since its lines are separated by tabs.";
const SNIFFED = 20; // records of a .txt that must have equally many fields

/** The records of a file: its lines if its name ends with .txt, else the rows of a table; and what was guessed. */
export async function readFile(name, bytes) {
  if (isZip(bytes)) return { records: await readSpreadsheet(bytes).catch((error) => refuse(name, reasonOf(error))) };
  const content = decode(bytes);
  if (content.includes("\0")) refuse(name, "it is none of these, or it has a password");
  if (/\.(jsonl|ndjson|json)$/i.test(name)) return { records: readObjects(name, content), hasNames: true };
  if (/\.(tsv|tab)$/i.test(name)) return { records: parse(content, "\t") };
  if (!/\.te?xt$/i.test(name)) return { records: parse(content) };
  const table = parse(content, "\t");
  if (isTable(table)) return { records: table, note: TABBED };
  return { records: linesOf(content.replace(/^\ufeff/, "")).map((line) => [line]), hasLines: true };
}

/** The names of all fields, then the rows of JSON objects: one object per line, or an array of them. */
function readObjects(name, content) {
  const objects = content.trimStart().startsWith("[") ? readArray(name, content) : readLines(name, content);
  const columns = [...new Set(objects.flatMap(Object.keys))];
  const cell = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return [columns, ...objects.map((object) => columns.map((column) => cell(object[column] ?? "")))];
}

function readArray(name, content) {
  const objects = parseJson(content) ?? refuse(name, "it is not valid JSON");
  const place = objects.findIndex((value) => !isObject(value));
  return place < 0 ? objects : refuse(name, `element ${place + 1} is not a JSON object`);
}

function readLines(name, content) {
  const numbered = content.split("\n").map((line, index) => [line, index + 1]);
  return numbered
    .filter(([line]) => line.trim())
    .map(([line, number]) => {
      const value = parseJson(line);
      return isObject(value) ? value : refuse(name, `line ${number} is not a JSON object`);
    });
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether records have equally many fields, and a header that names the texts: a spreadsheet saved as text. */
function isTable([header = [], ...rows]) {
  const isEven = rows.slice(0, SNIFFED - 1).every((row) => row.length === header.length);
  return header.length > 1 && rows.length > 0 && isEven && namedColumn(header) >= 0;
}

// Errors of the browser, such as an offset out of bounds, are of no use to the user.
const reasonOf = (error) => (error.constructor === Error ? error.message : "it is damaged");

function refuse(name, reason) {
  const formats = "CSV, TSV, JSONL and TXT files and spreadsheets (.xlsx, .ods)";
  throw new Error(`This page reads ${formats}, but not ${name}: ${reason}. Save it as one of them.`);
}

/** The records of a file as columns and rows. */
export function fromRecords({ records, hasLines }, hasHeader) {
  if (hasLines) return fromLines(records.map(([line]) => line));
  const width = records.reduce((most, record) => Math.max(most, record.length), 0);
  const names = hasHeader ? (records[0] ?? []) : [];
  const columns = Array.from({ length: width }, (_, index) => names[index] ?? `column ${index + 1}`);
  const rows = records.slice(hasHeader ? 1 : 0).map((record) => columns.map((_, index) => record[index] ?? ""));
  return { columns, rows, column: guessColumn(columns, rows) };
}

/** The place of the column with a usual name of texts; -1 if there is none. */
function namedColumn(columns) {
  const names = columns.map((name) => name.trim().normalize("NFC").toLowerCase());
  return names.indexOf(TEXT_COLUMNS.find((wanted) => names.includes(wanted)));
}

// Numbers, dates and times in digits or with the names of days, and addresses.
const NO_TEXT = /^(?:[\d\s.,:;/+\-%()$€£TZ]|[ap]m)*$|^(?:mon|tue|wed|thu|fri|sat|sun),? .*\d\d:\d\d|^https?:\/\/\S+$/i;

/** The column of texts by its name, else the one with most text in its first rows. */
function guessColumn(columns, rows) {
  if (namedColumn(columns) >= 0) return namedColumn(columns);
  const first = rows.slice(0, 100);
  const lengthOf = (cell) => (NO_TEXT.test(cell) ? 0 : cell.length);
  const lengths = columns.map((_, index) => first.reduce((sum, row) => sum + lengthOf(row[index]), 0));
  return lengths.indexOf(Math.max(...lengths));
}

export const textsOf = ({ rows, column }) => rows.map((row) => row[column]);

/** The columns that are added, as `emoglot score` adds them: name, and cell of a result. */
function addedColumns({ labels, sentiment }) {
  const ofSentiment = [
    ["sentiment", (result) => result.sentiment?.name],
    ["sentiment_score", (result) => result.sentiment?.score],
  ];
  return [
    ["labels", (result) => result.labels.join(",")],
    ...labels.map(({ id }) => [id, (result) => result.scores[id]]),
    ...(sentiment ? ofSentiment : []),
    ["language", (result) => result.language],
    ["truncated", (result) => String(Boolean(result.truncated || result.cut))],
    ["unreadable", (result) => String(result.unreadable)],
  ];
}

/** The table for a report: the chosen columns, such as `{ text: 0, time: 2 }`, and the predictions.
 *
 * It has the user's own names, which errors mention; `names` maps the roles to the names in the table.
 */
export function toScored({ columns, rows }, results, model, chosen) {
  const added = addedColumns(model);
  const places = [...new Set(Object.values(chosen))];
  const own = places.map((place) => (isOnlyName(columns, place) ? columns[place] : `column ${place + 1}`));
  const prefix = freePrefix(own, added.map(([name]) => name));
  const body = results.map((result, index) => [
    ...places.map((place) => rows[index][place]),
    ...added.map(([, cell]) => cell(result) ?? ""),
  ]);
  const names = Object.fromEntries(Object.entries(chosen).map(([role, place]) => [role, own[places.indexOf(place)]]));
  return { names, table: write([[...own, ...added.map(([name]) => `${prefix}${name}`)], ...body], false) };
}

const isOnlyName = (columns, place) =>
  columns[place].trim() !== "" && columns.filter((name) => name === columns[place]).length === 1;

/** The prefix of the added columns, as of `emoglot score --prefix`: none, or one with which no name exists twice. */
function freePrefix(columns, names) {
  const isFree = (prefix) => !names.some((name) => columns.includes(`${prefix}${name}`));
  let prefix = "";
  for (let number = 1; !isFree(prefix); number += 1) prefix = number === 1 ? "emoglot_" : `emoglot_${number}_`;
  return prefix;
}

/** The user's columns, then the predictions; cells without a prediction are empty. */
export function toCsv({ columns, rows }, results, model) {
  const added = addedColumns(model);
  const names = added.map(([name]) => name);
  const prefix = freePrefix(columns, names);
  const body = rows.map((row, index) => {
    const result = results[index];
    return [...row, ...added.map(([, cell]) => (result && cell(result)) ?? "")];
  });
  return write([[...columns, ...names.map((name) => `${prefix}${name}`)], ...body]);
}
