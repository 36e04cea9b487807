// Opens traces in Perfetto's own interface, as a user drags them into it, and asks its engine what it understood.
import { readFileSync } from "node:fs";
import { launch, tour } from "../vscode/browser.mjs";

const SITE = process.env.PHOBOS_SITE;
const SHOTS = process.env.PHOBOS_SHOTS;
const TRACES = JSON.parse(process.env.PHOBOS_TRACES); // paths by name
const QUERIES = JSON.parse(process.env.PHOBOS_QUERIES); // SQL by name

const browser = await launch();
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
page.setDefaultTimeout(60_000);
await page.route((url) => url.origin !== SITE, (route) => route.abort()); // it asks for what is not here
await page.route(`${SITE}/vizviewer_info`, () => undefined); // whose answer would tell it where a trace of its own is
await page.goto(`${SITE}/index.html`);
await page.waitForFunction(() => window.app !== undefined);

const rows = (sql) => page.evaluate(async (text) => {
  const result = await window.app.trace.engine.query(text);
  const columns = result.columns();
  const found = [];
  for (const row = result.iter({}); row.valid(); row.next())
    found.push(columns.map((name) => (typeof row.get(name) === "bigint" ? Number(row.get(name)) : row.get(name))));
  return found;
}, sql);

const open = (name, path) => async () => {
  await page.evaluate(async ([title, text]) => {
    const before = window.app.trace;
    window.app.openTraceFromBuffer({ title, buffer: new TextEncoder().encode(text).buffer });
    while (window.app.trace === before || window.app.trace === undefined) await new Promise((done) => setTimeout(done, 50));
  }, [name, readFileSync(path, "utf8")]);
  const seen = {};
  for (const [what, sql] of Object.entries(QUERIES)) seen[what] = await rows(sql);
  await page.waitForSelector(".pf-track__title, .pf-track");
  await page.evaluate(() => window.waitForPerfettoIdle(300));
  seen.screen = await page.locator(".pf-timeline-page, .pf-ui-main").first().innerText();
  await page.screenshot({ path: `${SHOTS}/perfetto-${name}.png` });
  return seen;
};

await tour(page, Object.fromEntries(Object.entries(TRACES).map(([name, path]) => [name, open(name, path)])));
await browser.close();
