// A page with VS Code in it, and what a user does there. Selectors are those of VS Code 1.139.
import { createRequire } from "node:module";
import { appendFileSync } from "node:fs";

const require = createRequire(process.env.PHOBOS_EXTENSION + "/package.json");
const { chromium } = require("playwright-core");

export const PORT = process.env.PHOBOS_PORT;
export const FOLDER = process.env.PHOBOS_FOLDER;
const REPORT = process.env.PHOBOS_REPORT;
const SHOTS = process.env.PHOBOS_SHOTS;

export const uri = (file) => `vscode-remote://127.0.0.1:${PORT}${file}`;

export function launch() {
  return chromium.launch({
    executablePath: process.env.PHOBOS_BROWSER,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
  });
}

export async function open(payload, path = "/", prepare = async () => undefined) {
  const browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await prepare(page);
  await page.goto(`http://127.0.0.1:${PORT}${path}?folder=${FOLDER}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  return { browser, page };
}

/** Runs the steps in order. One that fails is noted, with a picture, and the next one still runs. */
export async function tour(page, steps) {
  for (const [name, step] of Object.entries(steps)) {
    const start = Date.now();
    let entry;
    try {
      entry = { name, seen: (await step()) ?? null };
    } catch (error) {
      entry = { name, problem: String(error.stack ?? error) };
      await page.screenshot({ path: `${SHOTS}/failed-${name.replaceAll(" ", "-")}.png` }).catch(() => undefined);
      await page.keyboard.press("Escape");
    }
    entry.seconds = (Date.now() - start) / 1000;
    appendFileSync(REPORT, JSON.stringify(entry) + "\n");
  }
}

export class Editor {
  constructor(page) {
    this.page = page;
  }

  /** The text shown in the editor in front; blanks as blanks, lines in order. */
  async text(group = 0) {
    return this.page.evaluate((at) => {
      const editors = [...document.querySelectorAll(".editor-group-container .editor-instance .monaco-editor")];
      const lines = [...(editors[at] ?? document).querySelectorAll(".view-line")];
      lines.sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top));
      return lines.map((line) => line.textContent.replaceAll("\u00a0", " ")).join("\n");
    }, group);
  }

  async waitForText(wanted, group = 0) {
    await this.until(async () => (await this.text(group)).includes(wanted), `the text ${wanted}`);
  }

  async until(condition, what, seconds = 90) {
    const end = Date.now() + seconds * 1000;
    while (Date.now() < end) {
      if (await condition()) return;
      await this.page.waitForTimeout(100);
    }
    throw new Error(`waited in vain for ${what}`);
  }

  /**
   * Makes a gesture, and makes it again while what it should bring does not come: a page that lays itself out anew
   * loses a mouse or a key. It may also just be slow, so each time is given longer; `gesture` is told how long, in ms.
   */
  async again(gesture, came, what, seconds = 120) {
    const end = Date.now() + seconds * 1000;
    let problem = "";
    for (let patience = 4000; Date.now() < end; patience *= 1.5) {
      try {
        await gesture(patience);
        await this.until(came, what, Math.min(patience, end - Date.now()) / 1000);
        return;
      } catch (error) {
        problem = error;
      }
    }
    throw new Error(`${what} did not come, however often it was asked for; the last time: ${problem}`);
  }

  /** Does what is done through an input box on top; on a busy machine a key can come before the box does. */
  async patiently(what) {
    for (let left = 3; ; left -= 1) {
      try {
        return await what();
      } catch (error) {
        if (left === 0) throw error;
        await this.page.keyboard.press("Escape");
        await this.page.waitForTimeout(500);
      }
    }
  }

  async box(key, text) {
    await this.page.keyboard.press(key);
    await this.page.waitForSelector(".quick-input-widget input:focus", { timeout: 15_000 });
    await this.page.keyboard.type(text);
  }

  async waitForRow(text) {
    const focused = this.page.locator(".quick-input-widget .monaco-list-row.focused").first();
    await this.until(async () => (await focused.innerText({ timeout: 1000 }).catch(() => "")).includes(text), `${text} in the list`, 15);
  }

  async openFile(name) {
    await this.patiently(async () => {
      await this.box("Control+KeyP", name);
      await this.waitForRow(name);
      await this.page.keyboard.press("Enter");
      await this.page.waitForSelector(`.tab.active[aria-label*="${name}"]`, { timeout: 15_000 });
      await this.focused();
    });
  }

  /** Waits until keys go into the text. */
  async focused() {
    await this.page.waitForSelector(".editor-group-container.active .monaco-editor.focused", { timeout: 15_000 });
  }

  async command(title) {
    await this.patiently(async () => {
      await this.box("F1", title);
      await this.waitForRow(title);
      await this.page.keyboard.press("Enter");
    });
  }

  async goto(line, column = 1) {
    await this.patiently(async () => {
      await this.box("Control+KeyG", `${line}:${column}`);
      await this.page.keyboard.press("Enter");
      const selection = this.page.locator("#status\\.editor\\.selection");
      await this.until(async () => (await selection.innerText({ timeout: 1000 }).catch(() => "")).startsWith(`Ln ${line}, Col ${column}`), `the cursor in line ${line}`, 15);
      await this.focused();
    });
  }

  /** What the lamp at the cursor offers; then the one that has `wanted` in its title is taken. */
  async quickFix(wanted, picture) {
    const rows = this.page.locator(".action-widget .monaco-list-row");
    const row = rows.filter({ hasText: wanted }).first();
    return this.patiently(async () => {
      await this.page.keyboard.press("Control+Period");
      await row.waitFor({ timeout: 15_000 });
      const titles = await this.settled(() => rows.allInnerTexts());
      if (picture) await this.shot(picture);
      await row.click({ timeout: 15_000 });
      return titles;
    });
  }

  /** What `read` gives once it gives the same again: for what comes bit by bit, and has no end to wait for. */
  async settled(read) {
    for (let last; ; ) {
      const now = await read();
      if (JSON.stringify(now) === last) return now;
      last = JSON.stringify(now);
      await this.page.waitForTimeout(300);
    }
  }

  async errors() {
    return this.page.locator(".monaco-editor .squiggly-error").count();
  }

  async waitForErrors(some) {
    await this.until(async () => ((await this.errors()) > 0) === some, some ? "a squiggle" : "no squiggle");
  }

  /** What stands over a word once it has `wanted` in it: its parts come one by one. */
  async hover(word, wanted) {
    let text = "";
    const shown = () => this.page.evaluate(() => [...document.querySelectorAll(".monaco-hover")].map((e) => e.innerText).join("\n"));
    await this.again(async (patience) => {
      await this.page.mouse.move(5, 500); // a mouse that stands over the word already asks for nothing
      await this.page.locator(".view-line span span", { hasText: word }).first().hover({ timeout: patience });
    }, async () => (text = await this.settled(shown)).includes(wanted), `a hover with ${wanted}`);
    return text; // what was judged: a page that lays itself out may bring another word under the mouse
  }

  /** Clicks on the lens whose title has `title` in it, until what the click should bring has come. */
  async lens(title, came, what) {
    const lens = this.page.locator(".codelens-decoration a", { hasText: title }).first();
    await this.again((patience) => lens.click({ timeout: patience }), came, what);
  }

  async problems() {
    return this.page.locator(".markers-panel .monaco-list-row").allInnerTexts();
  }

  /** Opens the panel of problems, which the same keys would close, and waits until a row has `wanted` in it. */
  async openProblems(wanted) {
    const panel = this.page.locator(".markers-panel").first();
    await this.again(async () => {
      if (!(await panel.isVisible())) await this.page.keyboard.press("Control+Shift+KeyM");
    }, async () => (await this.problems()).join("\n").includes(wanted), `${wanted} among the problems`);
  }

  async closePanel() {
    const panel = this.page.locator(".part.panel").first();
    await this.again(async () => {
      if (await panel.isVisible()) await this.page.keyboard.press("Control+KeyJ");
    }, async () => !(await panel.isVisible()), "the panel closed");
  }

  async status() {
    return (await this.page.locator("#phobos-tools\\.phobos-tools\\.phobos").innerText().catch(() => "")).trim();
  }

  async toasts() {
    return this.page.locator(".notification-toast").allInnerTexts();
  }

  async waitForToast(wanted) {
    await this.until(async () => (await this.toasts()).some((each) => each.includes(wanted)), `a message with ${wanted}`);
    return (await this.toasts()).join("\n");
  }

  async terminal() {
    return (await this.page.locator(".xterm-rows").allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
  }

  async waitForTerminal(wanted, seconds = 120) {
    await this.until(async () => (await this.terminal()).includes(wanted), `${wanted} in the terminal`, seconds);
    return this.terminal();
  }

  async shot(name) {
    await this.page.screenshot({ path: `${SHOTS}/${name}.png` });
  }
}
