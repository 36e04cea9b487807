// A folder that the user has not trusted: findings are there, nothing is compiled or run.
import { Editor, FOLDER, open, tour, uri } from "./browser.mjs";

const { browser, page } = await open([["openFile", uri(`${FOLDER}/sweep.ph`)]]);
const editor = new Editor(page);

await tour(page, {
  "findings without trust": async () => {
    await page.waitForSelector(".monaco-editor .squiggly-error", { timeout: 120_000 });
    return { restricted: await page.locator(".statusbar").innerText(), hover: await editor.hover("grid_barrier", "PH205") };
  },
  "nothing runs without trust": async () => {
    await page.mouse.move(5, 500);
    await editor.patiently(async () => {
      await editor.box("F1", "Phobos: Run the kernel");
      await editor.waitForRow("Show the facts"); // the list is that of what was typed: this is the next best
    });
    const rows = await editor.settled(() => page.locator(".quick-input-widget .monaco-list-row").allInnerTexts());
    await page.keyboard.press("Escape");
    const lenses = await page.locator(".codelens-decoration a").allInnerTexts();
    return { rows, lenses, terminals: await page.locator(".xterm-rows").count() };
  },
});
await browser.close();
