// What the checker in WebAssembly answers to the texts of a JSON file, in order, as JSON.
import { readFileSync } from "node:fs";

const { loadPyodide } = await import(`${process.env.PHOBOS_PYODIDE}/pyodide.mjs`);
const python = await loadPyodide();
python.unpackArchive(new Uint8Array(readFileSync(process.env.PHOBOS_ARCHIVE)), "zip", { extractDir: "/phobos" });
python.runPython("import sys; sys.path.insert(0, '/phobos')");
const answers = python.pyimport("answers");
const texts = JSON.parse(readFileSync(process.env.PHOBOS_TEXTS, "utf8"));
const got = texts.map((text) => ({ check: JSON.parse(answers.check(text, true)), formatted: JSON.parse(answers.formatted(text)) }));
console.log(JSON.stringify({ version: python.runPython("sys.version"), got }));
