/** Wires the parts together: the server, its status, the commands, the tasks; and what makes the server start anew. */
import * as vscode from "vscode";
import { registerCommands } from "./commands";
import { Server } from "./server";
import { statusItem } from "./status";
import { taskProvider } from "./tasks";

const RESTARTING = ["phobos.python", "phobos.importStrategy", "phobos.logFile"];

export async function activate(context: vscode.ExtensionContext): Promise<{ server: Server }> {
  const output = vscode.window.createOutputChannel("Phobos", { log: true });
  const server = new Server(context, output);
  registerCommands(context, server);
  context.subscriptions.push(
    output,
    server,
    statusItem(server),
    taskProvider(context, server),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (RESTARTING.some((name) => event.affectsConfiguration(name))) {
        void server.restart();
      }
    }),
    // What may be compiled and run, and whose Python runs it, depends on it.
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server.restart()),
  );
  await server.start();
  return { server };
}
