/** The language server's life: started, stopped and restarted one after another, never two at once. */
import * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, State, type LanguageClientOptions } from "vscode-languageclient/node";
import { commandLine, environment, findTool, type Tool } from "./tool";

export type Condition =
  | { readonly kind: "starting" | "stopped" }
  | { readonly kind: "running"; readonly tool: Tool }
  | { readonly kind: "failed"; readonly reason: string };

/** The editor's commands are registered by the extension, which shows results in the editor's own ways. */
class Client extends LanguageClient {
  override registerFeature(feature: Parameters<LanguageClient["registerFeature"]>[0]): void {
    if ("registrationType" in feature && feature.registrationType?.method === "workspace/executeCommand") {
      return;
    }
    super.registerFeature(feature);
  }
}

const CRASHES = 4; // in three minutes; then the user is asked instead

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private queue: Promise<void> = Promise.resolve();
  private crashes: number[] = [];
  private readonly changed = new vscode.EventEmitter<Condition>();
  readonly onCondition = this.changed.event;
  condition: Condition = { kind: "stopped" };

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly output: vscode.LogOutputChannel,
  ) {}

  get tool(): Tool | undefined {
    return this.condition.kind === "running" ? this.condition.tool : undefined;
  }

  start(): Promise<void> {
    return this.inTurn(() => this.launch());
  }

  restart(): Promise<void> {
    return this.inTurn(async () => {
      this.crashes = [];
      await this.halt();
      await this.launch();
    });
  }

  stop(): Promise<void> {
    return this.inTurn(() => this.halt());
  }

  /** Let the server do one of its commands; undefined when it is not running. */
  async execute<T>(command: string, ...parameters: unknown[]): Promise<T | undefined> {
    await this.queue;
    return this.client?.sendRequest("workspace/executeCommand", { command, arguments: parameters });
  }

  dispose(): void {
    void this.stop();
    this.changed.dispose();
  }

  private inTurn(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step).catch((error: unknown) => {
      this.set({ kind: "failed", reason: String(error) });
    });
    return this.queue;
  }

  private set(condition: Condition): void {
    this.condition = condition;
    if (condition.kind === "failed") {
      this.output.error(condition.reason);
    }
    this.changed.fire(condition);
  }

  private async launch(): Promise<void> {
    this.set({ kind: "starting" });
    const tool = await findTool();
    if (typeof tool === "string") {
      this.set({ kind: "failed", reason: tool });
      void this.explain(tool);
      return;
    }
    this.output.info(`starting the server: ${tool.remark}`);
    const log = vscode.workspace.getConfiguration("phobos").get<string>("logFile", "");
    const run = {
      command: tool.python.path,
      args: commandLine("lsp", "--stdio", ...(log === "" ? [] : ["--log-file", log])),
      options: { env: { ...process.env, ...environment(this.context, tool) } },
    };
    const client = new Client("phobos", "Phobos", { run, debug: run }, this.options());
    client.onDidChangeState(({ newState }) => {
      if (client === this.client && newState === State.Stopped && this.condition.kind === "running") {
        this.set({ kind: "stopped" });
      } else if (client === this.client && newState === State.Running) {
        this.set({ kind: "running", tool });
      }
    });
    this.client = client;
    try {
      await client.start();
      this.set({ kind: "running", tool });
    } catch (error) {
      const reason = `The server did not start: ${error instanceof Error ? error.message : String(error)}`;
      this.set({ kind: "failed", reason });
      void this.explain(reason);
    }
  }

  private async halt(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client === undefined) {
      return;
    }
    if (client.state !== State.Running) {
      // One that never came up cannot be asked to stop.
      await client.dispose().catch(() => undefined);
    } else {
      await client.dispose(5_000).catch((error: unknown) => this.output.warn(`while stopping: ${String(error)}`));
    }
    this.set({ kind: "stopped" });
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [
        { language: "phobos", scheme: "file" },
        { language: "phobos", scheme: "untitled" },
      ],
      outputChannel: this.output,
      initializationOptions: settings(),
      synchronize: { configurationSection: "phobos" },
      middleware: {
        window: { showDocument: ({ uri }) => showBeside(vscode.Uri.parse(uri)) },
        workspace: {
          configuration: async (parameters, token, next) => {
            const answers = await next(parameters, token);
            return Array.isArray(answers)
              ? answers.map((answer, i) => (parameters.items[i]?.section === "phobos" ? trusted(answer) : answer))
              : answers;
          },
        },
      },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => {
          const now = Date.now();
          this.crashes = [...this.crashes.filter((then) => now - then < 180_000), now];
          if (this.crashes.length <= CRASHES) {
            this.output.warn("the server ended; starting it again");
            return { action: CloseAction.Restart, handled: true };
          }
          const reason = `The server ended ${this.crashes.length} times within three minutes.`;
          this.set({ kind: "failed", reason });
          void this.explain(reason);
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
  }

  private async explain(reason: string): Promise<void> {
    const choose = "Open the setting";
    const log = "Show the log";
    const again = "Try again";
    const answer = await vscode.window.showErrorMessage(
      `${reason} Install Python 3.11 or newer, or name one in the setting phobos.python.`, choose, again, log,
    );
    if (answer === choose) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "phobos.python");
    } else if (answer === log) {
      this.output.show();
    } else if (answer === again) {
      await this.restart();
    }
  }
}

/** The section as the server takes it. In a folder that is not trusted, nothing of it is compiled or run. */
export function settings(): object {
  return trusted(vscode.workspace.getConfiguration("phobos"));
}

function trusted(section: unknown): object {
  const plain = JSON.parse(JSON.stringify(section ?? {})) as Record<string, unknown>;
  return vscode.workspace.isTrusted ? plain : { ...plain, nvrtc: { enable: false }, run: { enable: false }, proveOnSave: false };
}

/** What the server made (CUDA, facts, a rule's page), beside the code and without taking the cursor away. */
async function showBeside(uri: vscode.Uri): Promise<{ success: boolean }> {
  const endings: Record<string, string> = { ".cu": "cuda-cpp", ".ptx": "plaintext" };
  try {
    if (uri.path.endsWith(".md")) {
      await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
      return { success: true };
    }
    const document = await vscode.workspace.openTextDocument(uri);
    const wanted = endings[uri.path.slice(uri.path.lastIndexOf("."))];
    const language = wanted && (await vscode.languages.getLanguages()).includes(wanted) ? wanted : undefined;
    await vscode.window.showTextDocument(
      language ? await vscode.languages.setTextDocumentLanguage(document, language) : document,
      { viewColumn: vscode.ViewColumn.Beside, preview: true, preserveFocus: true },
    );
    return { success: true };
  } catch {
    return { success: false };
  }
}
