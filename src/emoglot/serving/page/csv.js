// Reads CSV (RFC 4180) leniently, and writes it safely.

const DELIMITERS = ["\t", ";", ","];

/** Bytes of a file to text: UTF-8, UTF-16 with a byte order mark (Excel's "Unicode text"), else Windows-1252. */
export function decode(bytes) {
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** The delimiter that splits the first record into the most fields. */
export function guessDelimiter(text) {
  const widths = DELIMITERS.map((delimiter) => records(text, delimiter).next().value?.length ?? 0);
  return DELIMITERS[widths.lastIndexOf(Math.max(...widths))];
}

export function parse(text, delimiter = guessDelimiter(text)) {
  return [...records(text, delimiter)].filter((record) => record.length > 1 || record[0] !== "");
}

function* records(text, delimiter) {
  const plainEnd = new RegExp(`[${delimiter}\r\n]|$`, "g");
  let record = [];
  let place = text.startsWith("\ufeff") ? 1 : 0;
  while (place < text.length) {
    const quoted = text[place] === '"' ? quotedField(text, place, delimiter) : null;
    if (quoted) {
      record.push(quoted.field);
      place = quoted.end;
    } else {
      plainEnd.lastIndex = place;
      const end = plainEnd.exec(text).index;
      record.push(text.slice(place, end));
      place = end;
    }
    if (text[place] === delimiter) {
      place += 1;
      if (place < text.length) continue;
      record.push("");
    }
    place += text.startsWith("\r\n", place) ? 2 : 1;
    yield record;
    record = [];
  }
}

/** Read a quoted field; null if the quote is not closed before a delimiter or line end: then it is a plain character. */
function quotedField(text, start, delimiter) {
  let close = text.indexOf('"', start + 1);
  while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  if (close < 0) return null;
  const next = text[close + 1];
  if (next !== undefined && next !== delimiter && next !== "\r" && next !== "\n") return null;
  return { field: text.slice(start + 1, close).replaceAll('""', '"'), end: close + 1 };
}

/** Prevent a spreadsheet from interpreting a cell as a formula. */
const guard = (cell) => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);

/** Write rows of cells; strings are guarded unless only a program reads them. The byte order mark is for Excel. */
export function write(rows, isGuarded = true) {
  const cell = (value) => {
    const text = isGuarded && typeof value === "string" ? guard(value) : String(value);
    return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `\ufeff${rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")}`;
}
