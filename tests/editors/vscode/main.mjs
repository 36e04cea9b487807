// The packaged extension in an empty profile: what a user meets while writing a kernel.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { Editor, FOLDER, open, tour, uri } from "./browser.mjs";

const { browser, page } = await open([["openFile", uri(`${FOLDER}/sweep.ph`)]]);
const editor = new Editor(page);
const PYTHON = process.env.PHOBOS_PLAIN_PYTHON;

/** The process ids of language servers that run on the plain Python of this test. */
function servers() {
  const parents = new Map();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (line[0] === PYTHON && line.includes("lsp") && line.includes("--stdio")) {
        parents.set(pid, readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop().split(" ")[1]);
      }
    } catch {
      // it has ended meanwhile
    }
  }
  // A child that a server is just starting has the server's own command line for a moment.
  return [...parents.keys()].filter((pid) => !parents.has(parents.get(pid)));
}

/** Whether there is one server, and it is none of these. */
function another(before) {
  const now = servers(); // once: the old one may end between two looks
  return now.length === 1 && !before.includes(now[0]);
}

const inlayHints = () => page.locator(".view-line span[class*='dyn-rule']").count();

await tour(page, {
  "squiggle": async () => {
    await page.waitForSelector(".monaco-editor .squiggly-error", { timeout: 120_000 });
    await editor.until(async () => (await editor.status()).includes("Phobos"), "the status item");
    return { mode: await page.locator("#status\\.editor\\.mode").innerText(), status: await editor.status() };
  },
  "hover": async () => {
    const text = await editor.hover("grid_barrier", "Waits until");
    await editor.shot("hover");
    await page.mouse.move(5, 500);
    return text;
  },
  "rule page": async () => {
    const tab = page.locator(".tab.active[aria-label*='PH205.md']");
    await editor.again(async (patience) => { // the hover may go before the mouse is on the link
      await editor.hover("grid_barrier", "PH205");
      await page.locator(".monaco-hover a", { hasText: "PH205" }).first().click({ timeout: patience });
    }, () => tab.isVisible(), "the rule's page");
    await editor.waitForText("# PH205");
    const text = await editor.text();
    await editor.again(() => page.keyboard.press("Control+KeyW"), async () => !(await tab.isVisible()), "the page closed");
    await page.waitForSelector(".tab.active[aria-label*='sweep.ph']");
    return text;
  },
  "problems": async () => {
    await editor.openProblems("PH205");
    const rows = await editor.problems();
    const main = page.locator(".markers-panel .monaco-list-row", { hasText: "PH205" }).first();
    await editor.again(async (patience) => {
      await main.click({ timeout: patience });
      await page.keyboard.press("ArrowRight"); // the related places
    }, async () => (await editor.problems()).join("\n").includes("the number of rounds differs"), "the related places");
    const open = await editor.problems();
    await editor.shot("problems");
    await editor.closePanel();
    return { rows, open };
  },
  "related place": async () => {
    const peek = page.locator(".marker-widget").first();
    const text = async () => ((await peek.isVisible()) ? peek.innerText() : "");
    let seen = "";
    await editor.openFile("sweep.ph");
    await editor.again(async () => {
      await editor.goto(6, 5);
      await page.keyboard.press("F8");
    }, async () => (seen = await editor.settled(text)).includes("sweep.ph"), "the finding in the text");
    await editor.shot("related");
    await page.keyboard.press("Escape");
    return seen;
  },
  "inlay hints": async () => {
    await editor.openFile("plain.ph");
    await editor.until(async () => (await inlayHints()) > 0, "inlay hints");
    let text = "";
    await editor.until(async () => /tile<f32>/.test(text = await editor.text()), "a tile's type in the text");
    await editor.shot("inlay-hints");
    return text;
  },
  "lens": async () => {
    const lenses = () => page.locator(".codelens-decoration").allInnerTexts();
    let titles = [];
    await editor.until(async () => /CTAs.*run.*CUDA/s.test((titles = await editor.settled(lenses)).join(" ")), "the lenses");
    await editor.shot("lens");
    return titles;
  },
  "cuda": async () => {
    const tab = page.locator(".tab[aria-label*='.cu']");
    await editor.lens("CUDA", async () => (await tab.count()) > 0, "the generated file");
    await editor.until(async () => /__global__|extern "C"/.test(await editor.text(1)), "CUDA in it");
    await editor.shot("cuda");
    const seen = { text: await editor.text(1), tab: await tab.first().getAttribute("aria-label") };
    await editor.again(async (patience) => {
      await tab.first().click({ timeout: patience });
      await page.keyboard.press("Control+KeyW");
    }, async () => (await tab.count()) === 0, "the generated file closed");
    return seen;
  },
  "completion": async () => {
    await editor.openFile("plain.ph");
    await editor.goto(4, 1);
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.keyboard.type("let r = rows");
    const first = page.locator(".suggest-widget.visible .monaco-list-row").first();
    const label = async () => ((await first.isVisible()) ? first.getAttribute("aria-label") : "");
    await editor.again(async () => {
      await page.keyboard.press("Escape"); // in a list that stands, the next keys would ask for its details
      await page.keyboard.press("Control+Space");
    }, async () => (await label())?.includes("rowsum"), "rowsum among the completions");
    const labels = await page.locator(".suggest-widget.visible .monaco-list-row").evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-label")));
    await editor.shot("completion");
    await page.keyboard.press("Enter");
    await editor.waitForText("let r = rowsum(");
    const text = await editor.text();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    return { labels, text };
  },
  "undo all": async () => {
    await editor.command("File: Revert File");
    await editor.until(async () => !(await editor.text()).includes("let r"), "the file as it was");
  },
  "rename": async () => {
    await editor.openFile("steps.ph");
    await editor.goto(1, 30);
    await editor.again(() => page.keyboard.press("F2"), () => page.locator(".rename-box input:focus").isVisible(), "the box of the name");
    await page.keyboard.press("Control+KeyA");
    await page.keyboard.type("LENGTH");
    await page.keyboard.press("Enter");
    await editor.waitForText("tensor<f32>[LENGTH]");
    const text = await editor.text();
    await editor.shot("rename");
    return text;
  },
  "fix": async () => {
    await editor.waitForErrors(true);
    await editor.goto(5, 4);
    const titles = await editor.quickFix("@persistent", "fix");
    await editor.waitForText("@persistent");
    await editor.waitForErrors(false);
    return { titles, text: await editor.text() };
  },
  "format": async () => {
    await editor.goto(1, 1);
    await page.keyboard.press("End");
    await page.keyboard.type("   ");
    await editor.waitForText("@persistent   ");
    await editor.again(() => page.keyboard.press("Control+Shift+KeyI"), async () => !(await editor.text()).includes("@persistent   "), "the blanks gone");
    await editor.again(() => page.keyboard.press("Control+KeyS"), async () => (await page.locator(".tab.active.dirty").count()) === 0, "the file saved");
    return readFileSync(`${FOLDER}/steps.ph`, "utf8");
  },
  "setting": async () => {
    await editor.openFile("plain.ph");
    await editor.until(async () => /: tile<f32>/.test(await editor.text()), "hints before");
    await editor.command("Phobos: Choose the cards");
    await page.waitForSelector(".quick-input-widget .monaco-list-row");
    await page.locator(".quick-input-widget .monaco-list-row", { hasText: /^a100$/ }).first().click();
    await page.keyboard.press("Enter");
    await editor.until(async () => (await editor.status()).includes("a100"), "the card in the status item");
    const lenses = async () => (await page.locator(".codelens-decoration").allInnerTexts()).join().toLowerCase();
    await editor.until(async () => (await lenses()).includes("a100"), "the card in the lens");
    const seen = { status: await editor.status(), lens: await lenses() };
    await editor.command("Preferences: Open Settings (UI)");
    const search = page.locator(".settings-editor .suggest-input-container").first();
    await editor.again((patience) => search.click({ timeout: patience }), () => search.locator(".monaco-editor.focused").isVisible(), "the search of the settings");
    await page.keyboard.type("phobos.inlayHints.types");
    const box = page.locator(".setting-item-bool", { hasText: "Inlay Hints: Types" }).locator(".setting-value-checkbox").first();
    await box.waitFor();
    await editor.shot("settings");
    const configured = page.locator(".setting-item-bool.is-configured, .settings-editor .is-configured", { hasText: "Inlay Hints: Types" }).first();
    await editor.again(async (patience) => { // a second click would switch it on again
      if ((await box.getAttribute("aria-checked")) === "true") await box.click({ timeout: patience });
    }, () => configured.isVisible(), "the setting");
    let keys = 0;
    await editor.until(async () => { // the settings stand in a dialog; the first key may only leave its list
      keys += 1;
      if (keys > 4) { // whatever was clicked has lost the keys, as it was drawn anew
        await page.locator(".codicon-close:visible").last().click({ timeout: 2000 }).catch(() => undefined);
      }
      await page.keyboard.press("Escape");
      await page.waitForTimeout(500);
      return !(await page.locator(".settings-editor").isVisible());
    }, "the settings closed");
    await editor.openFile("plain.ph");
    await editor.until(async () => !/let x: tile/.test(await editor.text()), "hints gone");
    return { ...seen, text: await editor.text() };
  },
  "run": async () => {
    await editor.openFile("plain.ph");
    await editor.lens(/run/i, async () => (await editor.terminal()).trim() !== "", "a terminal");
    const text = await editor.waitForTerminal("sha256").catch(() => editor.terminal());
    await editor.shot("run");
    return text;
  },
  "show it happen": async () => {
    await editor.openFile("sweep.ph");
    await editor.goto(6, 6);
    await editor.quickFix("Show PH205 happen");
    const text = await editor.waitForTerminal("it happens").catch(() => editor.terminal());
    await editor.shot("happen");
    await editor.closePanel();
    return text;
  },
  "killed server comes back": async () => {
    const before = servers();
    for (const pid of before) process.kill(Number(pid), "SIGKILL");
    await editor.until(() => another(before), "a new server");
    await editor.openFile("sweep.ph");
    await editor.goto(5, 1);
    await page.keyboard.press("End");
    await page.keyboard.type(" ");
    await editor.waitForErrors(true);
    const text = await editor.hover("grid_barrier", "PH205");
    return { before: before.length, after: servers().length, text };
  },
  "restart": async () => {
    const before = servers();
    await page.mouse.move(5, 500);
    await editor.command("Phobos: Restart the server");
    await editor.until(() => another(before), "another server, and one");
    await editor.waitForErrors(true);
    return { before: before.length, after: servers().length };
  },
  "broken configuration": async () => {
    writeFileSync(`${FOLDER}/phobos.toml`, "select = [\n");
    await editor.goto(5, 1);
    await page.keyboard.press("End");
    await page.keyboard.type(" ");
    await editor.openProblems("phobos.toml");
    const rows = await editor.problems();
    await editor.shot("broken-configuration");
    writeFileSync(`${FOLDER}/phobos.toml`, "");
    await editor.until(async () => !(await editor.problems()).join("\n").includes("phobos.toml"), "the finding gone");
    return rows;
  },
});
await browser.close();
