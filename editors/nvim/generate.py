"""Writes syntax/phobos.vim from the project's own tables. A test compares the file with what this would write."""

from pathlib import Path

from phobos.language import attributes, builtins, scalars

FILE = Path(__file__).resolve().parent / "syntax" / "phobos.vim"


def listed(group: str, names: list[str]) -> str:
    lines, line = [], f"syn keyword {group}"
    for name in names:
        if len(line) + len(name) > 110:
            lines.append(line)
            line = f"syn keyword {group}"
        line += f" {name}"
    return "\n".join([*lines, line])


def text() -> str:
    core = [name for name in builtins.CORE if name not in scalars.SCALARS and name != "grid_barrier"]
    known = "\\|".join(attributes.ATTRIBUTES)
    return f'''" Syntax of Phobos kernels. Written by generate.py from the tables of the project.
if exists("b:current_syntax")
  finish
endif

syn keyword phobosDeclaration kernel fn
syn keyword phobosBinding let var
syn keyword phobosConditional if else
syn keyword phobosRepeat for while in break continue
syn keyword phobosReturn return
syn keyword phobosBoolean true false
syn keyword phobosStructure tensor tile
{listed("phobosType", list(scalars.SCALARS))}
syn keyword phobosBarrier grid_barrier
{listed("phobosBuiltin", [*core, "range"])}

syn match phobosPlace "\\<ctx\\(\\.\\w\\+\\)\\{{1,2}}"
syn match phobosAttribute "@\\({known}\\)\\>"
syn match phobosUnknownAttribute "@\\({known}\\)\\@!\\w\\+"
syn match phobosNumber "\\<\\d[0-9_]*\\>"
syn match phobosNumber "\\<0[xX][0-9A-Fa-f_]\\+\\>"
syn match phobosFloat "\\<\\d[0-9_]*\\.[0-9_]*\\([eE][+-]\\?\\d\\+\\)\\?"
syn match phobosFloat "\\<\\d[0-9_]*[eE][+-]\\?\\d\\+"
syn match phobosSpan ":+"
syn match phobosName "\\(\\<\\(kernel\\|fn\\)\\s\\+\\)\\@<=\\w\\+"

syn match phobosComment "//.*$" contains=phobosHeader,phobosDirective,@Spell
syn match phobosHeader "//\\s*\\zs\\(run\\|expect\\):.*$" contained contains=phobosHeaderWord
syn match phobosHeaderWord "\\<\\(run\\|expect\\):" contained
syn match phobosDirective "//\\s*\\zsphobos:\\s*\\(ignore-file\\|ignore\\|assume\\)\\>.*$" contained

syn region phobosBlock start="{{" end="}}" transparent fold

hi def link phobosDeclaration Keyword
hi def link phobosBinding Keyword
hi def link phobosConditional Conditional
hi def link phobosRepeat Repeat
hi def link phobosReturn Keyword
hi def link phobosBoolean Boolean
hi def link phobosStructure Structure
hi def link phobosType Type
hi def link phobosBarrier Special
hi def link phobosBuiltin Function
hi def link phobosPlace Identifier
hi def link phobosAttribute PreProc
hi def link phobosUnknownAttribute Error
hi def link phobosNumber Number
hi def link phobosFloat Float
hi def link phobosSpan Operator
hi def link phobosName Function
hi def link phobosComment Comment
hi def link phobosHeader String
hi def link phobosHeaderWord SpecialComment
hi def link phobosDirective SpecialComment

let b:current_syntax = "phobos"
'''


if __name__ == "__main__":
    FILE.write_text(text())
