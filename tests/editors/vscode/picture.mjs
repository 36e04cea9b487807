// The picture of README and extension: a barrier that not all blocks reach, with the mouse on it.
import { Editor, FOLDER, open, tour, uri } from "./browser.mjs";

const { browser, page } = await open([["openFile", uri(`${FOLDER}/sweep.ph`)]]);
const editor = new Editor(page);

await tour(page, {
  "picture": async () => {
    await page.waitForSelector(".monaco-editor .squiggly-error", { timeout: 120_000 });
    await page.setViewportSize({ width: 1000, height: 560 });
    await page.keyboard.press("Control+KeyB"); // no list of files
    const lens = page.locator(".codelens-decoration a").first();
    await editor.until(async () => /registers/.test(await lens.innerText()), "what the compiler says in place of the estimate");
    const text = await editor.hover("grid_barrier", "Waits until");
    await editor.shot("readme");
    return text;
  },
});
await browser.close();
