/** The item in the status bar: the server's state, and the cards that lenses speak of. */
import * as vscode from "vscode";
import type { Condition, Server } from "./server";

export function statusItem(server: Server): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("phobos", vscode.StatusBarAlignment.Right, 90);
  item.name = "Phobos";
  item.command = "phobos.menu";
  const show = (): void => {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== "phobos") {
      item.hide();
      return;
    }
    const cards = vscode.workspace.getConfiguration("phobos", editor.document).get<string[]>("cards", []);
    item.text = `${icon(server.condition)} Phobos${cards.length > 0 ? `: ${cards.join(", ")}` : ""}`;
    item.tooltip = describe(server.condition);
    const failed = server.condition.kind === "failed";
    item.backgroundColor = failed ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
    item.show();
  };
  show();
  return vscode.Disposable.from(
    item,
    server.onCondition(show),
    vscode.window.onDidChangeActiveTextEditor(show),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("phobos.cards") && show()),
  );
}

function icon(condition: Condition): string {
  switch (condition.kind) {
    case "running": return "$(check)";
    case "starting": return "$(sync~spin)";
    case "stopped": return "$(circle-slash)";
    case "failed": return "$(error)";
  }
}

function describe(condition: Condition): string {
  switch (condition.kind) {
    case "running": return `The server runs: ${condition.tool.remark}.`;
    case "starting": return "The server is starting.";
    case "stopped": return "The server does not run.";
    case "failed": return condition.reason;
  }
}
