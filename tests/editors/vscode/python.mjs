// What is said when the Python that should run the server does not do, or lacks what running kernels needs.
import { Editor, FOLDER, open, tour, uri } from "./browser.mjs";

const { browser, page } = await open([["openFile", uri(`${FOLDER}/plain.ph`)]]);
const editor = new Editor(page);

await tour(page, {
  "message": async () => {
    if (process.env.PHOBOS_SCENARIO === "no-numpy") {
      await page.waitForSelector(".codelens-decoration a", { timeout: 120_000 });
      await editor.lens(/run/i, async () => (await editor.toasts()).join().includes("Python"), "a message");
    }
    await editor.waitForToast("Python");
    const toasts = (await editor.settled(() => editor.toasts())).join("\n");
    await editor.shot(`python-${process.env.PHOBOS_SCENARIO}`);
    return { toasts, status: await editor.status() };
  },
});
await browser.close();
