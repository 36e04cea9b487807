"""The canonical layout, by example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phobos.syntax.format import FormatError, format_range, format_text
from tests.syntax.trees import nodes_of, problems

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.ph"))

# Statements as written and as laid out, in a kernel.
STATEMENTS = {
    "let x:tile< f32 >[4,N]=a+b": "let x: tile<f32>[4, N] = a + b",
    "x=- y": "x = -y",
    "x=a- -b": "x = a - -b",
    "x = ! ( a&&b )||~c": "x = !(a && b) || ~c",
    "f (x , y)": "f(x, y)",
    "X [ p*64:+64 ]=1.0": "X[p * 64 :+ 64] = 1.0",
    "x = A[ 1 : 2, i:j ]": "x = A[1:2, i:j]",
    "x = A[a+1:b, f(x):y]": "x = A[a + 1 : b, f(x) : y]",
    "x = A[ : , a+1 : , : b+1, :3 ]": "x = A[:, a + 1:, :b + 1, :3]",
    "x = ctx . block . x": "x = ctx.block.x",
    "x = 8 . x + 1.5 . x": "x = 8 .x + 1.5 .x",
    "x+=1;y  -=2 ;": "x += 1\n  y -= 2",
    "let y = a\n- b": "let y = a\n  -b",
    "for  <unroll 4>i  in range( 0,n , 2 ){f(i)}": "for<unroll 4> i in range(0, n, 2) {\n    f(i)\n  }",
    "while(x){ }": "while (x) {}",
    "if a{b=1}else if c{}else{ d=2 }": "if a {\n    b = 1\n  } else if c {} else {\n    d = 2\n  }",
    "if a { } else\n{ }": "if a {} else {}",
    "if a { ; }": "if a {}",
    "if a { ;; b = 1 ; }": "if a {\n    b = 1\n  }",
    "if a { ; // why\n }": "if a {  // why\n  }",
    "return(x)": "return (x)",
    "x =\n    a +\n  b": "x = a + b",
    "f(a,\n\n  b)": "f(a, b)",
    "x = 1   // why": "x = 1  // why",
    "x = 1 // why   ": "x = 1  // why",
    "//why\nx = 1": "//why\n  x = 1",
    "x = a + // first\n  b": "x = a +  // first\n      b",
    "x = f(a, // first\n // second\n  b)": "x = f(a,  // first\n      // second\n      b)",
    "if a { // when\nb = 1\n// end\n}": "if a {  // when\n    b = 1\n    // end\n  }",
    "if a {\n// nothing\n}": "if a {\n    // nothing\n  }",
    "if a { } else // c\n{ b = 1 }": "if a {} else  // c\n      {\n    b = 1\n  }",
    "\n\n\nx = 1\n\n\n\ny = 2\n\n\n": "x = 1\n\n  y = 2",
    "if a {\n\nb = 1\n\n}\n\n// c\n\ny = 1": "if a {\n    b = 1\n  }\n\n  // c\n\n  y = 1",
    "x = 0x1F + 1_000 + 7.": "x = 0x1F + 1_000 + 7.",
    "let e\u0301 = \u05d0": "let e\u0301 = \u05d0",
}


@pytest.mark.parametrize("lines", STATEMENTS)
def test_statements(lines: str) -> None:
    expected = "kernel k() {\n  " + STATEMENTS[lines] + "\n}\n"
    assert format_text("kernel k() {\n" + lines + "\n}") == expected
    assert format_text(expected) == expected


FILES = {
    "": "",
    "\n \n": "",
    "// a": "// a\n",
    "kernel k(){}": "kernel k() {}\n",
    "kernel  k ( X:tensor<f32>[ N,4 ],y :f32 ) { }": "kernel k(X: tensor<f32>[N, 4], y: f32) {}\n",
    "fn f(x:f32)->f32{return x}": "fn f(x: f32) -> f32 {\n  return x\n}\n",
    "@persistent@launch( 256,2 )kernel k(){}": "@persistent\n@launch(256, 2)\nkernel k() {}\n",
    "@autotune(T in[16,32],U in [])\n\n\nkernel k(){}": "@autotune(T in [16, 32], U in [])\nkernel k() {}\n",
    "@aligned(N=T)// why\nkernel k(){}": "@aligned(N = T)  // why\nkernel k() {}\n",
    "@a\n// why\n@b\nkernel k(){}": "@a\n// why\n@b\nkernel k() {}\n",
    "kernel a(){}\nkernel b(){}": "kernel a() {}\n\nkernel b() {}\n",
    "kernel a(){} // a\n// b\nkernel b(){}": "kernel a() {}  // a\n\n// b\nkernel b() {}\n",
    "kernel a(){}\n// of a\n\n// of b\nkernel b(){}": "kernel a() {}\n// of a\n\n// of b\nkernel b() {}\n",
    "// head\n\n\n\n// of b\nkernel b(){}": "// head\n\n// of b\nkernel b() {}\n",
    "kernel a(){};;\n;kernel b(){}": "kernel a() {}\n\nkernel b() {}\n",
    "\ufeff\n\nkernel k(){}": "\ufeffkernel k() {}\n",
    "kernel k(){\r\nx = 1\r\n}": "kernel k() {\r\n  x = 1\r\n}\r\n",
    "kernel k(){\rx = 1\r}": "kernel k() {\r  x = 1\r}\r",
    "kernel k(){\tx = 1\x0c}\t": "kernel k() {\n  x = 1\n}\n",
}


@pytest.mark.parametrize("text", FILES)
def test_files(text: str) -> None:
    assert format_text(text) == FILES[text]
    assert format_text(FILES[text]) == FILES[text]


LONG = """\
kernel k(aaaaaaaaaa: tensor<f32>[N], bbbbbbbbbb: tensor<f32>[N],
    cccccccccc: tensor<f32>[N]) {
  let x = where(aaaaaaaaaa < bbbbbbbbbb, cccccccccc,
      ddddddddddddd) + eeeeeeeeee
  let y = aaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbb +
      cccccccccccccccccccc
}
"""


def test_long_lines_break_after_commas_and_operators_as_far_out_as_they_can() -> None:
    assert format_text(LONG, 66) == LONG
    joined = format_text(LONG, 200)
    assert joined.count("\n") == 4
    assert format_text(joined, 66) == LONG


def test_a_word_longer_than_the_line_stays_whole() -> None:
    text = "kernel k() {\n  x = " + "a" * 50 + "\n}\n"
    assert format_text(text, 20) == "kernel k() {\n  x =\n      " + "a" * 50 + "\n}\n"


def test_a_file_with_mistakes_is_refused_by_its_first() -> None:
    with pytest.raises(FormatError) as caught:
        format_text("// é\r\nkernel k() {\r\n  é = 3 4\r\n  foo(\r\n}")
    error = caught.value
    assert (error.line, error.column, error.problem.code) == (3, 9, "PH001")
    assert str(error) == "3:9: PH001 expected an operator or the end of the statement, found `4`"


def edited(text: str, start: int, end: int) -> str:
    for edit in reversed(format_range(text, start, end)):
        text = text[: edit.start] + edit.content + text[edit.end :]
    return text


def test_a_range_changes_the_lines_it_touches() -> None:
    text = "kernel k(){\nx=1\n y=2\n   z=3\n}"
    assert edited(text, text.index("y"), text.index("y") + 1) == "kernel k(){\nx=1\n  y = 2\n   z=3\n}"
    assert edited(text, text.index("y") + 1, text.index("z") + 1) == "kernel k(){\nx=1\n  y = 2\n  z = 3\n}"
    assert edited(text, 0, len(text)) == format_text(text)
    assert format_range(format_text(text), 0, 100) == []


def test_a_range_of_a_file_with_mistakes_is_refused() -> None:
    with pytest.raises(FormatError):
        format_range("kernel k() {\nx=1\nfoo(\n}", 0, 5)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_our_own_kernels_are_laid_out(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text


def _kernels_of_the_project() -> dict[str, str]:
    """Every `.ph` text we have: files, and the fenced ones of Markdown suites and rule pages."""
    root = Path(__file__).resolve().parents[2]
    found = {}
    for path in sorted([*root.glob("tests/**/*.ph"), *root.glob("examples/*.ph")]):
        found[str(path.relative_to(root))] = path.read_text(encoding="utf-8", errors="replace")
    pages = [*root.glob("tests/**/*.md"), *root.glob("phobos/check/rules/*.py"), *root.glob("docs/**/*.md")]
    for path in sorted(pages):
        text = path.read_text(encoding="utf-8")
        for number, block in enumerate(re.findall(r"^```ph\b[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
            found[f"{path.relative_to(root)}#{number}"] = block
    return found


def test_every_kernel_of_the_project_keeps_its_meaning() -> None:
    formatted = 0
    for name, text in _kernels_of_the_project().items():
        if problems(text):
            with pytest.raises(FormatError):
                format_text(text)
            continue
        result = format_text(text)
        assert nodes_of(result) == nodes_of(text), name
        assert format_text(result) == result, name
        formatted += 1
    assert formatted >= 300
