/** How `phobos` is started: the interpreter, the arguments, and the environment that finds the right package. */
import * as path from "node:path";
import * as vscode from "vscode";
import { findPython, hasPhobos, type Interpreter } from "./python";

export interface Tool {
  readonly python: Interpreter;
  readonly bundled: boolean;
  /** What to say in the log about how it was chosen. */
  readonly remark: string;
}

export async function findTool(): Promise<Tool | string> {
  const search = await findPython();
  if ("problem" in search) {
    return search.problem;
  }
  const python = search.found;
  const where = `Python ${python.version} at ${python.path} (from ${python.origin})`;
  const strategy = vscode.workspace.getConfiguration("phobos").get<string>("importStrategy", "useBundled");
  if (strategy === "fromEnvironment") {
    if (await hasPhobos(python.path)) {
      return { python, bundled: false, remark: `${where}, with the phobos-tools installed there` };
    }
    return { python, bundled: true, remark: `${where}, which has no phobos-tools: using the one of the extension` };
  }
  return { python, bundled: true, remark: `${where}, with the server of the extension` };
}

export function environment(context: vscode.ExtensionContext, tool: Tool): Record<string, string> {
  const variables: Record<string, string> = { PYTHONUTF8: "1", PYTHONSAFEPATH: "1" };
  if (tool.bundled) {
    // In front of everything, and inherited by whatever the server starts.
    variables.PYTHONPATH = path.join(context.extensionPath, "bundled");
  }
  return variables;
}

export function commandLine(...parameters: string[]): string[] {
  return ["-m", "phobos", ...parameters];
}
