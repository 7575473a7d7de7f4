// Renders the Markdown of a model card: headings, paragraphs, lists, tables, code, emphasis and links. Elements are
// created one by one and text is inserted as text, so that HTML in the card is never interpreted.

import { element } from "./dom.js";

const FENCE = /^(`{3,}|~{3,})/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^\s*(?:([-*+])|\d{1,9}[.)])\s+(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
// No part may contain its end mark, so that the search takes linear time.
const INLINE = /(`{1,3})([^`]+)\1|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^[\]]*)\]\(([^()\s]*)\)/;
const FRONT_MATTER = /^---\n[^]*?\n---\n/; // metadata that model hubs put before the card
const DEEPEST = 6;
const FIRST_LEVEL = 2; // the page has its own main heading

/** The parts of a line: text, code, emphasis and links. */
export function inline(text) {
  const parts = [];
  for (let rest = text; rest; ) {
    const found = INLINE.exec(rest);
    if (!found) return [...parts, rest];
    const [whole, , code, strong, emphasis, name, address] = found;
    if (found.index) parts.push(rest.slice(0, found.index));
    if (code !== undefined) parts.push(element("code", { textContent: code }));
    else if (strong !== undefined) parts.push(element("strong", {}, ...inline(strong)));
    else if (emphasis !== undefined) parts.push(element("em", {}, ...inline(emphasis)));
    else parts.push(link(name, address));
    rest = rest.slice(found.index + whole.length);
  }
  return parts;
}

/** The protocol of an absolute URL; nothing for a relative one. */
function protocolOf(address) {
  return URL.canParse(address) ? new URL(address).protocol : "";
}

/** A link to another page; other addresses, such as scripts, are left out. */
function link(name, address) {
  if (!["http:", "https:"].includes(protocolOf(address))) return element("span", {}, ...inline(name));
  return element("a", { href: address, rel: "noreferrer noopener", target: "_blank" }, ...inline(name));
}

const cellsOf = (line) =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => cell.trim());

function table(lines) {
  const [head, , ...rows] = lines;
  const headings = cellsOf(head).map((cell) => element("th", { scope: "col" }, ...inline(cell)));
  const body = rows.map((row) => element("tr", {}, ...cellsOf(row).map((cell) => element("td", {}, ...inline(cell)))));
  const whole = element("table", {}, element("thead", {}, element("tr", {}, ...headings)), element("tbody", {}, ...body));
  return element("div", { className: "scroller" }, whole);
}

function list(lines) {
  const items = [];
  for (const line of lines) {
    const found = ITEM.exec(line);
    if (found) items.push(found[2]);
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  const name = ITEM.exec(lines[0])[1] ? "ul" : "ol";
  return element(name, {}, ...items.map((item) => element("li", {}, ...inline(item))));
}

function heading(line) {
  const [, marks, text] = HEADING.exec(line);
  return element(`h${Math.min(DEEPEST, marks.length + FIRST_LEVEL - 1)}`, {}, ...inline(text));
}

const isPlain = (line) => line.trim() && !HEADING.test(line) && !FENCE.test(line) && !ITEM.test(line);

/** How many lines from `start` on satisfy a condition. */
function run(lines, start, condition) {
  let end = start;
  while (end < lines.length && condition(lines[end])) end += 1;
  return end;
}

/** The next block, and the line after it. */
function block(lines, start) {
  const line = lines[start];
  const fence = FENCE.exec(line)?.[1];
  if (fence) {
    const end = run(lines, start + 1, (other) => !other.startsWith(fence));
    const code = element("code", { textContent: lines.slice(start + 1, end).join("\n") });
    return [element("pre", { tabIndex: 0 }, code), end + 1];
  }
  if (HEADING.test(line)) return [heading(line), start + 1];
  if (ITEM.test(line)) {
    const isSame = (other) => ITEM.test(other) && !ITEM.exec(other)[1] === !ITEM.exec(line)[1];
    const end = run(lines, start, (other) => isSame(other) || (isPlain(other) && /^\s/.test(other)));
    return [list(lines.slice(start, end)), end];
  }
  const end = run(lines, start, isPlain);
  if (line.includes("|") && DIVIDER.test(lines[start + 1] ?? "")) return [table(lines.slice(start, end)), end];
  return [element("p", {}, ...inline(lines.slice(start, end).join(" "))), end];
}

/** The elements of a card. */
export function render(markdown) {
  const lines = markdown.replace(/\r\n?/g, "\n").replace(FRONT_MATTER, "").split("\n");
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [made, next] = block(lines, at);
    blocks.push(made);
    at = Math.max(next, at + 1);
  }
  return blocks;
}
