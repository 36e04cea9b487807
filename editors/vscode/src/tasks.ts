/** `phobos check` as a task, with findings in the Problems view. */
import * as vscode from "vscode";
import type { Server } from "./server";
import { commandLine, environment, findTool, type Tool } from "./tool";

interface Definition extends vscode.TaskDefinition {
  readonly command: string;
  readonly paths?: string[];
  readonly arguments?: string[];
}

export function taskProvider(context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  const build = async (definition: Definition, scope: vscode.WorkspaceFolder | vscode.TaskScope): Promise<vscode.Task | undefined> => {
    const tool = server.tool ?? (await findTool());
    if (typeof tool === "string") {
      return undefined;
    }
    const parameters = ["--output-format", "concise", ...(definition.arguments ?? []), ...(definition.paths ?? ["."])];
    return new vscode.Task(definition, scope, definition.command, "phobos", execution(context, tool, definition.command, ...parameters), "$phobos");
  };
  return vscode.tasks.registerTaskProvider("phobos", {
    provideTasks: async () => {
      const tasks = await Promise.all(
        (vscode.workspace.workspaceFolders ?? []).map((folder) => build({ type: "phobos", command: "check" }, folder)),
      );
      for (const task of tasks) {
        if (task !== undefined) {
          task.group = vscode.TaskGroup.Build;
        }
      }
      return tasks.filter((task) => task !== undefined);
    },
    resolveTask: (task) => build(task.definition as Definition, task.scope as vscode.WorkspaceFolder | vscode.TaskScope ?? vscode.TaskScope.Workspace),
  });
}

export function execution(context: vscode.ExtensionContext, tool: Tool, ...parameters: string[]): vscode.ProcessExecution {
  return new vscode.ProcessExecution(tool.python.path, commandLine(...parameters), { env: environment(context, tool) });
}
