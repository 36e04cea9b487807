"""Serve editors: the language server, over standard input and output or for one client on a port.

Editors start it by themselves; `phobos check` is the command for terminals and CI.
"""

from __future__ import annotations

import argparse

EXAMPLE = """
phobos lsp --stdio                           what an editor starts
phobos lsp --tcp 127.0.0.1:2087              wait for one client on a port
phobos lsp --stdio --log-file phobos.log     keep a log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="talk over standard input and output (the default)")
    way.add_argument("--tcp", metavar="HOST:PORT", help="listen there for one client; port 0 takes a free one")
    parser.add_argument("--log-file", metavar="FILE", help="write a log there instead of to standard error")
    parser.add_argument("--verbose", action="store_true", help="log more")


def run(arguments: argparse.Namespace) -> int:
    from phobos.lsp import main

    return main(
        stdio=arguments.stdio, tcp=arguments.tcp, log_file=arguments.log_file, verbose=arguments.verbose
    )
