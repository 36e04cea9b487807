// The editor of the page: a text area over a copy of its text that has the colours and squiggles. No module, so that
// it runs, and can say what is missing, when the page was opened as a file.
"use strict";
(() => {
  const box = document.getElementById("phobos-editor");
  const data = JSON.parse(document.getElementById("phobos-data").textContent);
  const [input, backdrop, gutter, report, status, list] =
    ["textarea", ".backdrop", ".gutter", ".report", ".status", ".findings"].map((each) => box.querySelector(each));
  const control = (name) => box.querySelector(`[name=${name}]`);
  const QUIET = 150; // milliseconds without a key before the text is checked
  const SLOW = 700; // milliseconds after which it is said that a check is under way
  const UNDOABLE = 20_000; // characters: browsers take seconds to insert more than that as if it were typed
  const base = document.currentScript.src.replace(/[^/]*$/, "");

  let answer = { findings: [], reports: { full: "", concise: "" } };
  let checked = null; // the text that `answer` is about
  let worker = null;
  let ready = false;
  let number = 0;
  let running = null; // the text that is being checked: there is never more than one
  let waiting = false; // the text has changed since
  let timer = 0;
  const wanted = new Map();

  // --- the worker --------------------------------------------------------------------------------------------------

  function start() {
    if (location.protocol === "file:") {
      return give_up("This page was opened as a file, and browsers run no worker and no WebAssembly from files. " +
        "Serve the folder of the site, for instance with `python3 -m http.server` in it, and open what that prints.");
    }
    if (typeof WebAssembly !== "object" || typeof Worker !== "function") {
      return give_up("This browser has no WebAssembly or no workers, and the checker needs both.");
    }
    say(`Loading Python and the checker: ${megabytes(data.bytes)} MB ...`);
    try {
      worker = new Worker(base + "worker.mjs", { type: "module" });
    } catch (error) {
      return give_up(`The checker could not be started: ${error.message}`);
    }
    worker.onerror = (event) => give_up("The checker could not be loaded" +
      (event.message ? `: ${event.message}` : `: ${base}worker.mjs, or what it needs, is not there`));
    worker.onmessage = ({ data: said }) => {
      if (said.loaded !== undefined) progress(said.loaded);
      else if (said.ready) { ready = true; box.querySelector("progress").hidden = true; check(); }
      else if (said.broken !== undefined) give_up(`Python could not be loaded: ${said.broken}`);
      else settle(said);
    };
  }

  function settle({ id, answer: got, failure }) {
    const { done, fail } = wanted.get(id);
    wanted.delete(id);
    if (failure === undefined) done(got);
    else fail(failure);
  }

  function ask(what) {
    const id = (number += 1);
    return new Promise((done, fail) => {
      wanted.set(id, { done, fail });
      worker.postMessage({ id, text: input.value, notes: control("notes").checked, ...what });
    });
  }

  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

  function progress(loaded) {
    if (ready || box.classList.contains("broken")) return;
    const bar = box.querySelector("progress");
    bar.hidden = false;
    bar.max = data.bytes;
    bar.value = loaded;
    say(`Loading Python and the checker: ${megabytes(Math.min(loaded, data.bytes))} of ${megabytes(data.bytes)} MB`);
  }

  function give_up(why) {
    if (ready || box.classList.contains("broken")) return; // what comes later follows from the first
    box.querySelector("progress").hidden = true;
    box.classList.add("broken");
    say(why);
    for (const button of box.querySelectorAll("button.asks")) button.disabled = true;
  }

  function say(words) {
    status.textContent = words;
  }

  // --- checking ----------------------------------------------------------------------------------------------------

  function changed() {
    box.setAttribute("aria-busy", "true"); // until what is shown is about the text as it is
    paint();
    clearTimeout(timer);
    timer = setTimeout(check, QUIET);
  }

  async function check() {
    if (!ready) return;
    if (running !== null) { waiting = true; return; }
    running = input.value;
    const began = performance.now();
    const patience = setTimeout(() => say("Checking ..."), SLOW);
    try {
      const got = await ask({ ask: "check" });
      clearTimeout(patience);
      checked = running;
      answer = got;
      // The first check also loads the rules: no measure of the others.
      show(box.dataset.checked ? performance.now() - began : undefined);
    } catch (failure) {
      clearTimeout(patience);
      failed(failure);
    }
    const now = running === input.value;
    running = null;
    if (waiting) { waiting = false; check(); }
    else if (now) box.setAttribute("aria-busy", "false");
  }

  function failed(why) {
    say("The checker failed on this text. That is a bug of Phobos tools: please report it, with the text.");
    report.textContent = why;
  }

  function show(milliseconds) {
    paint();
    const form = control("form").value;
    const lines = document.createElement("div");
    lines.append(...coloured(answer.reports[form]));
    report.replaceChildren(lines);
    const last = answer.reports.concise.trimEnd().split("\n").pop();
    const time = milliseconds === undefined ? "" : ` (${Math.max(1, Math.round(milliseconds))} ms)`;
    say(last.replaceAll("`", "") + time);
    list.replaceChildren(...answer.findings.map((found) => {
      const item = document.createElement("li");
      const go = document.createElement("button");
      go.type = "button";
      go.className = `go ${found.severity}`;
      go.textContent = `${found.line}:${found.column} ${found.code}`;
      go.title = "Go to this place";
      go.onclick = () => select(found.span);
      const page = document.createElement("a");
      page.href = `rules/${found.code}.html`;
      page.textContent = "what the rule means";
      item.append(go, ` ${found.message} (`, page, ")");
      return item;
    }));
    control("fix").disabled = !answer.findings.some((found) => found.fixable);
    control("format").disabled = false;
    box.dataset.checked = String(Number(box.dataset.checked ?? 0) + 1);
  }

  function select([start, end]) {
    input.focus();
    input.setSelectionRange(start, Math.max(end, start));
    const line = input.value.slice(0, start).split("\n").length - 1;
    const height = input.scrollHeight / (input.value.split("\n").length || 1);
    const scroller = box.querySelector(".text");
    scroller.scrollTop = Math.max(0, line * height - scroller.clientHeight / 2);
  }

  /** What the terminal would show, its colour codes as classes. */
  function coloured(text) {
    const parts = [];
    let kind = "";
    for (const piece of text.split(/(\x1b\[[\d;]*m)/)) {
      const code = /^\x1b\[([\d;]*)m$/.exec(piece);
      if (code) { kind = code[1] === "0" ? "" : `ansi-${code[1].replace(";", "-")}`; continue; }
      if (!piece) continue;
      const span = document.createElement("span");
      if (kind) span.className = kind;
      span.textContent = piece;
      parts.push(span);
    }
    return parts;
  }

  // --- the text ----------------------------------------------------------------------------------------------------

  const word = (names) => `\\b(?:${names.join("|")})\\b`;
  const TOKENS = new RegExp([
    "(?<comment>//[^\\n]*)", "(?<attribute>@[A-Za-z_]\\w*)", `(?<keyword>${word(data.keywords)})`,
    `(?<type>${word(data.types)})`, `(?<builtin>${word(data.builtins)}(?=\\s*[(<]))`,
    "(?<number>\\b\\d[\\w.]*)",
  ].join("|"), "g");

  /** Where the colour of the text changes: [from, to, class]. */
  function colours(text) {
    return [...text.matchAll(TOKENS)].map((found) => {
      const [kind] = Object.entries(found.groups).find(([, matched]) => matched !== undefined);
      return [found.index, found.index + found[0].length, kind];
    });
  }

  /** How many characters at the start and at the end two texts have in common. */
  function unchanged(old, text) {
    const most = Math.min(old.length, text.length);
    let same = 0;
    while (same < most && text[same] === old[same]) same += 1;
    let tail = 0;
    while (tail < most - same && text[text.length - 1 - tail] === old[old.length - 1 - tail]) tail += 1;
    return [same, tail];
  }

  /** Squiggles of the last answer, where the text around them is still what was checked. */
  function squiggles(text) {
    if (checked === null) return [];
    const [same, tail] = unchanged(checked, text);
    const shift = text.length - checked.length;
    const marks = [];
    const add = ([start, end], kind) => {
      const by = end <= same ? 0 : start >= checked.length - tail ? shift : null;
      if (by === null) return; // the edit was in it
      const line_end = text.indexOf("\n", start + by);
      // A place without a character is shown by the one at it, or before it at the end of a line.
      const from = end === start && (line_end === start + by || start + by >= text.length) ? Math.max(0, start + by - 1) : start + by;
      marks.push([from, Math.max(end + by, from + 1), kind]);
    };
    for (const found of answer.findings) {
      for (const place of found.related) add(place.span, "related");
    }
    for (const found of answer.findings) add(found.span, found.severity);
    return marks;
  }

  function paint() {
    const text = input.value;
    const spans = [...colours(text), ...squiggles(text)];
    const cuts = [...new Set([0, text.length, ...spans.flatMap(([from, to]) => [from, to])])]
      .filter((at) => at <= text.length).sort((a, b) => a - b);
    const opens = new Map();
    const closes = new Map();
    for (const [from, to, kind] of spans) {
      opens.set(from, [...(opens.get(from) ?? []), kind]);
      closes.set(to, [...(closes.get(to) ?? []), kind]);
    }
    const now = [];
    const parts = [];
    for (let at = 0; at < cuts.length; at += 1) {
      for (const kind of closes.get(cuts[at]) ?? []) now.splice(now.indexOf(kind), 1);
      now.push(...(opens.get(cuts[at]) ?? []));
      const piece = text.slice(cuts[at], cuts[at + 1] ?? text.length);
      if (!piece) continue;
      const span = document.createElement("span");
      span.className = now.join(" ");
      span.textContent = piece;
      parts.push(span);
    }
    backdrop.replaceChildren(...parts, "\n"); // a last line end alone would have no height
    const lines = text.split("\n").length;
    const worst = new Map();
    if (text === checked) for (const found of answer.findings) if (worst.get(found.line) !== "error") worst.set(found.line, found.severity);
    gutter.replaceChildren(...Array.from({ length: lines }, (_, line) => {
      const row = document.createElement("span");
      row.className = worst.get(line + 1) ?? "";
      row.textContent = `${line + 1}\n`;
      return row;
    }));
  }

  /** Puts a text in place of all of it, in a way that the browser's undo takes back where it is not too slow. */
  function replace(text) {
    const old = input.value;
    if (text === old) return;
    const [same, tail] = unchanged(old, text);
    const at = input.selectionStart;
    const piece = text.slice(same, text.length - tail);
    input.focus();
    input.setSelectionRange(same, old.length - tail);
    const typed = piece.length < UNDOABLE && document.execCommand(piece ? "insertText" : "delete", false, piece);
    if (!typed || input.value !== text) { input.value = text; changed(); }
    input.setSelectionRange(Math.min(at, text.length), Math.min(at, text.length));
  }

  async function transform(what, told) {
    const before = input.value;
    try {
      const got = await ask({ ask: what });
      if (input.value !== before) return say("The text has changed meanwhile; try again.");
      if (got.problem) return say(`Not formatted: ${got.problem}`);
      replace(got.text);
      say(told(got, before));
    } catch (failure) {
      failed(failure);
    }
  }

  // --- wiring ------------------------------------------------------------------------------------------------------

  input.addEventListener("input", changed);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const before = input.value.slice(0, input.selectionStart);
    const indent = /[ \t]*/.exec(before.slice(before.lastIndexOf("\n") + 1))[0] + (/[{([]\s*$/.test(before) ? "  " : "");
    if (indent && document.execCommand("insertText", false, "\n" + indent)) event.preventDefault();
  });
  control("format").onclick = () => transform("formatted", (got, before) => (got.text === before ? "Already formatted." : "Formatted."));
  control("fix").onclick = () => transform("fixed", (got) => `${got.fixes} fixed.`);
  control("form").onchange = () => show();
  control("notes").onchange = check;
  control("example").onchange = (event) => { replace(data.examples[event.target.value]); };
  control("share").onclick = async () => {
    history.replaceState(null, "", `#text=${encodeURIComponent(input.value)}`);
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    say(copied ? "A link to this text is in the clipboard and in the address bar." : "A link to this text is in the address bar.");
  };

  function from_address() {
    const shared = /^#text=(.*)$/s.exec(location.hash);
    if (!shared) return false;
    try {
      input.value = decodeURIComponent(shared[1]);
    } catch {
      return false; // a link that was cut in two
    }
    return true;
  }
  window.addEventListener("hashchange", () => { if (from_address()) changed(); });
  for (const name of Object.keys(data.examples)) control("example").append(new Option(name, name));
  if (!from_address()) input.value = Object.values(data.examples)[0];
  paint();
  start();
})();
