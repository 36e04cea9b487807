" Syntax of Phobos kernels. Written by generate.py from the tables of the project.
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
syn keyword phobosType f16 bf16 f32 f64 i8 u8 i32 i64 bool
syn keyword phobosBarrier grid_barrier
syn keyword phobosBuiltin program_id extent atomic_add atomic_cas exp log sqrt tanh round pow tmax tmin where
syn keyword phobosBuiltin iota argsel rowmax rowsum rowargmax cumsum tril transpose flat gather dot dot_t range

syn match phobosPlace "\<ctx\(\.\w\+\)\{1,2}"
syn match phobosAttribute "@\(autotune\|cluster\|launch\|persistent\|aligned\|dynshared\|tensorcore\|pipeline\|padstage\|registers\|swizzle\)\>"
syn match phobosUnknownAttribute "@\(autotune\|cluster\|launch\|persistent\|aligned\|dynshared\|tensorcore\|pipeline\|padstage\|registers\|swizzle\)\@!\w\+"
syn match phobosNumber "\<\d[0-9_]*\>"
syn match phobosNumber "\<0[xX][0-9A-Fa-f_]\+\>"
syn match phobosFloat "\<\d[0-9_]*\.[0-9_]*\([eE][+-]\?\d\+\)\?"
syn match phobosFloat "\<\d[0-9_]*[eE][+-]\?\d\+"
syn match phobosSpan ":+"
syn match phobosName "\(\<\(kernel\|fn\)\s\+\)\@<=\w\+"

syn match phobosComment "//.*$" contains=phobosHeader,phobosDirective,@Spell
syn match phobosHeader "//\s*\zs\(run\|expect\):.*$" contained contains=phobosHeaderWord
syn match phobosHeaderWord "\<\(run\|expect\):" contained
syn match phobosDirective "//\s*\zsphobos:\s*\(ignore-file\|ignore\|assume\)\>.*$" contained

syn region phobosBlock start="{" end="}" transparent fold

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
