"""`textDocument/signatureHelp`."""

from __future__ import annotations

from lsprotocol import types

from phobos.ide.signature import ParameterHelp, Signature, signature
from phobos.lsp.convert import converter, documentation
from phobos.lsp.server import Server


def register(server: Server) -> None:
    session = server.session
    options = types.SignatureHelpOptions(trigger_characters=["(", ","], retrigger_characters=[")"])

    @server.serve(types.TEXT_DOCUMENT_SIGNATURE_HELP, options)
    def answer(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        document = session.ready(params.text_document.uri)
        if document is None:
            return None
        to = converter(session, document)
        found = signature(session.analysed(document), to.offset(params.position))
        if found is None:
            return None
        format = session.client.signature_format
        return types.SignatureHelp(
            signatures=[
                types.SignatureInformation(
                    label=found.label,
                    documentation=documentation(found.documentation, format),
                    parameters=[
                        types.ParameterInformation(
                            _label(server, found, parameter),
                            documentation(parameter.documentation, format),
                        )
                        for parameter in found.parameters
                    ],
                )
            ],
            active_signature=0,
            active_parameter=found.active if found.active is not None else len(found.parameters),
        )


def _label(server: Server, found: Signature, parameter: ParameterHelp) -> str | tuple[int, int]:
    if not server.session.client.label_offsets:
        return found.label[parameter.start : parameter.end]
    return _utf16(found.label, parameter.start), _utf16(found.label, parameter.end)  # always UTF-16 in the protocol


def _utf16(text: str, offset: int) -> int:
    return len(text[:offset].encode("utf-16-le")) // 2
