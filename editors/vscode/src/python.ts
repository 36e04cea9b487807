/**
 * Which Python runs the server: the places to look, in order, and what each one turned out to be.
 *
 * A setting that names an interpreter is taken at its word: if that one does not do, we say so instead of taking
 * another. Nothing inside a folder that is not trusted is ever started.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";

export interface Interpreter {
  readonly path: string;
  readonly version: string;
  readonly origin: string;
}

export type Search = { readonly found: Interpreter } | { readonly problem: string };

const OLDEST = [3, 11] as const;
const WINDOWS = process.platform === "win32";
const NAMES = WINDOWS ? ["python.exe", "python3.exe"] : ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"];
const PROBE = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";

type Probe = { readonly version: string; readonly path: string } | { readonly failure: string };

export async function findPython(): Promise<Search> {
  const set = settled(vscode.workspace.getConfiguration("phobos").get<string>("python", ""));
  if (set !== "") {
    const probe = await ask(set);
    if ("failure" in probe) {
      return { problem: `The Python of the setting phobos.python does not start (${set}: ${probe.failure}).` };
    }
    if (!recent(probe.version)) {
      return { problem: `The Python of the setting phobos.python is ${probe.version} (${set}); Phobos needs 3.11 or newer.` };
    }
    return { found: { ...probe, origin: "the setting phobos.python" } };
  }
  const old: string[] = [];
  for (const [candidate, origin] of await candidates()) {
    const probe = await ask(candidate);
    if ("failure" in probe) {
      continue;
    }
    if (recent(probe.version)) {
      return { found: { ...probe, origin } };
    }
    old.push(`${probe.version} at ${probe.path}`);
  }
  const seen = old.length > 0 ? ` Found only ${[...new Set(old)].join(", ")}.` : "";
  return { problem: `Phobos needs Python 3.11 or newer to run its server.${seen}` };
}

/** Whether `modules` can all be imported by `python`; the first that cannot is named. */
export async function missingModule(python: string, modules: readonly string[]): Promise<string | undefined> {
  const code = [
    "import importlib.util as u, sys",
    "print(next((m for m in sys.argv[1:] if u.find_spec(m) is None), ''))",
  ].join("\n");
  const answer = await run(python, ["-I", "-c", code, ...modules]);
  return typeof answer === "string" ? answer.trim() || undefined : modules[0];
}

/** Whether our package, and not another of that name, is installed in `python`. */
export async function hasPhobos(python: string): Promise<boolean> {
  const answer = await run(python, ["-I", "-c", "import phobos.cli, pygls, phobos.lsp; print('yes')"]);
  return typeof answer === "string" && answer.trim() === "yes";
}

function settled(text: string): string {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return text.trim().replace(/^~(?=$|[\\/])/, os.homedir()).replaceAll("${workspaceFolder}", folder);
}

async function candidates(): Promise<[string, string][]> {
  const found: [string, string][] = [];
  if (vscode.workspace.isTrusted) {
    const chosen = await chosenInPythonExtension();
    if (chosen !== undefined) {
      found.push([chosen, "the Python extension"]);
    }
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      const local = path.join(folder.uri.fsPath, ".venv", WINDOWS ? path.join("Scripts", "python.exe") : path.join("bin", "python"));
      if (existsSync(local)) {
        found.push([local, "the folder's .venv"]);
      }
    }
  }
  for (const name of NAMES) {
    found.push([name, "PATH"]);
  }
  return found;
}

async function chosenInPythonExtension(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    const api = await extension.activate();
    const chosen = api.environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    const environment = await api.environments.resolveEnvironment(chosen);
    return environment?.executable.uri?.fsPath;
  } catch {
    return undefined; // an older or broken Python extension: look further
  }
}

async function ask(python: string): Promise<Probe> {
  const answer = await run(python, ["-I", "-c", PROBE]);
  if (typeof answer !== "string") {
    const missing = "code" in answer && answer.code === "ENOENT";
    return { failure: missing ? "there is no such program" : (answer.message.split("\n")[0] ?? "no answer") };
  }
  const [version, executable] = answer.trim().split(/\r?\n/);
  return version && executable ? { version, path: executable } : { failure: "it does not answer like a Python" };
}

function run(program: string, parameters: readonly string[]): Promise<string | Error> {
  // Outside the folder that is open, so that a program of the same name there is not what runs.
  const options = { timeout: 20_000, windowsHide: true, cwd: os.homedir() };
  return new Promise((resolve) => {
    execFile(program, [...parameters], options, (error, stdout) => resolve(error ?? stdout));
  });
}

function recent(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
