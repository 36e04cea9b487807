// A folder that the user has not trusted: findings are there, nothing is compiled or run.
import { Editor, FOLDER, open, tour, uri } from "./browser.mjs";

const { browser, page } = await open([["openFile", uri(`${FOLDER}/sweep.ph`)]]);
const editor = new Editor(page);

await tour(page, {
  "findings without trust": async () => {
    await page.waitForSelector(".monaco-editor .squiggly-error", { timeout: 90_000 });
    return { restricted: await page.locator(".statusbar").innerText(), hover: await editor.hover("grid_barrier", "PH205") };
  },
  "nothing runs without trust": async () => {
    await page.mouse.move(5, 500);
    await page.keyboard.press("F1");
    await page.waitForSelector(".quick-input-widget input:focus");
    await page.keyboard.type("Phobos: Run the kernel");
    await page.waitForTimeout(1000);
    const rows = await page.locator(".quick-input-widget .monaco-list-row").allInnerTexts();
    await page.keyboard.press("Escape");
    const lenses = await page.locator(".codelens-decoration a").allInnerTexts();
    return { rows, lenses, terminals: await page.locator(".xterm-rows").count() };
  },
});
await browser.close();
