// Python and the checker, in a thread of their own: typing never waits for them.
//
// Messages in: {id, ask: "check" | "formatted" | "fixed", text, notes}. Messages out: {loaded} in bytes while loading,
// {ready} once, then {id, answer} or {id, failure}; {broken} if it cannot start.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const plain = self.fetch;
let loaded = 0;

/** What keeps the checker from starting; only the first word counts, others follow from it. */
function broken(error) {
  self.postMessage({ broken: String(error?.message ?? error) });
}

/** The browser's fetch, which also tells how many bytes have come, and what has not: Pyodide itself may wait for ever. */
self.fetch = async (what, how) => {
  const response = await plain(what, how).catch((error) => {
    broken(`${what} cannot be fetched (${error.message})`);
    throw error;
  });
  if (!response.ok) {
    broken(`${response.url} answers ${response.status}`);
    throw new Error(response.statusText);
  }
  const counting = new TransformStream({
    transform(chunk, out) {
      loaded += chunk.byteLength;
      self.postMessage({ loaded });
      out.enqueue(chunk);
    },
  });
  const headers = new Headers(response.headers);
  // A server that has no name for this type would keep the browser from compiling while it loads.
  if (response.url.endsWith(".wasm")) headers.set("content-type", "application/wasm");
  return new Response(response.body.pipeThrough(counting), { status: response.status, headers });
};

async function start() {
  await WebAssembly.compile(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)); // a page's rules may forbid it
  const archive = self.fetch(new URL("phobos.zip", import.meta.url)).then((response) => response.arrayBuffer());
  archive.catch(() => undefined); // it is awaited below
  const indexURL = new URL("pyodide/", import.meta.url).href;
  const python = await loadPyodide({ indexURL });
  python.unpackArchive(new Uint8Array(await archive), "zip", { extractDir: "/phobos" });
  python.runPython("import sys; sys.path.insert(0, '/phobos')");
  return python.pyimport("answers");
}

const answers = start();
answers.then(() => self.postMessage({ ready: true }), broken);
self.addEventListener("unhandledrejection", (event) => broken(event.reason));

self.onmessage = async ({ data: { id, ask, text, notes } }) => {
  try {
    const python = await answers;
    const answer = ask === "check" ? python.check(text, notes) : python[ask](text);
    self.postMessage({ id, answer: JSON.parse(answer) });
  } catch (error) {
    self.postMessage({ id, failure: String(error.message ?? error) });
  }
};
