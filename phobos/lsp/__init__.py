"""The language server. `main` is all that the rest of the project needs; nothing here is imported before it runs."""

from __future__ import annotations

import sys

_EXPLANATION = """\
`phobos lsp` is a language server: editors start it and talk to it over its standard input and output.
There is nothing to type here, so it has stopped instead of waiting for ever.

  VS Code    install the extension in editors/vscode; it starts the server by itself
  Neovim     add editors/nvim to your plugins (0.11 and later: `vim.lsp.enable('phobos')`)
  others     tell your editor to run `phobos lsp --stdio` for files named *.ph
  by hand    `phobos lsp --tcp 127.0.0.1:2087` waits for one client on that port

To check files from a terminal use `phobos check`.
"""


def main(*, stdio: bool = False, tcp: str | None = None, log_file: str | None = None, verbose: bool = False) -> int:
    """Serve until the client leaves. `tcp` is `HOST:PORT`; otherwise stdio. Returns the exit code.

    On a terminal there is no client: say so and return 2.
    """
    if stdio and tcp is not None:
        print("phobos lsp: --stdio and --tcp exclude each other", file=sys.stderr)
        return 2
    address = None
    if tcp is not None:
        address = _address(tcp)
        if address is None:
            print(f"phobos lsp: --tcp takes HOST:PORT, for example 127.0.0.1:2087, not {tcp!r}", file=sys.stderr)
            return 2
        if not _loopback(address[0]):
            print(
                f"phobos lsp: --tcp listens on the loopback interface alone (127.0.0.1, [::1], localhost), not on "
                f"{address[0]}: whoever connects may read files and run kernels. From another machine use a tunnel, "
                f"for example `ssh -L {address[1]}:127.0.0.1:{address[1]} HOST`",
                file=sys.stderr,
            )
            return 2
    elif sys.stdin is None or sys.stdin.isatty():
        print(_EXPLANATION, end="", file=sys.stderr)
        return 2

    from phobos.lsp.serve import serve

    return serve(address, log_file, verbose)


def _address(text: str) -> tuple[str, int] | None:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        return None
    return host.strip("[]") or "127.0.0.1", int(port)


def _loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
