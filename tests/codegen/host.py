"""The emitted text run on this machine's processor: compiled as C++ with a fiber for every GPU thread.

It shows what the text computes, and whether threads wait where they must, without a GPU. It knows nothing of
warps running together, of caches or of machine code; that is what the tests on a card are for.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy

from phobos.codegen.device import PIECES
from phobos.codegen.emitted import Emitted
from phobos.semantics.schedules import Work

COMPILER = shutil.which("g++")
HEADER = Path(__file__).with_name("host.h")
MACHINERY = Path(__file__).with_name("host.cpp")
_CACHE = Path(tempfile.gettempdir()) / "phobos-host-kernels"

HOST_PIECES = {
    "ph_f16_to": """\
inline float ph_f16_to(ph_f16 x) { _Float16 h; memcpy(&h, &x.bits, 2); return (float)h; }
""",
    "ph_to_f16": """\
template <typename T> ph_f16 ph_to_f16(T x) {
  _Float16 h = (_Float16)x;
  ph_f16 y;
  memcpy(&y.bits, &h, 2);
  return y;
}
""",
    "ph_to_bf16": """\
inline ph_bf16 ph_to_bf16(float x) {
  const unsigned b = __float_as_uint(x);
  ph_bf16 y;
  y.bits = x != x ? 0x7fff : (unsigned short)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
  return y;
}
""",
    "ph_exp": """\
inline float ph_exp(float x) { return std::exp(x); }
inline double ph_exp(double x) { return std::exp(x); }
""",
    "ph_larger": """\
struct ph_larger {
  template <typename T> T operator()(T a, T b) const { return a != a || a > b ? a : b; }
};
""",
    "ph_sqrt": """\
inline float ph_sqrt(float x) { return std::sqrt(x); }
inline double ph_sqrt(double x) { return std::sqrt(x); }
""",
    "ph_exp_of": "inline float ph_exp_of(float a, float b, float c) { return std::exp(std::fma(a, b, c)); }\n",
    "ph_group_after": "inline void ph_group_after(int group) { group_after(group); }\n",
    "ph_group_before": "inline void ph_group_before(int group) { group_before(group); }\n",
    "ph_there": "template <int N> void ph_there(float (&)[N]) {}\n",
    "ph_uniform": "inline int ph_uniform(int x) { return x; }\n",
    "ph_anew": "inline int ph_anew(int x) { return x; }\n",
    "ph_shared_address": "inline unsigned ph_shared_address(const void* p) { return offset_in_cta(p); }\n",
    "ph_pack_f16": """\
inline unsigned ph_pack_f16(float low, float high) { return half_bits(low) | half_bits(high) << 16; }
""",
    "ph_pack_bf16": """\
inline unsigned ph_pack_bf16(float low, float high) { return brain_bits(low) | brain_bits(high) << 16; }
""",
    "ph_others_see": "inline void ph_others_see() {}\n",
    "ph_others_see_all": "inline void ph_others_see_all() {}\n",
    "ph_group_begin": "inline void ph_group_begin() {}\n",
    "ph_group_end": "inline void ph_group_end() { group_end(); }\n",
    "ph_group_wait": "template <int N> void ph_group_wait() { group_wait(N); }\n",
    "ph_map": "",
    "ph_bulk_open": "inline void ph_bulk_open(unsigned long long* p, unsigned count) { bulk_open(p, count); }\n",
    "ph_bulk_done": "inline void ph_bulk_done(unsigned long long* p) { bulk_done(p); }\n",
    "ph_bulk_close": "inline void ph_bulk_close(unsigned long long* p) { bulk_close(p); }\n",
    "ph_bulk_expect": "inline void ph_bulk_expect(unsigned long long* p, unsigned n) { bulk_expect(p, n); }\n",
    "ph_bulk_copy": """\
inline void ph_bulk_copy(void* to, const ph_map& map, long long row, long long column, unsigned long long* place) {
  bulk_order(to, map, ph_coordinate(row), ph_coordinate(column), place);
}
""",
    "ph_bulk_wait": "inline void ph_bulk_wait(unsigned long long* p, unsigned parity) { bulk_wait(p, parity); }\n",
    "ph_fragment_4": """\
template <typename T> void ph_fragment_4(unsigned* x, const T* row) { fragment<4>(x, row, false); }
""",
    "ph_fragment_4_turned": """\
template <typename T> void ph_fragment_4_turned(unsigned* x, const T* row) { fragment<4>(x, row, true); }
""",
    "ph_fragment_2": """\
template <typename T> void ph_fragment_2(unsigned* x, const T* row) { fragment<2>(x, row, false); }
""",
    "ph_fragment_2_turned": """\
template <typename T> void ph_fragment_2_turned(unsigned* x, const T* row) { fragment<2>(x, row, true); }
""",
    "ph_multiply_f16": """\
inline void ph_multiply_f16(float* upper, float* lower, const unsigned (&a)[4], const unsigned (&b)[2]) {
  multiply(upper, lower, a, b, half_value);
}
""",
    "ph_multiply_bf16": """\
inline void ph_multiply_bf16(float* upper, float* lower, const unsigned (&a)[4], const unsigned (&b)[2]) {
  multiply(upper, lower, a, b, brain_value);
}
""",
    "ph_apart": "inline long long ph_apart(long long n) { return n; }\n",
    "ph_copy_async": """\
template <int N, typename T> void ph_copy_async(T* to, const T* from, bool inside) {
  copy_order(to, from, N * sizeof(T), inside);
}
""",
    "ph_copies_end": "inline void ph_copies_end() { copies_end(); }\n",
    "ph_copies_wait": "template <int N> void ph_copies_wait() { copies_wait(N); }\n",
    "ph_peek_long": """\
inline unsigned long long ph_peek_long(const unsigned long long* p) {
  yield_();
  return *(volatile const unsigned long long*)p;
}
""",
    "ph_put_long": "inline void ph_put_long(unsigned long long* p, unsigned long long x) { yield_(); *p = x; }\n",
    "ph_swap_long": """\
inline unsigned long long ph_swap_long(unsigned long long* p, unsigned long long expected, unsigned long long x) {
  yield_();
  unsigned long long old = *p;
  if (old == expected) *p = x;
  return old;
}
""",
    "ph_count_long": "inline unsigned long long ph_count_long(unsigned long long* p) { return (*p)++; }\n",
    "ph_in_order": "inline void ph_in_order() {}\n",
    "ph_now": "inline unsigned long long ph_now() { static unsigned long long t; return t += 1000000; }\n",
    "ph_multiprocessor": "inline unsigned ph_multiprocessor() { return 0; }\n",
    "ph_peek": "inline unsigned ph_peek(const unsigned* p) { yield_(); return *(volatile const unsigned*)p; }\n",
    "ph_set_stop": "inline unsigned ph_set_stop(unsigned* word) { unsigned was = *word; *word |= 1; return was; }\n",
    "ph_arrive": "inline unsigned ph_arrive(unsigned* p, unsigned n) { unsigned was = *p; *p += n; return was; }\n",
    "ph_atomic_add": "inline int ph_atomic_add(int* p, int v) { yield_(); int old = *p; *p += v; return old; }\n",
    "ph_atomic_cas": """\
inline int ph_atomic_cas(int* p, int expected, int v) {
  yield_();
  int old = *p;
  if (old == expected) *p = v;
  return old;
}
""",
}


_GROUP = re.compile(
    r"__device__ __forceinline__ void (ph_multiply_(b?f16)_64x(\d+)(_held)?(_turned)?)\(.*?\n}\n", re.DOTALL
)


def _group(found: re.Match[str]) -> str:
    """A product of warpgroups, for the host."""
    name, dtype, columns, held, turned = found.groups()
    left, given = ("const unsigned (&a)[4]", "a, 0") if held else ("unsigned long long a", "nullptr, a")
    reading = "half_value" if dtype == "f16" else "brain_value"
    return (
        f"inline void {name}(float* upper, float* lower, {left}, unsigned long long b) {{\n"
        f"  group_tell(upper, lower, {given}, b, {columns}, {'true' if turned else 'false'}, {reading});\n}}\n"
    )


class Map(ctypes.Structure):
    """What the host takes for a tensor map."""

    _fields_ = (("words", ctypes.c_ulonglong * 16),)


def map_of(pointer: int, shape: tuple[int, int], row_bytes: int, box: tuple[int, int]) -> Map:
    assert pointer % 16 == 0 and row_bytes % 16 == 0 and 0 not in shape
    return Map((ctypes.c_ulonglong * 16)(pointer, *shape, row_bytes, *box))


class Stuck(AssertionError):
    """The grid did not end."""


def host_text(emitted: Emitted) -> str:
    """The text as C++ for the host: assembly replaced, shared memory taken from the CTA."""
    text = emitted.text
    for name, own in HOST_PIECES.items():
        text = text.replace(PIECES[name], own)
    text = _GROUP.sub(_group, text)
    text = re.sub(
        r"(extern )?__shared__[^;]*shared\[\d*\];",
        "unsigned char* const shared = shared_of_cta();",
        text,
    )
    text = re.sub(r"^#pragma.*$|^\s*#pragma unroll.*$|^#line.*$", "", text, flags=re.M)
    assert "asm" not in re.sub(r"//.*", "", text), "assembly that the host does not know"
    names = [f"a{i}" for i in range(len(emitted.arguments))]
    declared = "\n".join(f"static {a.ctype} {n};" for a, n in zip(emitted.arguments, names, strict=True))
    taken = ", ".join(f"{a.ctype} {n}_" for a, n in zip(emitted.arguments, names, strict=True))
    kept = " ".join(f"{n} = {n}_;" for n in names)
    shared = emitted.dynamic_shared_bytes + emitted.static_shared_bytes
    return f"""#include "host.h"
{text}
{declared}
static void body() {{ {emitted.symbol}({", ".join(names)}); }}
EXPORTED long long run_kernel(
    unsigned gx, unsigned gy, unsigned gz, int order, long long limit{", " if taken else ""}{taken}) {{
  {kept}
  return run_grid(body, gx, gy, gz, {emitted.threads}, {shared}, order, limit);
}}
"""


def build(emitted: Emitted) -> ctypes.CDLL:
    return library(host_text(emitted), "-fno-strict-aliasing", "-fwrapv")


def library(text: str, *flags: str) -> ctypes.CDLL:
    """C++ that includes host.h, compiled once for all processes and runs, and loaded."""
    own = MACHINERY.read_text()
    under = [_compiled(own, ".o", "-O2", "-fPIC", "-c")]
    return ctypes.CDLL(str(_compiled(text, ".so", "-O1", *flags, "-shared", "-fPIC", under=under)))


def _compiled(text: str, ending: str, *flags: str, under: Sequence[Path] = ()) -> Path:
    assert COMPILER is not None
    whole = (text, HEADER.read_text(), *flags, *(path.name for path in under))
    key = hashlib.sha256("\0".join(whole).encode()).hexdigest()[:24]
    _CACHE.mkdir(exist_ok=True)
    kept = _CACHE / f"{key}{ending}"
    if not kept.exists():
        own = f"{key}.{os.getpid()}"  # another process may be at the same text
        source, made = _CACHE / f"{own}.cpp", _CACHE / f"{own}{ending}"
        source.write_text(text)
        words = [
            COMPILER, "-std=c++17", "-w", "-U_FORTIFY_SOURCE", "-fvisibility=hidden", f"-I{HEADER.parent}", *flags,
            "-o", made, source, *under,
        ]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[:3000]
        source.unlink()
        made.replace(kept)
    return kept


_SCALARS = {"float": ctypes.c_float, "double": ctypes.c_double, "long long": ctypes.c_longlong}


def run(
    emitted: Emitted,
    arrays: Mapping[str, numpy.ndarray],
    numbers: Mapping[str, float],
    grid: tuple[int, int, int],
    *,
    order: int = 0,
    timeout_ns: int = 0,
    limit: int = 2_000_000,
    work: Work | None = None,
    buffers: Mapping[str, numpy.ndarray] | None = None,
) -> bytes:
    """Run the kernel on `arrays` in place (as cells: f16 and bf16 as 16-bit arrays); gives the report's bytes.

    `work` says what is launched, where that is not the grid. `buffers` are those of an instrument, by its name.
    """
    library = build(emitted)
    report = (ctypes.c_ubyte * (64 + 4 * grid[0] * grid[1] * grid[2]))()
    ctypes.cast(report, ctypes.POINTER(ctypes.c_uint))[10] = grid[0] * grid[1] * grid[2]
    word = ctypes.c_uint(0)
    roots = [root.grid for phase in work.phases for root in phase.roots] if work else []
    launched = work.launched if work else grid
    arguments: list[object] = []
    for argument in emitted.arguments:
        match argument.kind:
            case "tensor":
                array = arrays[argument.name]
                assert array.flags.c_contiguous
                arguments.append(ctypes.c_void_p(array.ctypes.data))
            case "scalar" | "dim" | "pitch":
                kind = _SCALARS[argument.ctype]
                number = numbers[argument.name]
                arguments.append(kind(int(number) if kind is ctypes.c_longlong else float(number)))
            case "grid":
                root, axis = argument.name.split()
                arguments.append(ctypes.c_uint(roots[int(root)]["xyz".index(axis)]))
            case "map":
                array = arrays[argument.name]
                rows, columns = array.shape
                arguments.append(map_of(array.ctypes.data, (rows, columns), array.strides[0], argument.box))
            case "word":
                named = [s.subject for s in emitted.sites if s.what == "barrier"]
                if named:
                    arguments.append(ctypes.c_void_p(arrays[named[0]].ctypes.data))
                else:
                    arguments.append(ctypes.byref(word))
            case "report":
                arguments.append(ctypes.byref(report))
            case "groups":
                groups = (ctypes.c_uint * (32 * (grid[0] // 64 + 1)))()
                arguments.append(ctypes.byref(groups))
            case "timeout":
                arguments.append(ctypes.c_ulonglong(timeout_ns))
            case "buffer":
                assert buffers is not None
                arguments.append(ctypes.c_void_p(buffers[argument.name].ctypes.data))
    run_kernel = library.run_kernel
    run_kernel.restype = ctypes.c_longlong
    extents = [ctypes.c_uint(n) for n in launched]
    rounds = run_kernel(*extents, ctypes.c_int(order), ctypes.c_longlong(limit), *arguments)
    if rounds < 0:
        raise Stuck(f"{emitted.symbol} did not end on the host")
    return bytes(report)
