"""URIs of documents: one key for all spellings of one, and the path it means on this machine."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote, urlsplit

_DRIVE = re.compile(r"/([A-Za-z]):(?=/|$)")


def key_of(uri: str) -> str:
    """The same for `file:///C:/a.ph`, `file:///c%3A/a.ph` and `file:///c:/a.ph`."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # not a URI at all; still a key
        return uri
    path = _DRIVE.sub(lambda drive: f"/{drive[1].lower()}:", unquote(parts.path, errors="surrogateescape"), count=1)
    query = f"?{unquote(parts.query)}" if parts.query else ""
    fragment = f"#{unquote(parts.fragment)}" if parts.fragment else ""
    return f"{parts.scheme.lower()}://{unquote(parts.netloc).lower()}{path}{query}{fragment}"


def path_of(uri: str) -> str | None:
    """The file that a `file:` URI names, or None for what is not a file (`untitled:`, `git:`)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme.lower() != "file":
        return None
    path = unquote(parts.path, errors="surrogateescape")
    if "\0" in path:
        return None
    if parts.netloc and parts.netloc.lower() != "localhost":
        path = f"//{unquote(parts.netloc)}{path}"
    elif os.name == "nt":
        path = _DRIVE.sub(lambda drive: f"{drive[1].lower()}:", path, count=1)
    return os.path.normpath(path) if path else None


def uri_of(path: str) -> str:
    path = os.path.abspath(path)
    if os.name == "nt":
        path = "/" + path.replace("\\", "/")
    return "file://" + quote(path, safe="/:@!$&'()*+,;=~", errors="surrogateescape")
