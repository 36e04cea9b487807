"""Arrays from files and how large they may be: what is broken, no array or too much is refused in one line."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import phobos.runtime.given as given
from tests.command import phobos

KERNEL = "// run: Y=zeros\nkernel k(X: tensor<f32>[N], Y: tensor<f32>[N]) {\n  let i = ctx.block.x * 64\n" \
    "  Y[i :+ 64] = X[i :+ 64]\n}\n"  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ph").write_text(KERNEL)
    return tmp_path


def archive(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as held:
        for name, contents in members.items():
            held.writestr(name.replace("__", "."), contents)
    return out.getvalue()


def array(held: object) -> bytes:
    out = io.BytesIO()
    np.save(out, held)
    return out.getvalue()


GOOD = array(np.arange(8, dtype=np.float32))


@pytest.mark.parametrize(
    ("contents", "key", "said"),
    [
        (archive(a__npy=GOOD), "", "holds several arrays (a): write @it.npz:NAME"),
        (archive(a__npy=GOOD), ":b", "has no array `b` (it has a)"),
        (archive(), ":a", "has no array `a`"),
        (archive(a__npy=b"hello"), ":a", "`a` is no array"),
        (archive(read__txt=b"hello"), ":read.txt", "`read.txt` is no array"),
        (archive(a__npy=GOOD).replace(GOOD[-4:], b"\0\0\0\0", 1), ":a", "Bad CRC-32"),
        (archive(a__npy=GOOD[:-3]), ":a", "cannot be read as an array"),
        (archive(a__npy=array(np.array([None]))), ":a", "holds pickled objects"),
        (GOOD, ":a", "is one array, leave `:a` out"),
        (array(np.zeros((2, 4), np.float32)), "", "it.npz has shape (2, 4), the kernel declares rank 1"),
        (array(np.zeros(8, ">f4")), "", "in the other byte order"),
        (array(np.zeros(8, np.uint16)), "", "elements of type uint16"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_taken(folder: Path, contents: bytes, key: str, said: str) -> None:
    (folder / "it.npz").write_bytes(contents)
    done = phobos("run", "k.ph", "--device", "cpu", "--arg", f"X=@it.npz{key}")
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_does_not_fit_is_refused_before_any_of_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object) -> None:
        raise AssertionError("nothing may be made")

    monkeypatch.setattr(given, "memory_bytes", lambda: 5000)
    monkeypatch.setattr(given, "_filled", made)
    done = phobos("run", "k.ph", "--device", "cpu", "--arg", "X=ones", "--set", "N=1000")
    assert done.returncode == 2 and done.stderr.endswith(
        "tensor `X` of shape (1000,) would take 4,000 bytes, all of them 8,000; 5,000 are free here\n"
    )


@pytest.mark.parametrize(
    ("dtype", "text", "said"),
    [("i32", "0.5", "or a whole number"), ("f32", "much", "or a number"), ("u8", "-1", "which u8 cannot hold")],
)
def test_a_number_that_a_tensor_cannot_be_filled_with(folder: Path, dtype: str, text: str, said: str) -> None:
    (folder / "k.ph").write_text(KERNEL.replace("f32", dtype))
    done = phobos("run", "k.ph", "--device", "cpu", "--arg", f"X={text}", "--set", "N=10")
    assert done.returncode == 2 and said in done.stderr


def test_a_number_too_large_for_its_float_is_infinite_and_no_warning(folder: Path) -> None:
    (folder / "k.ph").write_text(KERNEL.replace("f32", "f16"))
    done = phobos("run", "k.ph", "--device", "cpu", "--arg", "X=1e6", "--set", "N=10")
    assert done.returncode == 0 and "max inf" in done.stdout and done.stderr == ""
