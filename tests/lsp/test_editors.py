"""The server end to end, as Neovim (UTF-8), VS Code (UTF-16, pulls) and Emacs (UTF-32) talk to it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

from phobos.syntax.lines import LineIndex
from tests.lsp.editors import EDITORS, ENCODINGS, capabilities

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning"),
]

# Outside the basic plane and outside ASCII, so that the three encodings count differently.
TEXT = """\
// 𝛼 ist groß: π ≈ 3
@persistent
@autotune(TILE in [64])
kernel leader(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  /* 𝛼 */ let p = ctx.block.x
  if p == 0 {
    grid_barrier(BAR)
  }
  let größe = 1
  X[größe] = exp(X[größe])
}
""".replace("/* 𝛼 */ ", "")
COMMENTED = TEXT.replace("  if p == 0 {", "  if p == 0 { // 𝛼𝛼")


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "phobos", "lsp", "--stdio"]),
    params=EDITORS,
    scope="module",
)
async def client(
    request: pytest.FixtureRequest, lsp_client: LanguageClient, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    folder = tmp_path_factory.mktemp("workspace")
    registered: list[str] = []

    @lsp_client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        registered.extend(one.method for one in params.registrations)

    lsp_client.registered = registered  # type: ignore[attr-defined]
    result = await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities(request.param),
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), "workspace")],
        )
    )
    lsp_client.capabilities_of_server = result.capabilities  # type: ignore[attr-defined]
    lsp_client.editor = request.param  # type: ignore[attr-defined]
    lsp_client.folder = folder  # type: ignore[attr-defined]
    yield
    await lsp_client.shutdown_session()


class Place:
    """A document opened in a client, with positions in the client's own encoding."""

    def __init__(self, client: LanguageClient, name: str, text: str) -> None:
        self.client = client
        self.encoding = ENCODINGS[client.editor]  # type: ignore[attr-defined]
        self.uri = (Path(client.folder) / name).as_uri()  # type: ignore[attr-defined]
        self.set(text)
        item = types.TextDocumentItem(uri=self.uri, language_id="phobos", version=1, text=text)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def set(self, text: str) -> None:
        self.text = text
        self.lines = LineIndex(text)

    @property
    def identifier(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)

    def position(self, word: str, nth: int = 0) -> types.Position:
        offset = -1
        for _ in range(nth + 1):
            offset = self.text.index(word, offset + 1)
        return types.Position(*self.lines.position(offset, self.encoding))  # type: ignore[arg-type]

    def words(self, range: types.Range) -> str:
        start = self.lines.offset(range.start.line, range.start.character, self.encoding)  # type: ignore[arg-type]
        end = self.lines.offset(range.end.line, range.end.character, self.encoding)  # type: ignore[arg-type]
        return self.text[start:end]

    async def diagnostics(self) -> list[types.Diagnostic]:
        """However this client gets them."""
        if self.client.editor == "vscode" or self.client.editor == "neovim":  # type: ignore[attr-defined]
            report = await self.client.text_document_diagnostic_async(
                types.DocumentDiagnosticParams(text_document=self.identifier)
            )
            assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
            return list(report.items)
        while self.uri not in self.client.diagnostics:
            await self.client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        return list(self.client.diagnostics[self.uri])

    def close(self) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(self.identifier))


@pytest.fixture
def place(client: LanguageClient) -> Iterator[Place]:
    opened = Place(client, "größe 𝛼.ph", COMMENTED)
    yield opened
    opened.close()


async def test_the_encoding_is_the_one_the_client_prefers(client: LanguageClient) -> None:
    encoding = client.capabilities_of_server.position_encoding  # type: ignore[attr-defined]
    assert encoding == ENCODINGS[client.editor]  # type: ignore[attr-defined]


async def test_a_barrier_under_a_branch_is_found_with_its_chain(place: Place) -> None:
    found = [d for d in await place.diagnostics() if d.code == "PH203"]
    assert len(found) == 1
    assert place.words(found[0].range) == "grid_barrier(BAR)"
    assert found[0].source == "phobos"
    related = found[0].related_information or []
    if related:
        assert [place.words(r.location.range) for r in related][:2] == ["if", "p"]
        assert {r.location.uri for r in related} == {place.uri}
    else:  # a client that shows no related places reads them in the message
        assert "\nline 6: " in found[0].message


async def test_the_code_links_to_its_page(place: Place) -> None:
    for diagnostic in await place.diagnostics():
        if diagnostic.code_description is not None:
            page = Path(unquote(urlsplit(diagnostic.code_description.href).path))
            assert page.is_file() and page.name == f"{diagnostic.code}.md"


async def test_hover(place: Place) -> None:
    params = types.HoverParams(place.identifier, place.position("größe"))
    hover = await place.client.text_document_hover_async(params)
    assert hover is not None and hover.range is not None
    assert place.words(hover.range) == "größe"
    assert "index" in str(hover.contents)


async def test_definition_and_references(place: Place) -> None:
    at = place.position("größe", 1)
    found = await place.client.text_document_definition_async(types.DefinitionParams(place.identifier, at))
    assert isinstance(found, types.Location) and found.range.start == place.position("größe")
    context = types.ReferenceContext(include_declaration=True)
    references = await place.client.text_document_references_async(
        types.ReferenceParams(context, place.identifier, at)
    )
    assert references is not None
    assert [place.words(r.range) for r in references] == ["größe"] * 3


async def test_rename(place: Place) -> None:
    params = types.RenameParams(
        new_name="2 sizes", text_document=place.identifier, position=place.position("größe", 2)
    )
    with pytest.raises(Exception, match="is not a name"):  # a sentence that the editor shows
        await place.client.text_document_rename_async(params)
    params = types.RenameParams(
        new_name="länge", text_document=place.identifier, position=place.position("größe", 2)
    )
    edit = await place.client.text_document_rename_async(params)
    assert edit is not None
    if edit.document_changes:
        change = edit.document_changes[0]
        assert isinstance(change, types.TextDocumentEdit)
        edits = change.edits
    else:
        assert edit.changes is not None
        edits = edit.changes[place.uri]
    assert [place.words(e.range) for e in edits] == ["größe"] * 3


async def test_completion_replaces_the_word(place: Place) -> None:
    line, character = place.position("exp(").line, place.position("exp(").character
    params = types.CompletionParams(place.identifier, types.Position(line, character + 2))
    found = await place.client.text_document_completion_async(params)
    assert isinstance(found, types.CompletionList)
    item = next(i for i in found.items if i.label == "exp")
    assert isinstance(item.text_edit, types.TextEdit)
    assert place.words(item.text_edit.range) == "exp"


async def test_semantic_tokens(place: Place) -> None:
    found = await place.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(place.identifier))
    assert found is not None
    line = character = 0
    words = []
    for at in range(0, len(found.data), 5):
        rows, columns, length = found.data[at : at + 3]
        character = columns if rows else character + columns
        line += rows
        start, end = types.Position(line, character), types.Position(line, character + length)
        words.append(place.words(types.Range(start, end)))
    assert words.count("größe") == 3 and "leader" in words and "ctx" in words


async def test_edits_are_applied_in_the_clients_encoding(place: Place) -> None:
    start = place.position("größe = 1")
    end = place.position(" = 1")
    change = types.TextDocumentContentChangePartial(range=types.Range(start, end), text="𝛼größe")
    version = types.VersionedTextDocumentIdentifier(2, place.uri)
    place.client.text_document_did_change(types.DidChangeTextDocumentParams(version, [change]))
    place.set(place.text.replace("größe = 1", "𝛼größe = 1"))
    params = types.HoverParams(place.identifier, place.position("größe = 1"))
    hover = await place.client.text_document_hover_async(params)
    assert hover is not None and hover.range is not None
    assert place.words(hover.range) == "𝛼größe"


async def test_code_action_fixes(client: LanguageClient) -> None:
    place = Place(client, "fix.ph", "kernel k(X: tensor<f32>[N], BAR: tensor<i32>[2]) {\n  grid_barrier(BAR)\n}\n")
    at = place.position("grid_barrier")
    params = types.CodeActionParams(place.identifier, types.Range(at, at), types.CodeActionContext([]))
    found = await client.text_document_code_action_async(params)
    fixes = [a for a in found or [] if isinstance(a, types.CodeAction) and a.edit]
    assert fixes and "persistent" in fixes[0].title
    place.close()


async def test_diagnostics_are_pushed_or_pulled_never_both(place: Place) -> None:
    await place.diagnostics()
    pulls = place.client.editor != "emacs"  # type: ignore[attr-defined]
    assert (place.uri in place.client.diagnostics) is not pulls


async def test_an_unknown_file_gets_an_empty_answer(client: LanguageClient) -> None:
    nowhere = types.TextDocumentIdentifier("file:///nowhere/at/all.ph")
    assert await client.text_document_hover_async(types.HoverParams(nowhere, types.Position(3, 3))) is None
