// Connects the page: sends the user's input to the service, and shows the answer in the wheel, the words and the table.

import { getModel, getReport, keepToken, predictPatiently } from "./api.js";
import { cut, readMany } from "./batch.js";
import { byId, count, element, say } from "./dom.js";
import { listenForDrops } from "./drops.js";
import { EXAMPLES } from "./examples.js";
import { ANY, fillLanguages, languageOf, quality } from "./languages.js";
import { render } from "./markdown.js";
import { inWords, isRead, listScores } from "./scores.js";
import { badge, inWords as sentimentInWords } from "./sentiment.js";
import { fromLines, fromRecords, linesOf, readFile, textsOf, toCsv, toScored } from "./sheet.js";
import { LAST, neverInWords, precisionAt, inWords as strictnessInWords } from "./strictness.js";
import { notes, SHOWN, Table } from "./table.js";
import { Wheel } from "./wheel.js";
import { paint } from "./words.js";

const PAUSE = 120; // milliseconds without a key press before a request is sent
const LONG_PAUSE = 400; // if there are many lines to score again
const QUIET = 900; // before a screen reader is notified, so that it does not interrupt typing

const editor = byId("text");
const language = byId("language");
const strictness = byId("strictness");
const table = new Table(byId("rows"), byId("summary"), byId("sentiments"));
let model = null;
let wheel = null;
let file = null; // the chosen file: its name and the result of readFile; it is used instead of the editor
let sheet = null;
let shown = null; // the sheet of the results shown; the next may already be requested
let results = [];
let running = null; // the AbortController of the current request
let timer = 0;
let announcement = 0;

const precision = () => (model?.strictness ? precisionAt(strictness.value) : null);

/** The options of a request. */
function options() {
  const wanted = { language: language.value, precision: precision() };
  return Object.fromEntries(Object.entries(wanted).filter(([, value]) => value));
}

/** The thresholds that are known before a text is scored; the service returns those of each text. */
function usualThresholds() {
  const general = model.labels.map(({ id, threshold }) => [id, precision() ? null : threshold]);
  return { ...Object.fromEntries(general), ...(precision() ? {} : languageOf(model.languages, language.value).threshold) };
}

function announce(words) {
  clearTimeout(announcement);
  announcement = setTimeout(() => (byId("status").textContent = words), QUIET);
}

const onWait = (seconds) => say(byId("problem"), `The service is busy; asking again in ${count(seconds, "second")}.`);

/** Run a task and cancel the previous one, so that an old answer never replaces a newer one. */
async function only(task) {
  clearTimeout(timer);
  running?.abort();
  const own = (running = new AbortController());
  try {
    await task(own.signal);
    if (running === own) say(byId("problem"), "");
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("access").hidden = error.status !== 401;
    say(byId("problem"), error.message);
  } finally {
    if (running === own) running = null;
    if (!running) byId("running").hidden = true;
  }
}

function read() {
  if (!model) {
    start(); // it did not answer when the page was opened
    return;
  }
  const lines = linesOf(editor.value);
  byId("lines-option").hidden = Boolean(file) || lines.length < 2;
  if (file) readSheet();
  else if (lines.length > 1 && byId("lines").checked) {
    sheet = fromLines(lines);
    readSheet();
  } else if (lines.length) only((signal) => readOne(editor.value, signal));
  else only(async () => showNothing());
}

function view(isMany) {
  byId("single").hidden = isMany;
  byId("many").hidden = !isMany;
  byId("file-options").hidden = byId("close").hidden = !file;
  byId("header-option").hidden = Boolean(file?.hasLines || file?.hasNames);
}

async function readOne(whole, signal) {
  const limit = model.limits.characters;
  const text = cut(whole, limit);
  const answer = await predictPatiently({ text, explain: true, ...options() }, signal, onWait);
  signal.throwIfAborted();
  const result = answer.results[0];
  view(false);
  draw(result, result.thresholds);
  sayLanguage(result.language, result.thresholds);
  sayNever(answer.never_given);
  const heavy = paint(byId("words"), text, isRead(result) ? result.tokens : []);
  const said = notes({ ...result, cut: text === whole ? 0 : limit });
  say(byId("reading-note"), said.join(" "));
  byId("reading").hidden = false;
  // A long text scrolls in its box, so the box must be reachable by keyboard.
  byId("words").tabIndex = byId("words").scrollHeight > byId("words").clientHeight ? 0 : -1;
  const aloud = [
    isRead(result) && `${inWords(result).replace(/\.$/, "")}.`,
    result.sentiment && `Sentiment: ${sentimentInWords(result.sentiment)}.`,
    result.language && !language.value && `Recognised as ${languageOf(model.languages, result.language).name}.`,
    heavy.length && `Words with the largest weights: ${heavy.slice(0, 3).join(", ")}.`,
    ...said,
    byId("strictness-note").textContent,
  ];
  announce(aloud.filter(Boolean).join(" "));
}

function showNothing() {
  view(false);
  draw({ labels: [], scores: {}, sentiment: null }, usualThresholds());
  sayLanguage(null);
  sayNever([]);
  byId("reading").hidden = true;
  announce("");
}

/** Fill the wheel and the list of scores, and show the predicted labels. */
function draw(result, thresholds) {
  wheel.show(isRead(result) ? result.scores : null, result.labels, thresholds);
  listScores(byId("scores"), model.labels, result, thresholds);
  // Without scores, the wheel shows names and thresholds.
  byId("scores").hidden = !isRead(result) && !byId("wheel").hasAttribute("hidden");
  say(byId("given"), inWords(result));
  const { sentiment } = result;
  const unseen = element("span", { className: "unseen", textContent: "Sentiment: " });
  byId("sentiment").replaceChildren(...(sentiment ? [unseen, badge(sentiment)] : []));
  byId("sentiment").hidden = !sentiment;
}

/** Show the quality of the model in the chosen or recognised language. */
function sayLanguage(recognised, thresholds = usualThresholds()) {
  const code = language.value || recognised;
  const words = code && code !== ANY ? quality(languageOf(model.languages, code), thresholds) : "";
  say(byId("language-note"), words && !language.value ? `Recognised as ${words}` : words);
}

const sayNever = (never) => say(byId("strictness-note"), neverInWords(never, model.labels.length));

function showStrictness() {
  const words = strictnessInWords(precision());
  byId("strictness-words").textContent = words;
  strictness.setAttribute("aria-valuetext", words);
}

function readSheet() {
  const own = sheet;
  const texts = textsOf(own);
  only(async (signal) => {
    const limit = model.limits.characters;
    const sent = texts.map((text) => cut(text, limit));
    let done = [];
    byId("progress").max = texts.length || 1;
    byId("running").hidden = texts.length <= model.limits.texts && !file;
    if (file) {
      table.clear(model);
      showProgress(own, done, texts.length);
    }
    for await (const { results: piece, never_given: never } of readMany(sent, options(), model.limits, signal, onWait)) {
      signal.throwIfAborted();
      if (!done.length) {
        table.clear(model);
        sayLanguage(null);
        sayNever(never);
      }
      const from = done.length;
      const cutAt = (row) => (sent[row] === texts[row] ? 0 : limit);
      done = done.concat(piece.map((result, index) => ({ ...result, cut: cutAt(from + index) })));
      table.append(texts.slice(from, done.length), done.slice(from));
      showProgress(own, done, texts.length);
    }
    announce(`${byId("many-note").textContent} ${byId("strictness-note").textContent}`);
  });
}

function showProgress(own, done, total) {
  shown = own;
  results = done;
  view(true);
  byId("progress").value = done.length;
  if (done.length) table.summarise(done);
  const cuts = done.filter(({ cut }) => cut).length;
  const unreadable = done.filter((result) => result.unreadable).length;
  const empty = done.filter((result) => !isRead(result)).length - unreadable;
  byId("many-title").textContent = file?.name ?? "Your texts";
  byId("many-note").textContent = [
    `${done.length < total ? `${done.length.toLocaleString("en")} of ` : ""}${count(total, "text")} read.`,
    total > SHOWN ? `The table shows the first ${SHOWN}; the summary and the download have them all.` : "",
    cuts ? `${count(cuts, "text")} too long for the service: only the beginning was sent.` : "",
    unreadable ? `${count(unreadable, "text")} in letters that the model does not know.` : "",
    empty ? `${count(empty, "text")} with nothing to read.` : "",
    file?.note ?? "",
  ]
    .filter(Boolean)
    .join(" ");
}

function parseFile() {
  sheet = fromRecords(file, byId("header").checked);
  const options = sheet.columns.map((textContent, value) => element("option", { textContent, value }));
  byId("column").replaceChildren(...options);
  byId("column").value = sheet.column;
  for (const id of ["time", "group"]) {
    const names = sheet.columns.map((textContent, value) => element("option", { textContent, value }));
    byId(id).replaceChildren(element("option", { textContent: "none", value: "" }), ...names);
  }
  read();
}

async function openFile(chosen) {
  if (!chosen) return;
  try {
    file = { name: chosen.name, ...(await readFile(chosen.name, await chosen.arrayBuffer())) };
  } catch (error) {
    say(byId("problem"), error.message);
    return;
  }
  byId("header").checked = true;
  parseFile();
}

function closeFile() {
  file = null;
  byId("file").value = "";
}

const titleOf = () => file?.name ?? "texts.csv";

const download = () =>
  save(toCsv(shown, results, model), "text/csv", `${titleOf().replace(/\.\w+$/, "")}-emotions.csv`);

function save(content, type, name) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // Safari asks for the file only after the click
}

/** Request a report of the scored texts; time and groups are column numbers. */
async function downloadReport() {
  const choice = (id) => (file && byId(id).value !== "" ? Number(byId(id).value) : null);
  byId("report").disabled = true;
  try {
    const chosen = { text: shown.column, time: choice("time"), group: choice("group") };
    const given = Object.fromEntries(Object.entries(chosen).filter(([, place]) => place !== null));
    const { names, table } = toScored(shown, results, model, given);
    const format = file && names.time ? byId("date-format").value.trim() : "";
    const html = await getReport(titleOf(), table, { ...names, date_format: format });
    save(html, "text/html", `${titleOf().replace(/\.\w+$/, "")}-report.html`);
    say(byId("problem"), "");
  } catch (error) {
    say(byId("problem"), error.message);
  } finally {
    byId("report").disabled = false;
  }
}

function readSoon() {
  clearTimeout(timer);
  timer = setTimeout(read, file || linesOf(editor.value).length > 20 ? LONG_PAUSE : PAUSE);
}

function listen() {
  editor.addEventListener("input", () => {
    closeFile();
    readSoon();
  });
  byId("lines").addEventListener("change", read);
  language.addEventListener("change", () => {
    if (model) sayLanguage(null);
    read();
  });
  strictness.addEventListener("input", () => {
    showStrictness();
    readSoon();
  });
  byId("file").addEventListener("change", (event) => openFile(event.target.files[0]));
  byId("header").addEventListener("change", parseFile);
  byId("column").addEventListener("change", (event) => {
    sheet = { ...sheet, column: Number(event.target.value) };
    read();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("download").addEventListener("click", download);
  byId("report").addEventListener("click", downloadReport);
  byId("close").addEventListener("click", () => {
    closeFile();
    read();
    editor.focus();
  });
  byId("access").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(byId("token").value);
    start();
  });
  listenForDrops(openFile);
}

function offerExamples() {
  const buttons = EXAMPLES.map(({ name, text, language: code }) => {
    const button = element("button", { type: "button", textContent: name, lang: code, title: text });
    button.addEventListener("click", () => {
      editor.value = text;
      closeFile();
      read();
    });
    return button;
  });
  document.querySelector(".examples").append(...buttons);
}

async function start() {
  await only(async () => {
    model = await getModel();
    byId("access").hidden = true;
    wheel = new Wheel(byId("wheel"), model.labels);
    document.querySelector(".legend").toggleAttribute("hidden", byId("wheel").hasAttribute("hidden"));
    byId("meanings").hidden = byId("wheel").hasAttribute("hidden"); // the user's own labels have other meanings
    if (language.options.length === 2) fillLanguages(language, model.languages);
    strictness.max = LAST;
    byId("strictness-option").hidden = !model.strictness;
    showStrictness();
    say(byId("model"), `Answers come from ${model.name} ${model.version}, on the machine that serves this page.`);
    byId("card").replaceChildren(...render(model.card));
    byId("about").hidden = !model.card;
  });
  if (!model) return;
  showNothing();
  read();
}

listen();
offerExamples();
start();
