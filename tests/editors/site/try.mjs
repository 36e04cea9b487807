// The page of the site that runs the checker in the browser, as a visitor uses it.
import { launch, tour } from "../vscode/browser.mjs";

const SITE = process.env.PHOBOS_SITE;
const FILE = process.env.PHOBOS_FILE;
const SHOTS = process.env.PHOBOS_SHOTS;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1200, height: 1000 }, colorScheme: "light" });
const page = await context.newPage();
page.setDefaultTimeout(120_000);
const asked = [];
page.on("request", (request) => asked.push(request.url()));

const box = page.locator("#phobos-editor");
const text = box.locator("textarea");
const checks = () => box.evaluate((element) => Number(element.dataset.checked ?? 0));
const status = () => box.locator(".status").innerText();
const report = () => box.locator(".report").innerText();
const squiggled = (kind = "error") =>
  box.locator(`.backdrop .${kind}`).evaluateAll((marks) => marks.map((mark) => mark.textContent).join(""));
const until = (condition, argument) => page.waitForFunction(condition, argument);
/** Waits for the answer to the text as it is now: an earlier one may come while keys are still being typed. */
const answered = async (doing) => {
  const before = await checks();
  await doing();
  await until((count) => {
    const { dataset, ariaBusy } = document.getElementById("phobos-editor");
    return Number(dataset.checked ?? 0) > count && ariaBusy !== "true";
  }, before);
};
const caret = (needle, after = true) => text.evaluate((area, [word, behind]) => {
  const at = area.value.indexOf(word) + (behind ? word.length : 0);
  area.focus();
  area.setSelectionRange(at, at);
}, [needle, after]);
/** The text that the editor begins with in another tab that went there. */
const elsewhere = async (going) => {
  const other = await context.newPage();
  await other.route("**/worker.mjs", (route) => route.abort()); // nothing is checked there
  await going(other);
  const value = await other.locator("#phobos-editor textarea").inputValue();
  await other.close();
  return value;
};

await tour(page, {
  "first findings": async () => {
    const start = Date.now();
    await page.goto(`${SITE}/try.html`);
    const loading = await (await until(() => {
      const said = document.querySelector("#phobos-editor .status").textContent;
      return /: .* of .* MB/.test(said) && said;
    })).jsonValue();
    await page.waitForSelector("#phobos-editor .backdrop .error", { timeout: 300_000 });
    const seconds = (Date.now() - start) / 1000;
    await page.screenshot({ path: `${SHOTS}/try-light.png`, fullPage: true });
    return { seconds, loading, status: await status(), report: await report(), squiggled: await squiggled(), related: await squiggled("related") };
  },
  "concise": async () => {
    await box.locator("[name=form]").selectOption("concise");
    const concise = await report();
    await box.locator("[name=form]").selectOption("full");
    return concise;
  },
  "a finding leads to its place": async () => {
    await box.locator(".findings button").first().click();
    return text.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
  },
  "a syntax error while typing": async () => {
    await caret("X[t :+ TILE] + 1.0");
    await answered(() => page.keyboard.type(" ]"));
    const seen = { report: await report(), squiggled: await squiggled() };
    await answered(async () => { await page.keyboard.press("Backspace"); await page.keyboard.press("Backspace"); });
    return { ...seen, after: await report() };
  },
  "squiggles stay in place while a text is typed above": async () => {
    const seen = await text.evaluate((area) => {
      area.focus();
      area.setSelectionRange(0, 0);
      document.execCommand("insertText", false, "// one more line\n");
      return [...document.querySelectorAll("#phobos-editor .backdrop .error")].map((mark) => mark.textContent).join("");
    });
    await answered(() => page.keyboard.type(" "));
    return seen;
  },
  "mended": async () => {
    await answered(async () => {
      await caret("    grid_barrier(BAR)\n", false);
      await page.keyboard.press("Shift+ArrowDown");
      await page.keyboard.press("Delete");
      await caret("1.0\n  }");
      await page.keyboard.press("Enter");
      await page.keyboard.type("grid_barrier(BAR)");
    });
    await until(() => document.querySelectorAll("#phobos-editor .backdrop .error").length === 0);
    return { status: await status(), report: await report(), text: await text.inputValue() };
  },
  "undo": async () => {
    await answered(async () => { for (let n = 0; n < 20; n += 1) await page.keyboard.press("Control+z"); });
    return text.inputValue();
  },
  "typing is not held up": async () => {
    // The worker needs more than a second for these. What is typed meanwhile must stand in the text before it answers.
    const before = await checks();
    const seen = await text.evaluate(async (area, count) => {
      const body = area.value.slice(area.value.indexOf("@launch"));
      const many = Array.from({ length: 120 }, (_, n) => body.replace("sweep", `sweep${n}`)).join("\n");
      area.value = many;
      area.dispatchEvent(new Event("input"));
      area.focus();
      area.setSelectionRange(many.length, many.length);
      await new Promise((done) => setTimeout(done, 300)); // longer than the page waits for the next key
      document.execCommand("insertText", false, "// typed meanwhile");
      const shown = document.querySelector("#phobos-editor .backdrop").textContent;
      return { shown, answers: Number(document.getElementById("phobos-editor").dataset.checked) - count };
    }, before);
    await until((count) => Number(document.getElementById("phobos-editor").dataset.checked) > count + 1, before);
    return { ...seen, status: await status() };
  },
  "format": async () => {
    await answered(() => text.fill("kernel   loose( X:tensor<f32>[ N ] ){\nX[0:+4]=X[0:+4]*2.0 // \u{1f600}\n}\n"));
    await answered(() => box.locator("[name=format]").click());
    return text.inputValue();
  },
  "fix": async () => {
    await answered(() => text.fill("// \u{1f600}\nkernel k(X: tensor<f32>[N]) {\n  X[program_id(0)] = 1.0\n}\n"));
    await answered(() => box.locator("[name=notes]").check());
    const squiggle = await squiggled("info");
    await answered(() => box.locator("[name=fix]").click());
    return { squiggle, text: await text.inputValue() };
  },
  "a link holds the text": async () => {
    await answered(() => text.fill("kernel shared() { 100% }\n"));
    await box.locator("[name=share]").click();
    return { value: await elsewhere((other) => other.goto(page.url())), hash: new URL(page.url()).hash };
  },
  "from a rule": () => elsewhere(async (other) => {
    await other.goto(`${SITE}/rules/PH203.html`);
    await other.locator("text=Open the example in the browser").click();
    await other.waitForURL("**/try.html*");
  }),
  "deep": async () => {
    const nested = (depth) => `kernel k(X: tensor<f32>[N]) {\n  X[0 :+ 4] = ${"(".repeat(depth)}1.0${")".repeat(depth)}\n}\n`;
    const seen = {};
    for (const depth of [250, 5000]) {
      await answered(() => text.fill(nested(depth)));
      seen[depth] = await report();
    }
    await answered(() => text.fill(`kernel k(X: tensor<f32>[N]) {\n${"if N > 1 {\n".repeat(120)}X[0 :+ 4] = 1.0\n${"}\n".repeat(120)}}\n`));
    seen.blocks = await report();
    return seen;
  },
  "another example": async () => {
    await answered(() => box.locator("[name=example]").selectOption("saxpy"));
    return { text: await text.inputValue(), status: await status() };
  },
  "dark and narrow": async () => {
    await page.emulateMedia({ colorScheme: "dark" });
    await answered(() => box.locator("[name=example]").selectOption("hang"));
    await page.screenshot({ path: `${SHOTS}/try-dark.png`, fullPage: true });
    const dark = await box.locator(".text").evaluate((element) => getComputedStyle(element).backgroundColor);
    await page.setViewportSize({ width: 390, height: 800 });
    await page.screenshot({ path: `${SHOTS}/try-narrow.png`, fullPage: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    return { dark, wide, squiggled: await squiggled() };
  },
  "by keys alone": async () => {
    await page.setViewportSize({ width: 1200, height: 1000 });
    await box.locator("[name=example]").focus();
    const order = [];
    for (let n = 0; n < 8; n += 1) {
      order.push(await page.evaluate(() => document.activeElement.name || document.activeElement.tagName));
      await page.keyboard.press("Tab");
    }
    return order;
  },
  "where it came from": async () => [...new Set(asked.map((url) => new URL(url).origin))],
  "as a file": async () => {
    const file = await context.newPage();
    await file.goto(FILE);
    const said = await file.locator("#phobos-editor .status").innerText();
    await file.close();
    return said;
  },
  "without WebAssembly's file": async () => {
    const broken = await context.newPage();
    await broken.route("**/pyodide.asm.wasm", (route) => route.fulfill({ status: 404, body: "" }));
    await broken.goto(`${SITE}/try.html`);
    await broken.waitForSelector("#phobos-editor.broken");
    const said = await broken.locator("#phobos-editor .status").innerText();
    await broken.close();
    return said;
  },
  "without the worker": async () => {
    const broken = await context.newPage();
    await broken.route("**/worker.mjs", (route) => route.fulfill({ status: 404, body: "" }));
    await broken.goto(`${SITE}/try.html`);
    await broken.waitForSelector("#phobos-editor.broken");
    const said = await broken.locator("#phobos-editor .status").innerText();
    await broken.close();
    return said;
  },
});
await browser.close();
