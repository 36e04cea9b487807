// Opens VS Code so that the extension host runs test/host/suite.js, and ends with its exit code.
import { open, uri } from "./browser.mjs";

const EXTENSION_FOLDER = process.env.PHOBOS_EXTENSION;
const { browser, page } = await open([
  ["extensionDevelopmentPath", uri(EXTENSION_FOLDER)],
  ["extensionTestsPath", uri(`${EXTENSION_FOLDER}/test/host/suite.js`)],
  ["skipWelcome", "true"],
], "/", async (fresh) => {
  await fresh.exposeFunction("codeAutomationLog", (type, parameters) => console.log(...parameters));
  await fresh.exposeFunction("codeAutomationExit", async (code) => {
    process.exitCode = code;
    await browser.close();
    process.exit(code);
  });
});
setTimeout(() => {
  console.log("the suite did not end within four minutes");
  process.exit(3);
}, 240_000);
