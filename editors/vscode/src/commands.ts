/** What the user can ask for beyond editing: run a kernel, replay a finding, read the generated code, choose cards. */
import * as path from "node:path";
import * as vscode from "vscode";
import { missingModule } from "./python";
import type { Server } from "./server";
import { execution } from "./tasks";
import type { Tool } from "./tool";


/** A kernel of a saved file. */
interface Kernel {
  readonly file: vscode.Uri;
  readonly name: string;
}

export function registerCommands(context: vscode.ExtensionContext, server: Server): void {
  const shower = (command: string) => (uri?: unknown, kernel?: unknown) => show(server, command, text(uri), text(kernel));
  const commands: Record<string, (...parameters: never[]) => unknown> = {
    "phobos.restart": () => server.restart(),
    "phobos.chooseCards": () => chooseCards(context),
    "phobos.runKernel": (uri?: unknown, kernel?: unknown) => runKernel(context, server, text(uri), text(kernel)),
    "phobos.showItHappen": (uri?: unknown, kernel?: unknown, code?: unknown) =>
      showItHappen(context, server, text(uri), text(kernel), text(code)),
    "phobos.showCuda": shower("phobos.showCuda"),
    "phobos.showPtx": shower("phobos.showPtx"),
    "phobos.showFacts": shower("phobos.showFacts"),
    "phobos.explainRule": (code?: unknown) => explainRule(server, text(code)),
    "phobos.showOutput": () => server.output.show(),
    "phobos.openExample": openExample,
    "phobos.menu": () => menu(server),
  };
  for (const [name, action] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(name, action));
  }
}

function text(argument: unknown): string | undefined {
  return typeof argument === "string" ? argument : argument instanceof vscode.Uri ? argument.toString() : undefined;
}

async function runKernel(context: vscode.ExtensionContext, server: Server, uri?: string, name?: string): Promise<void> {
  const tool = await ready(server, "Running a kernel");
  const kernel = tool && (await kernelAt(uri, name));
  if (tool && kernel) {
    await inTerminal(context, tool, kernel.file, `run ${kernel.name}`, ["run", kernel.file.fsPath, "--kernel", kernel.name]);
  }
}

async function showItHappen(
  context: vscode.ExtensionContext, server: Server, uri?: string, name?: string, code?: string,
): Promise<void> {
  const tool = await ready(server, "Replaying a finding");
  const file = tool && (await savedFile(uri));
  if (tool && file) {
    const narrower = [...(name === undefined ? [] : ["--kernel", name]), ...(code === undefined ? [] : ["--select", code])];
    const parameters = ["check", file.fsPath, "--prove", "--output-format", "full", ...narrower];
    await inTerminal(context, tool, file, `show ${name ?? path.basename(file.fsPath)}`, parameters);
  }
}

async function inTerminal(
  context: vscode.ExtensionContext, tool: Tool, file: vscode.Uri, title: string, parameters: string[],
): Promise<void> {
  const missing = await missingModule(tool.python.path, ["numpy", "ml_dtypes"]);
  if (missing !== undefined) {
    await sayMissing(tool, missing);
    return;
  }
  const scope = vscode.workspace.getWorkspaceFolder(file) ?? vscode.TaskScope.Global;
  const task = new vscode.Task({ type: "phobos", command: title }, scope, title, "phobos", execution(context, tool, ...parameters));
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true };
  await vscode.tasks.executeTask(task);
}

/** The server compiles and opens the page, from the text as it stands in the editor. */
async function show(server: Server, command: string, uri?: string, name?: string): Promise<void> {
  if (!(await ready(server, "Compiling a kernel", command === "phobos.showFacts"))) {
    return;
  }
  const kernel = await kernelAt(uri, name);
  if (kernel !== undefined) {
    await ask(server, command, kernel.file.toString(), kernel.name);
  }
}

async function explainRule(server: Server, code?: string): Promise<void> {
  const rule = code ?? (await vscode.window.showInputBox({ prompt: "A rule's code or name", placeHolder: "PH203" }));
  if (rule) {
    await ask(server, "phobos.explainRule", rule);
  }
}

/** A command of the server; what it answers with an error is for the user to read. */
async function ask(server: Server, command: string, ...parameters: unknown[]): Promise<void> {
  try {
    await server.execute(command, ...parameters);
  } catch (error) {
    void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
  }
}

/** The tool, if it runs and this folder may run things; otherwise the user has been told. */
async function ready(server: Server, what: string, harmless = false): Promise<Tool | undefined> {
  if (!harmless && !vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage(`${what} is off in a folder that is not trusted.`);
    return undefined;
  }
  if (server.condition.kind === "failed") {
    void vscode.window.showErrorMessage(server.condition.reason);
  }
  return server.tool;
}

async function savedFile(uri?: string): Promise<vscode.Uri | undefined> {
  const file = uri === undefined ? vscode.window.activeTextEditor?.document.uri : vscode.Uri.parse(uri);
  if (file === undefined) {
    return undefined;
  }
  const document = await vscode.workspace.openTextDocument(file);
  if (document.languageId !== "phobos") {
    return undefined;
  }
  if ((document.isDirty || document.isUntitled) && !(await document.save())) {
    return undefined;
  }
  return document.isUntitled ? undefined : document.uri;
}

/** The kernel named, or the one at the cursor, or the file's only one; the user picks where none of that decides. */
async function kernelAt(uri?: string, name?: string): Promise<Kernel | undefined> {
  const file = await savedFile(uri);
  if (file === undefined) {
    return undefined;
  }
  if (name !== undefined) {
    return { file, name };
  }
  const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[]>("vscode.executeDocumentSymbolProvider", file);
  const source = (await vscode.workspace.openTextDocument(file)).getText();
  const names = new Set([...source.matchAll(/^[^/\n]*\bkernel\s+([A-Za-z_]\w*)/gm)].map((match) => match[1]));
  const kernels = (symbols ?? []).filter((symbol) => names.has(symbol.name));
  const editor = vscode.window.visibleTextEditors.find((each) => each.document.uri.toString() === file.toString());
  const here = kernels.find((symbol) => editor !== undefined && symbol.range.contains(editor.selection.active)) ?? (kernels.length === 1 ? kernels[0] : undefined);
  if (here !== undefined) {
    return { file, name: here.name };
  }
  if (kernels.length === 0) {
    void vscode.window.showInformationMessage("There is no kernel in this file.");
    return undefined;
  }
  const picked = await vscode.window.showQuickPick(kernels.map((symbol) => symbol.name), { placeHolder: "Which kernel?" });
  return picked === undefined ? undefined : { file, name: picked };
}

async function sayMissing(tool: Tool, module: string): Promise<void> {
  const command = `"${tool.python.path}" -m pip install numpy ml-dtypes`;
  const copy = "Copy the command";
  const answer = await vscode.window.showErrorMessage(
    `Running kernels needs numpy and ml-dtypes in Python ${tool.python.version}, and ${module} is not there. Install them: ${command}`, copy,
  );
  if (answer === copy) {
    await vscode.env.clipboard.writeText(command);
  }
}

async function chooseCards(context: vscode.ExtensionContext): Promise<void> {
  const known: string[] = context.extension.packageJSON.contributes.configuration.properties["phobos.cards"].items.enum;
  const configuration = vscode.workspace.getConfiguration("phobos");
  const chosen = new Set(configuration.get<string[]>("cards", []));
  const picked = await vscode.window.showQuickPick(
    known.map((label) => ({ label, picked: chosen.has(label) })),
    { canPickMany: true, placeHolder: "Cards that lenses speak of" },
  );
  if (picked !== undefined) {
    const target = vscode.workspace.workspaceFolders ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
    await configuration.update("cards", picked.map((card) => card.label), target);
  }
}

const EXAMPLE = `// run: kernel=sweep N=2560 X=zeros grid=4
// expect: fault=deadlock

@persistent
@autotune(TILE in [512])
kernel sweep(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for t in range(ctx.block.x * TILE, N, ctx.blocks.x * TILE) {
    X[t :+ TILE] = X[t :+ TILE] + 1.0
    grid_barrier(BAR)
  }
}
`;

async function openExample(): Promise<void> {
  const document = await vscode.workspace.openTextDocument({ language: "phobos", content: EXAMPLE });
  await vscode.window.showTextDocument(document);
}

async function menu(server: Server): Promise<void> {
  const entries = [
    { label: "$(refresh) Restart the server", command: "phobos.restart" },
    { label: "$(circuit-board) Choose cards", command: "phobos.chooseCards" },
    { label: "$(output) Show the log", command: "phobos.showOutput" },
    { label: "$(gear) Settings", command: "workbench.action.openSettings", argument: "@ext:phobos-tools.phobos-tools" },
  ];
  const state = server.condition.kind === "failed" ? server.condition.reason : `The server is ${server.condition.kind}.`;
  const picked = await vscode.window.showQuickPick(entries, { placeHolder: state });
  if (picked !== undefined) {
    await vscode.commands.executeCommand(picked.command, ...(picked.argument ? [picked.argument] : []));
  }
}
