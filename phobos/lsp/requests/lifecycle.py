"""`initialize`, `initialized`, `shutdown` and settings: from a stranger to a session."""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import Future
from typing import Any

from lsprotocol import types

from phobos.lsp.client import client_of, settings_of
from phobos.lsp.requests import diagnostics
from phobos.lsp.server import Server
from phobos.lsp.uris import key_of, uri_of
from phobos.syntax import pieces
from phobos.syntax.lines import Encoding
from phobos.value import replace

log = logging.getLogger("phobos.lsp")

PREPARE_SECONDS = 0.5

ENCODINGS: dict[str, Encoding] = {
    types.PositionEncodingKind.Utf8.value: "utf-8",
    types.PositionEncodingKind.Utf16.value: "utf-16",
    types.PositionEncodingKind.Utf32.value: "utf-32",
}


def register(server: Server) -> None:
    session = server.session

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        session.client = client_of(params.capabilities)
        encoding = server.workspace.position_encoding  # as the library negotiated it: the client's first that we know
        session.encoding = ENCODINGS[getattr(encoding, "value", encoding) or "utf-16"]
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [params.root_uri]
        if not folders and params.root_path:
            folders = [uri_of(params.root_path)]
        session.folders = {key_of(uri): uri for uri in folders}
        options = params.initialization_options
        read_settings(server, options.get("phobos", options) if isinstance(options, dict) else None)
        if session.client.pulls:
            diagnostics.register(server)
        server.initialized = True

    @server.serve(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        server.spawn(server.publisher.watch())
        server.spawn(_watch_files(server) if session.client.watches_files else server.publisher.sweep())
        if session.client.configuration:
            fetch_settings(server)
        server.sweeper.soon()
        server.spawn(prepare())

    @server.serve(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: types.DidChangeConfigurationParams) -> None:
        if session.client.configuration:
            fetch_settings(server)
        elif isinstance(params.settings, dict):
            take_settings(server, params.settings.get("phobos", params.settings))

    @server.serve(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            session.folders.pop(key_of(folder.uri), None)
        for folder in params.event.added:
            session.folders[key_of(folder.uri)] = folder.uri
        server.publisher.everything()


async def prepare() -> None:
    """What the first half-typed statement needs is loaded before somebody types it, behind what a start asks for."""
    await asyncio.sleep(PREPARE_SECONDS)
    pieces.prepare()


def fetch_settings(server: Server) -> None:
    """Ask the client for its `phobos` section; a client that cannot say leaves what there is.

    The answer is taken as soon as it is read, so that what the client asks behind it finds the new settings.
    """

    def answered(reply: Future[Any]) -> None:
        error = None if reply.cancelled() else reply.exception()
        if error is not None:  # the client's error; the settings stay
            log.warning("the client does not tell its settings: %s", error)
        elif not reply.cancelled() and (sections := reply.result()) and sections[0] is not None:
            take_settings(server, sections[0])

    item = types.ConfigurationItem(section="phobos")
    asked = server.protocol.send_request(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=[item]))
    asked.add_done_callback(answered)


def take_settings(server: Server, section: object) -> None:
    before = repr(server.session.settings)
    read_settings(server, section)
    if repr(server.session.settings) != before:
        server.publisher.everything()


def read_settings(server: Server, section: object) -> None:
    settings, complaints = settings_of(section)
    if settings.configuration is not None:  # a path from the first folder, wherever the server was started
        folder = next(server.session.folder_paths(), os.getcwd())
        file = os.path.join(folder, os.path.expanduser(settings.configuration))
        settings = replace(settings, configuration=os.path.normpath(file))
    server.session.settings = settings
    for complaint in complaints:
        log.warning("%s", complaint)
        server.show(complaint, types.MessageType.Warning)


async def _watch_files(server: Server) -> None:
    watchers = [types.FileSystemWatcher(f"**/{name}") for name in ("phobos.toml", "pyproject.toml", "*.ph")]
    registration = types.Registration(
        id="phobos-files",
        method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
        register_options=types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers),
    )
    try:
        await server.ask(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams([registration]))
    except Exception as error:
        log.warning("the client does not watch files: %s", error)
        await server.publisher.sweep()
