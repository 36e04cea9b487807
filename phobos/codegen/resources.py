"""What a compiled kernel uses, read from its cubin: registers, local bytes, static shared bytes.

A cubin is an ELF file. `.nv.info` holds (symbol, number) pairs for the whole module: the register count and
the stack frame of each function; `.nv.shared.<kernel>` is as long as the kernel's static shared memory. No GPU
and no driver is asked, so an editor and a CI job see the numbers that the card will use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from phobos.value import value

REGISTER_COUNT, FRAME_SIZE = 0x2F, 0x11  # attributes of .nv.info
RESERVED_BYTES = 1024
NUMBER_PAIR = 0x04  # their format: a size, then that many bytes


@value
class Resources:
    """Registers and local bytes (the stack frame, where spills go) are per thread, shared bytes per CTA."""

    registers: int
    local_bytes: int
    static_shared_bytes: int


@value
class Section:
    """A section of an ELF file: its first byte and its length in bytes."""

    name: str
    offset: int
    size: int
    info: int


def resources_of(cubin: bytes, kernel: str) -> Resources:
    """The resources of the function `kernel` (its name in the module). Raises ValueError for what is no such cubin."""
    sections = {section.name: section for section in _sections(cubin)}
    if f".text.{kernel}" not in sections:
        raise ValueError(f"no function `{kernel}` in this cubin")
    symbols = _symbols(cubin, sections)
    registers = frame = 0
    info = sections.get(".nv.info")
    if info is not None:
        for attribute, symbol, number in _pairs(cubin[info.offset : info.offset + info.size]):
            if symbols.get(symbol) == kernel:
                if attribute == REGISTER_COUNT:
                    registers = number
                elif attribute == FRAME_SIZE:
                    frame = number
    return Resources(registers, frame, _shared_bytes(cubin, sections, kernel))


def _shared_bytes(cubin: bytes, sections: dict[str, Section], kernel: str) -> int:
    """The kernel's own: since Hopper the section begins with what the system reserves, and a symbol says so."""
    shared = sections.get(f".nv.shared.{kernel}")
    if shared is None:
        return 0
    reserved = RESERVED_BYTES if ".nv.reservedSmem.offset0" in _symbols(cubin, sections).values() else 0
    return shared.size - reserved


def _sections(cubin: bytes) -> Iterator[Section]:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * size) for i in range(count)]
    strings = headers[names][4]
    for name, _, _, _, offset, length, _, info, _, _ in headers:
        yield Section(_string(cubin, strings + name), offset, length, info)


def _symbols(cubin: bytes, sections: dict[str, Section]) -> dict[int, str]:
    table, strings = sections[".symtab"], sections[".strtab"]
    return {
        i: _string(cubin, strings.offset + struct.unpack_from("<I", cubin, table.offset + i * 24)[0])
        for i in range(table.size // 24)
    }


def _pairs(info: bytes) -> Iterator[tuple[int, int, int]]:
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == NUMBER_PAIR:
            if size == 8:
                yield (attribute, *struct.unpack_from("<II", info, at))
            at += size


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
