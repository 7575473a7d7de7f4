// Wires the page: what the user gives goes to the service, and its answer into the wheel, the words and the table.

import { getModel, keepToken, predictPatiently } from "./api.js";
import { cut, readMany } from "./batch.js";
import { decode } from "./csv.js";
import { byId, count, element, say } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { fillLanguages, quality } from "./languages.js";
import { inWords, listScores } from "./scores.js";
import { fromFile, fromLines, linesOf, textsOf, toCsv } from "./sheet.js";
import { notes, SHOWN, Table } from "./table.js";
import { Wheel } from "./wheel.js";
import { paint } from "./words.js";

const PAUSE = 120; // milliseconds without a key before the service is asked
const LONG_PAUSE = 400; // when there are many lines to read again
const QUIET = 900; // before a screen reader is told, so that it does not talk into the typing

const editor = byId("text");
const language = byId("language");
const table = new Table(byId("rows"), byId("summary"));
let model = null;
let wheel = null;
let file = null; // { name, content } of the chosen file; while there is one, it is read instead of the editor
let sheet = null;
let shown = null; // the sheet that the results are of, as the next may be on its way
let results = [];
let running = null; // the AbortController of the question that is out
let timer = 0;
let announcement = 0;

const ids = () => model.labels.map(({ id }) => id);
const chosenLanguage = () => model.languages.find(({ code }) => code === language.value);
const inLanguage = () => (language.value ? { language: language.value } : {});

function thresholds() {
  const general = Object.fromEntries(model.labels.map(({ id, threshold }) => [id, threshold]));
  return { ...general, ...chosenLanguage()?.threshold };
}

function announce(words) {
  clearTimeout(announcement);
  announcement = setTimeout(() => (byId("status").textContent = words), QUIET);
}

const onWait = (seconds) => say(byId("problem"), `The service is busy; asking again in ${count(seconds, "second")}.`);

/** Run a task as the only one: whatever ran before is stopped, so an old answer never comes after a newer one. */
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
  if (file) readSheet();
  else if (lines.length > 1) {
    sheet = fromLines(lines);
    readSheet();
  } else if (lines.length) only((signal) => readOne(editor.value, signal));
  else only(async () => showNothing());
}

function view(isMany) {
  byId("single").hidden = isMany;
  byId("many").hidden = !isMany;
  byId("file-options").hidden = byId("close").hidden = !file;
}

async function readOne(whole, signal) {
  const limit = model.limits.characters;
  const text = cut(whole, limit);
  const answer = await predictPatiently({ text, explain: true, ...inLanguage() }, signal, onWait);
  signal.throwIfAborted();
  const result = answer.results[0];
  view(false);
  wheel.show(result.scores, result.labels, thresholds());
  listScores(byId("scores"), model.labels, result, thresholds());
  const heavy = paint(byId("words"), text, result.unreadable ? [] : result.tokens);
  const said = notes({ ...result, cut: text === whole ? 0 : limit });
  say(byId("reading-note"), said.join(" "));
  byId("reading").hidden = false;
  // A long text scrolls in its box, so the keyboard must get there.
  byId("words").tabIndex = byId("words").scrollHeight > byId("words").clientHeight ? 0 : -1;
  byId("scores").hidden = false;
  say(byId("given"), inWords(result));
  const words = heavy.length ? ` Words that weighed most: ${heavy.slice(0, 3).join(", ")}.` : "";
  announce(`${inWords(result)}.${words} ${said.join(" ")}`);
}

function showNothing() {
  view(false);
  const zero = { labels: [], scores: Object.fromEntries(ids().map((id) => [id, 0])) };
  wheel.show(null, [], thresholds());
  listScores(byId("scores"), model.labels, zero, thresholds());
  byId("reading").hidden = true;
  byId("scores").hidden = !byId("wheel").hasAttribute("hidden"); // the wheel shows its names and thresholds already
  say(byId("given"), "");
  announce("");
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
      table.clear(ids());
      showProgress(own, done, texts.length);
    }
    for await (const piece of readMany(sent, inLanguage(), model.limits, signal, onWait)) {
      signal.throwIfAborted();
      if (!done.length) table.clear(ids());
      const from = done.length;
      const cutAt = (row) => (sent[row] === texts[row] ? 0 : limit);
      done = done.concat(piece.map((result, index) => ({ ...result, cut: cutAt(from + index) })));
      table.append(texts.slice(from, done.length), done.slice(from));
      showProgress(own, done, texts.length);
    }
    announce(byId("many-note").textContent);
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
  byId("many-title").textContent = file?.name ?? "Your texts";
  byId("many-note").textContent = [
    `${done.length < total ? `${done.length.toLocaleString("en")} of ` : ""}${count(total, "text")} read.`,
    total > SHOWN ? `The table shows the first ${SHOWN}; the summary and the download have them all.` : "",
    cuts ? `${count(cuts, "text")} too long for the service: only the beginning was sent.` : "",
    unreadable ? `${count(unreadable, "text")} in letters that the model does not know.` : "",
  ]
    .filter(Boolean)
    .join(" ");
}

function parseFile() {
  sheet = fromFile(file.name, file.content, byId("header").checked);
  const options = sheet.columns.map((textContent, value) => element("option", { textContent, value }));
  byId("column").replaceChildren(...options);
  byId("column").value = sheet.column;
  read();
}

async function openFile(chosen) {
  if (!chosen) return;
  file = { name: chosen.name, content: decode(await chosen.arrayBuffer()) };
  byId("header").checked = true;
  parseFile();
}

function closeFile() {
  file = null;
  byId("file").value = "";
}

function download() {
  const address = URL.createObjectURL(new Blob([toCsv(shown, results, ids())], { type: "text/csv" }));
  const name = `${file ? file.name.replace(/\.\w+$/, "") : "texts"}-emotions.csv`;
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // Safari asks for the file only after the click
}

function listen() {
  editor.addEventListener("input", () => {
    closeFile();
    clearTimeout(timer);
    timer = setTimeout(read, linesOf(editor.value).length > 20 ? LONG_PAUSE : PAUSE);
  });
  language.addEventListener("change", () => {
    say(byId("language-note"), language.value ? quality(chosenLanguage()) : "");
    read();
  });
  byId("file").addEventListener("change", (event) => openFile(event.target.files[0]));
  byId("header").addEventListener("change", parseFile);
  byId("column").addEventListener("change", (event) => {
    sheet = { ...sheet, column: Number(event.target.value) };
    read();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("download").addEventListener("click", download);
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
  listenForDrops();
}

function listenForDrops() {
  addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    openFile(event.dataTransfer.files[0]);
  });
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
    if (language.options.length === 1) fillLanguages(language, model.languages);
    say(byId("model"), `Answers come from ${model.name} ${model.version}, on the machine that serves this page.`);
    byId("card").textContent = model.card;
    byId("about").hidden = !model.card;
  });
  if (!model) return;
  showNothing();
  read();
}

listen();
offerExamples();
start();
