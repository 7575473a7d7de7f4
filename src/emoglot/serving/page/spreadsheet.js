// Reads the first sheet of a spreadsheet of Excel (.xlsx) or LibreOffice (.ods): a zip file of XML.

const LARGEST = 2 ** 28; // bytes of one unpacked part: what a browser can still parse as a tree
const DEFLATED = 8;
const DAY = 86_400_000;
const EPOCH = 25_569; // days from Excel's day 0 to 1970
const LATER = 1462; // days between the two epochs of Excel
const DATES = [14, 15, 16, 17, 18, 19, 20, 21, 22, 45, 46, 47]; // formats of dates and times that every file has

/** Whether a file is a zip file. */
export const isZip = (bytes) => bytes.byteLength > 22 && new DataView(bytes).getUint32(0) === 0x504b0304;

/** The rows of the first sheet, without the empty ones. */
export async function readSpreadsheet(bytes) {
  const archive = new Archive(bytes);
  const rows = archive.has("content.xml") ? await readOds(archive) : await readXlsx(archive);
  return rows.map((row) => Array.from(row, (cell) => cell ?? "")).filter((row) => row.some(Boolean));
}

class Archive {
  /** Read the list of parts at the end of a zip file. */
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes);
    this.parts = new Map();
    let end = bytes.byteLength - 22;
    while (end > 0 && this.view.getUint32(end, true) !== 0x06054b50) end -= 1; // a comment may follow
    let place = this.view.getUint32(end + 16, true);
    for (let left = this.view.getUint16(end + 10, true); left > 0; left -= 1) {
      const [name, extra, comment] = [28, 30, 32].map((offset) => this.view.getUint16(place + offset, true));
      this.parts.set(new TextDecoder().decode(bytes.slice(place + 46, place + 46 + name)), place);
      place += 46 + name + extra + comment;
    }
  }

  has(name) {
    return this.parts.has(name);
  }

  /** A part as an XML document; an empty one if it is missing. */
  async xml(name) {
    const text = this.has(name) ? await this.text(this.parts.get(name)) : "<missing/>";
    const document = new DOMParser().parseFromString(text, "application/xml");
    if (document.querySelector("parsererror")) throw new Error(`its part ${name} is damaged`);
    return document;
  }

  async text(place) {
    const [packed, size, start] = [20, 24, 42].map((offset) => this.view.getUint32(place + offset, true));
    if (size > LARGEST) throw new Error("it is too large for a browser");
    const [name, extra] = [26, 28].map((offset) => this.view.getUint16(start + offset, true));
    const first = start + 30 + name + extra;
    const stream = new Blob([this.bytes.slice(first, first + packed)]).stream();
    const isPacked = this.view.getUint16(place + 10, true) === DEFLATED;
    return new Response(isPacked ? stream.pipeThrough(new DecompressionStream("deflate-raw")) : stream).text();
  }
}

const tagged = (parent, name) => [...parent.getElementsByTagNameNS("*", name)];

async function readXlsx(archive) {
  const book = await archive.xml("xl/workbook.xml");
  const links = tagged(await archive.xml("xl/_rels/workbook.xml.rels"), "Relationship");
  const sheet = tagged(book, "sheet")[0];
  if (!sheet) throw new Error("it has no sheet");
  const id = [...sheet.attributes].find(({ name }) => name.endsWith(":id")).value;
  const target = links.find((link) => link.getAttribute("Id") === id).getAttribute("Target");
  const document = await archive.xml(target.startsWith("/") ? target.slice(1) : `xl/${target}`);
  const shared = tagged(await archive.xml("xl/sharedStrings.xml"), "si").map(richText);
  const isDate = datesAmong(await archive.xml("xl/styles.xml"));
  const begin = /^(1|true)$/.test(tagged(book, "workbookPr")[0]?.getAttribute("date1904")) ? LATER : 0;
  const value = (cell) => {
    const type = cell.getAttribute("t") ?? "n";
    if (type === "inlineStr") return richText(cell);
    const raw = tagged(cell, "v")[0]?.textContent ?? "";
    if (type === "s") return shared[raw] ?? "";
    if (type === "b") return raw === "1" ? "true" : "false";
    if (type === "n" && raw && isDate[cell.getAttribute("s") ?? 0]) return inWords(Number(raw) + begin);
    return raw;
  };
  return tagged(document, "row").map((row) => {
    const cells = [];
    for (const cell of tagged(row, "c")) cells[columnOf(cell.getAttribute("r")) ?? cells.length] = value(cell);
    return cells;
  });
}

/** The text of a cell that may have formats within it, without the reading aids of Japanese. */
const richText = (parent) =>
  tagged(parent, "t")
    .filter((part) => part.parentNode.localName !== "rPh")
    .map((part) => part.textContent)
    .join("");

/** AB12 → 27. */
function columnOf(place) {
  const letters = /^[A-Z]+/.exec(place ?? "")?.[0];
  return letters && [...letters].reduce((sum, letter) => 26 * sum + letter.charCodeAt(0) - 64, 0) - 1;
}

/** Which styles of cells show a number as a date or time. */
function datesAmong(styles) {
  const own = tagged(styles, "numFmt").filter((format) =>
    // Letters in quotes, brackets and after a backslash are not part of the format.
    /[ymdhs]/i.test(format.getAttribute("formatCode").replace(/"[^"]*"|\[[^\]]*\]|\\./g, "")),
  );
  const dates = new Set([...DATES, ...own.map((format) => Number(format.getAttribute("numFmtId")))]);
  const formats = tagged(styles, "cellXfs")[0];
  return formats ? tagged(formats, "xf").map((style) => dates.has(Number(style.getAttribute("numFmtId")))) : [];
}

/** A number of days as a date, or as a date and time. */
function inWords(days) {
  const [date, time] = new Date(Math.round((days - EPOCH) * DAY)).toISOString().slice(0, 19).split("T");
  return Number.isInteger(days) ? date : `${date} ${time}`;
}

const MOST_ROWS = 2 ** 20; // of a sheet; the last ones are empty, and are written as one that is repeated
const MOST_COLUMNS = 2 ** 14;

async function readOds(archive) {
  const table = tagged(await archive.xml("content.xml"), "table")[0];
  if (!table) throw new Error("it has no sheet");
  const rows = [];
  for (const row of tagged(table, "table-row")) {
    const cells = [];
    for (const cell of row.children) if (/table-cell$/.test(cell.localName)) repeat(cells, odsText(cell), cell, MOST_COLUMNS);
    if (cells.some(Boolean)) repeat(rows, cells, row, MOST_ROWS);
  }
  return rows;
}

/** Add a value as often as its element states; empty cells up to the end of the sheet are not added. */
function repeat(values, value, { attributes }, most) {
  const times = Number([...attributes].find(({ localName }) => /^number-.*-repeated$/.test(localName))?.value ?? 1);
  if (!value.length && times > most / 2) return;
  for (let left = Math.min(times, most - values.length); left > 0; left -= 1) values.push(value);
}

function odsText(cell) {
  const date = [...cell.attributes].find(({ localName }) => localName === "date-value");
  if (date) return date.value.replace("T", " ");
  const lines = [...cell.children].filter(({ localName }) => localName === "p"); // not those of a comment
  return lines.map((line) => line.textContent).join("\n");
}
