"""A context that holds a part of the card's multiprocessors: the grid is sized by that part, and the barrier holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# In a process of its own: the current context is a thread's state that other tests rely on.
PROGRAM = """
import numpy
import torch
from cuda.bindings import driver
from phobos.runtime.kernel import kernel

def do(answer):
    assert int(answer[0]) == 0, answer[0]
    return answer[1:]

STAGED = kernel('''
@persistent
kernel staged(X: tensor<f32>[N], BAR: tensor<i32>[2]) {
  for s in range(0, 3) {
    for t in range(ctx.block.x * 1024, N, ctx.blocks.x * 1024) {
      X[t :+ 1024] = X[t :+ 1024] * 0.5 + 1.0
    }
    grid_barrier(BAR)
  }
}
''')
x = torch.zeros(1 << 22, device="cuda")
whole = STAGED.plan(x)
torch.cuda.synchronize()
(device,) = do(driver.cuDeviceGet(0))
(all_of_them,) = do(driver.cuDeviceGetDevResource(device, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
groups, _, _ = do(driver.cuDevSmResourceSplitByCount(1, all_of_them, 0, 16))
(description,) = do(driver.cuDevResourceGenerateDesc([groups[0]], 1))
(green,) = do(driver.cuGreenCtxCreate(description, device, driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM))
(context,) = do(driver.cuCtxFromGreenCtx(green))
do(driver.cuCtxSetCurrent(context))
part = STAGED.plan(x, timeout=10.0)
mine = groups[0].sm.smCount
print(all_of_them.sm.smCount, whole.resident, mine, part.resident)
STAGED(x, timeout=10.0)
do(driver.cuCtxSynchronize())
host = numpy.zeros(x.numel(), numpy.float32)
do(driver.cuMemcpyDtoH(host.ctypes.data, x.data_ptr(), host.nbytes))
assert (host == 1.75).all()
"""


def test_the_grid_is_sized_by_the_part_of_the_card_that_the_context_holds() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("cuda.bindings.driver")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    multiprocessors, resident, mine, there = map(int, done.stdout.split())
    assert mine < multiprocessors
    assert resident == there // mine * multiprocessors and there % mine == 0
