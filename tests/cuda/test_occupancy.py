"""The arithmetic of resident CTAs against the driver, over registers, threads, static and dynamic shared memory."""

from __future__ import annotations

import pytest

from phobos.codegen import cards, nvrtc
from phobos.codegen.resources import resources_of
from phobos.runtime.cuda import driver

pytestmark = pytest.mark.gpu

LIVE = (1, 8, 16, 24, 31, 40, 48, 56, 64, 80, 96, 112, 128, 160, 200, 240)  # numbers that a thread holds at once
STATIC = (0, 4, 1000, 4096, 16384, 33000, 49152)
DYNAMIC = (0, 1, 128, 5000, 16384, 40000, 65536, 100000, 115712, 180000, 227 * 1024)
THREADS = (32, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640, 768, 896, 992, 1024, 33, 100)


def text(live: int, static: int) -> str:
    cells = static // 4
    shared = f"__shared__ int held[{cells}]; held[threadIdx.x % {cells}] = n; __syncthreads();" if static else ""
    read = f"+ held[(threadIdx.x + 1) % {cells}]" if static else ""
    return f"""
extern "C" __global__ void k{live}_{static}(float* x, int n) {{
  {shared}
  float a[{live}];
#pragma unroll
  for (int i = 0; i < {live}; ++i) a[i] = x[i * 1024 + threadIdx.x];
  for (int turn = 0; turn < n; ++turn) {{
#pragma unroll
    for (int i = 0; i < {live}; ++i) a[i] = a[i] * a[(i + 1) % {live}] + x[turn];
  }}
#pragma unroll
  for (int i = 0; i < {live}; ++i) x[i * 1024 + threadIdx.x] = a[i] {read};
}}
"""


def test_no_combination_differs_from_the_driver(still_usable: None) -> None:
    compared, registers_seen, differ = 0, set(), []
    with driver.on(0):
        arch = cards.arch_of(*driver.capability(0))
        limits = cards.LIMITS[arch]
        for live in LIVE:
            source = "".join(text(live, static) for static in STATIC)
            cubin = nvrtc.compile_text(source, "occupancy.cu", arch).cubin
            for static in STATIC:
                symbol = f"k{live}_{static}"
                function, needs = driver.load(cubin, symbol), resources_of(cubin, symbol)
                assert needs.registers == driver.function_attribute(function, driver.FUNCTION_REGISTERS)
                assert needs.static_shared_bytes == driver.function_attribute(function, driver.FUNCTION_STATIC_SHARED)
                registers_seen.add(needs.registers)
                most = limits.shared_bytes_per_cta - needs.static_shared_bytes
                for dynamic in DYNAMIC:
                    if dynamic > most:
                        continue
                    driver.allow_dynamic_shared(function, dynamic)
                    for threads in THREADS:
                        said = driver.ctas_per_multiprocessor(function, threads, dynamic)
                        ours = cards.occupancy(
                            limits, registers=needs.registers, threads=threads,
                            shared_bytes=needs.static_shared_bytes + dynamic,
                        ).ctas_per_sm  # fmt: skip
                        compared += 1
                        if said != ours:
                            differ.append((needs.registers, threads, needs.static_shared_bytes, dynamic, said, ours))
    print(f"{compared} combinations, {len(registers_seen)} register counts, {len(differ)} differ")
    assert compared >= 500 and len(registers_seen) >= 10
    assert differ == [], differ[:20]
