/** What the user can ask for beyond editing: run a kernel, replay a finding, read the generated code, choose cards. */
import { execFile } from "node:child_process";
import * as path from "node:path";
import * as vscode from "vscode";
import { missingModule } from "./python";
import type { Server } from "./server";
import { execution } from "./tasks";
import { commandLine, environment, type Tool } from "./tool";

const CARDS = ["t4", "a100", "a10", "l4", "l40s", "rtx3090", "rtx4090", "rtx5090", "h100-sxm", "h100-pcie", "h200", "b200"];
const GENERATED = "phobos-generated";

/** A kernel of a saved file. */
interface Kernel {
  readonly file: vscode.Uri;
  readonly name: string;
}

export function registerCommands(context: vscode.ExtensionContext, server: Server): void {
  const pages = new GeneratedPages();
  const show = (format: string) => (uri?: string, kernel?: string) => showGenerated(context, server, pages, format, uri, kernel);
  const commands: Record<string, (...parameters: never[]) => unknown> = {
    "phobos.restart": () => server.restart(),
    "phobos.chooseCards": chooseCards,
    "phobos.runKernel": (uri?: unknown, kernel?: unknown) => runKernel(context, server, text(uri), text(kernel)),
    "phobos.prove": (uri?: unknown) => prove(context, server, text(uri)),
    "phobos.showCuda": show("cuda"),
    "phobos.showPtx": show("ptx"),
    "phobos.showFacts": show("facts"),
    "phobos.showOutput": () => server.output.show(),
    "phobos.openExample": openExample,
    "phobos.menu": () => menu(server),
  };
  for (const [name, action] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(name, action));
  }
  context.subscriptions.push(vscode.workspace.registerTextDocumentContentProvider(GENERATED, pages));
}

function text(argument: unknown): string | undefined {
  return typeof argument === "string" ? argument : argument instanceof vscode.Uri ? argument.toString() : undefined;
}

async function runKernel(context: vscode.ExtensionContext, server: Server, uri?: string, name?: string): Promise<void> {
  const tool = await ready(server, "Running a kernel");
  const kernel = tool && (await kernelAt(uri, name));
  if (!tool || !kernel) {
    return;
  }
  const missing = await missingModule(tool.python.path, ["numpy", "ml_dtypes"]);
  if (missing !== undefined) {
    await sayMissing(tool, missing);
    return;
  }
  const task = new vscode.Task(
    { type: "phobos", command: "run", kernel: kernel.name },
    vscode.workspace.getWorkspaceFolder(kernel.file) ?? vscode.TaskScope.Global,
    `run ${kernel.name}`,
    "phobos",
    execution(context, tool, "run", kernel.file.fsPath, "--kernel", kernel.name),
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true };
  await vscode.tasks.executeTask(task);
}

async function prove(context: vscode.ExtensionContext, server: Server, uri?: string): Promise<void> {
  const tool = await ready(server, "Replaying a finding");
  const file = tool && (await savedFile(uri));
  if (!tool || !file) {
    return;
  }
  const missing = await missingModule(tool.python.path, ["numpy", "ml_dtypes"]);
  if (missing !== undefined) {
    await sayMissing(tool, missing);
    return;
  }
  const task = new vscode.Task(
    { type: "phobos", command: "prove" },
    vscode.workspace.getWorkspaceFolder(file) ?? vscode.TaskScope.Global,
    `prove ${path.basename(file.fsPath)}`,
    "phobos",
    execution(context, tool, "check", "--prove", "--output-format", "full", file.fsPath),
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true };
  await vscode.tasks.executeTask(task);
}

async function showGenerated(
  context: vscode.ExtensionContext, server: Server, pages: GeneratedPages, format: string, uri?: string, name?: string,
): Promise<void> {
  const tool = await ready(server, "Showing generated code", format !== "ptx");
  const kernel = tool && (await kernelAt(uri, name));
  if (!tool || !kernel) {
    return;
  }
  const answer = await phobos(context, tool, "emit", kernel.file.fsPath, "--kernel", kernel.name, "--format", format);
  if (answer.failed) {
    void vscode.window.showErrorMessage(answer.errors.trim() || `phobos emit gave no ${format}.`);
    return;
  }
  const page = pages.put(kernel, format, answer.output);
  const document = await vscode.workspace.openTextDocument(page);
  const known = await vscode.languages.getLanguages();
  const language = { cuda: known.includes("cuda-cpp") ? "cuda-cpp" : "cpp", facts: "json" }[format];
  await vscode.window.showTextDocument(language ? await vscode.languages.setTextDocumentLanguage(document, language) : document, {
    viewColumn: vscode.ViewColumn.Beside,
    preview: true,
    preserveFocus: true,
  });
}

/** Pages of generated text, kept until the same kernel is asked for again. */
class GeneratedPages implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  put(kernel: Kernel, format: string, content: string): vscode.Uri {
    const ending = { cuda: "cu", ptx: "ptx", facts: "json" }[format] ?? "txt";
    const uri = vscode.Uri.from({ scheme: GENERATED, path: `${kernel.file.path}/${kernel.name}.${ending}` });
    this.texts.set(uri.toString(), content);
    this.changed.fire(uri);
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }
}

interface Answer {
  readonly failed: boolean;
  readonly output: string;
  readonly errors: string;
}

function phobos(context: vscode.ExtensionContext, tool: Tool, ...parameters: string[]): Promise<Answer> {
  const env = { ...process.env, ...environment(context, tool), NO_COLOR: "1" };
  return new Promise((resolve) => {
    execFile(tool.python.path, commandLine(...parameters), { env, maxBuffer: 1 << 26, timeout: 120_000 }, (error, output, errors) =>
      resolve({ failed: error !== null, output, errors: errors || output }),
    );
  });
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

async function chooseCards(): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("phobos");
  const chosen = new Set(configuration.get<string[]>("cards", []));
  const picked = await vscode.window.showQuickPick(
    CARDS.map((label) => ({ label, picked: chosen.has(label) })),
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
