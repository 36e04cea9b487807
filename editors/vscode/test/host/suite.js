// Runs inside the extension host, with VS Code's own API. What throws fails.
const assert = require("node:assert/strict");
const path = require("node:path");
const vscode = require("vscode");

const folder = () => vscode.workspace.workspaceFolders[0].uri;
const file = (name) => vscode.Uri.joinPath(folder(), name);

async function until(condition, what, seconds = 90) {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`waited in vain for ${what}`);
}

const findings = (uri) => vscode.languages.getDiagnostics(uri);
const code = (diagnostic) => (typeof diagnostic.code === "object" ? diagnostic.code.value : diagnostic.code);

async function open(name) {
  const document = await vscode.workspace.openTextDocument(file(name));
  await vscode.window.showTextDocument(document);
  return document;
}

const tests = {
  async "the extension activates for a .ph file and its server runs"() {
    const document = await open("sweep.ph");
    assert.equal(document.languageId, "phobos");
    const extension = vscode.extensions.getExtension("phobos-tools.phobos-tools");
    const { server } = await extension.activate();
    await until(() => server.condition.kind === "running", "the server");
    assert.equal(server.condition.tool.bundled, true);
  },

  async "a finding carries its code, a link and its related places"() {
    const found = await until(() => findings(file("sweep.ph")).find((each) => code(each) === "PH205"), "PH205");
    assert.equal(found.severity, vscode.DiagnosticSeverity.Error);
    assert.equal(found.source, "phobos");
    assert.match(found.code.target.toString(), /ph205/i);
    assert.deepEqual([found.range.start.line, found.range.start.character], [5, 4]);
    assert.ok(found.relatedInformation.length > 0);
    assert.equal(found.relatedInformation[0].location.uri.path, file("sweep.ph").path);
  },

  async "every command of package.json exists"() {
    const extension = vscode.extensions.getExtension("phobos-tools.phobos-tools");
    const known = new Set(await vscode.commands.getCommands(true));
    for (const { command } of extension.packageJSON.contributes.commands) {
      assert.ok(known.has(command), command);
    }
  },

  async "every setting of package.json has a description and the default that the server assumes"() {
    const properties = vscode.extensions.getExtension("phobos-tools.phobos-tools").packageJSON.contributes.configuration.properties;
    for (const [name, property] of Object.entries(properties)) {
      assert.ok(property.description || property.markdownDescription, name);
      assert.deepEqual(vscode.workspace.getConfiguration().inspect(name).defaultValue, property.default, name);
    }
  },

  async "symbols, definition, references and folding answer"() {
    const uri = file("sweep.ph");
    const symbols = await vscode.commands.executeCommand("vscode.executeDocumentSymbolProvider", uri);
    assert.deepEqual(symbols.map((symbol) => symbol.name), ["sweep"]);
    const [definition] = await vscode.commands.executeCommand("vscode.executeDefinitionProvider", uri, new vscode.Position(5, 18));
    assert.equal((definition.range ?? definition.targetRange).start.line, 2);
    const references = await vscode.commands.executeCommand("vscode.executeReferenceProvider", uri, new vscode.Position(1, 11));
    assert.deepEqual([...new Set(references.map((each) => each.range.start.line))].sort(), [1, 3, 4]);
    const folds = await vscode.commands.executeCommand("vscode.executeFoldingRangeProvider", uri);
    assert.ok(folds.some((fold) => fold.start === 2));
  },

  async "completion offers a built-in with its documentation"() {
    const list = await vscode.commands.executeCommand(
      "vscode.executeCompletionItemProvider", file("plain.ph"), new vscode.Position(3, 2), undefined, 200,
    );
    const item = list.items.find((each) => (each.label.label ?? each.label) === "rowsum");
    assert.ok(item, "rowsum");
  },

  async "semantic tokens mark what differs from block to block"() {
    const legend = await vscode.commands.executeCommand("vscode.provideDocumentSemanticTokensLegend", file("sweep.ph"));
    const tokens = await vscode.commands.executeCommand("vscode.provideDocumentSemanticTokens", file("sweep.ph"));
    const extension = vscode.extensions.getExtension("phobos-tools.phobos-tools").packageJSON.contributes;
    const standard = ["keyword", "type", "function", "variable", "parameter", "number", "comment", "operator", "decorator", "property", "method", "string", "macro", "namespace", "struct", "class"];
    for (const type of legend.tokenTypes) {
      assert.ok(standard.includes(type) || extension.semanticTokenTypes.some(({ id }) => id === type), `token type ${type}`);
    }
    const varying = legend.tokenModifiers.findIndex((each) => extension.semanticTokenModifiers.some(({ id }) => id === each));
    assert.ok(varying >= 0, `one of our modifiers in ${legend.tokenModifiers}`);
    let marked = 0;
    for (let at = 4; at < tokens.data.length; at += 5) marked += (tokens.data[at] >> varying) & 1;
    assert.ok(marked > 0);
  },

  async "formatting changes only the layout"() {
    const document = await open("loose.ph");
    const edits = await vscode.commands.executeCommand("vscode.executeFormatDocumentProvider", document.uri, { tabSize: 2, insertSpaces: true });
    const edit = new vscode.WorkspaceEdit();
    edit.set(document.uri, edits);
    await vscode.workspace.applyEdit(edit);
    assert.equal(document.getText(), "kernel loose(X: tensor<f32>[N]) {\n  X[0 :+ 4] = X[0 :+ 4] * 2.0\n}\n");
  },

  async "a task checks the folder and its findings reach the problems"() {
    const tasks = await vscode.tasks.fetchTasks({ type: "phobos" });
    const check = tasks.find((task) => task.definition.command === "check");
    assert.ok(check, "a task");
    const ended = new Promise((resolve) => {
      vscode.tasks.onDidEndTaskProcess((event) => event.execution.task.definition.type === "phobos" && resolve(event.exitCode));
    });
    await vscode.tasks.executeTask(check);
    assert.equal(await ended, 1);
    // The server's finding, and the matched line of the task, of the same place.
    await until(() => findings(file("sweep.ph")).filter((each) => code(each) === "PH205").length === 2, "the task's finding");
  },

  async "a changed card reaches the lens"() {
    await open("plain.ph");
    const before = await until(async () => {
      const lenses = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", file("plain.ph"), 10);
      return lenses.length > 0 && lenses;
    }, "lenses");
    assert.ok(before.some((lens) => lens.command.command === "phobos.runKernel"));
    await vscode.workspace.getConfiguration("phobos").update("cards", ["l4"], vscode.ConfigurationTarget.Workspace);
    await until(async () => {
      const lenses = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", file("plain.ph"), 10);
      return lenses.some((lens) => lens.command.title.toLowerCase().includes("l4"));
    }, "the card in the lens");
    await vscode.workspace.getConfiguration("phobos").update("cards", undefined, vscode.ConfigurationTarget.Workspace);
  },

  async "an unsaved document is checked too"() {
    const document = await vscode.workspace.openTextDocument({ language: "phobos", content: "kernel k(X: tensor<f32>[N]) {\n  X[0] = missing\n}\n" });
    await until(() => findings(document.uri).some((each) => code(each) === "PH101"), "PH101");
  },

  async "the server restarts, once however often it is asked"() {
    const { server } = await vscode.extensions.getExtension("phobos-tools.phobos-tools").activate();
    await Promise.all([server.restart(), server.restart(), server.restart()]);
    assert.equal(server.condition.kind, "running");
    await open("sweep.ph");
    await until(() => findings(file("sweep.ph")).some((each) => code(each) === "PH205"), "findings of the new server");
    await server.stop();
    assert.equal(server.condition.kind, "stopped");
    await server.start();
    assert.equal(server.condition.kind, "running");
  },
};

exports.run = async () => {
  const only = process.env.PHOBOS_ONLY;
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    if (only && !name.includes(only)) continue;
    try {
      await test();
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${name}: ${error.stack ?? error}`);
    }
  }
  console.log(`${Object.keys(tests).length} tests, ${failed} failed (${path.basename(__filename)})`);
  if (failed > 0) throw new Error(`${failed} failed`);
};
