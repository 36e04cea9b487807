"""A typed program as readable text: what tests snapshot and `phobos emit --format facts` prints first.

Written like the language itself, with what the language leaves out: the type of every name, conversions that
nobody wrote (`(f16) x`), temporaries (`%1`), constants with the number they have here. Two variables of one name
are `x` and `x'2`. A line inside an inlined function stands under `inline name`.
"""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.program import Program
from phobos.semantics.types import tensor_text, type_text


def show(program: Program) -> str:
    """The whole program, a line ending after every line."""
    text = _Text()
    kind = "kernel" if program.owner is None else "fn"
    text.line(f"{kind} {program.name}")
    text.depth = 1
    for line in header(program):
        text.line(line)
    text.line("body")
    text.block(program.body)
    return "\n".join(text.lines) + "\n"


def header(program: Program) -> list[str]:
    """Launch, flags, constants, promises and parameters, a line each."""
    launch = program.launch
    lines = [
        f"launch {launch.threads} threads"
        + (f", {launch.min_blocks} blocks" if launch.min_blocks is not None else "")
        + (f", {launch.max_registers} registers" if launch.max_registers is not None else "")
    ]
    lines += [f"@{name}" for name in program.flags if name not in ("launch", "autotune", "cluster", "aligned")]
    for constant in program.constants.values():
        listed = ", ".join(map(str, constant.choices))
        lines.append(f"constant {constant.name} = {constant.value} of [{listed}]")
    lines += [f"promise {p.dim} is a multiple of {p.tile}" for p in program.promises]
    for parameter in program.parameters:
        if isinstance(parameter, ir.Tensor):
            lines.append(f"param {parameter.name}: {tensor_text(parameter)}")
        else:
            lines.append(f"param {parameter.name}: {parameter.dtype}")
    lines += [f"extent {dim.name} = extent({dim.tensor}, {dim.axis})" for dim in program.dims.values()]
    return lines


def access_text(access: ir.Access) -> str:
    """`X[p * 64 :+ 64]`"""
    return _Text().access(access)


class _Text:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.names: dict[ir.Variable, str] = {}
        self.counts: dict[str, int] = {}

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def name(self, variable: ir.Variable) -> str:
        known = self.names.get(variable)
        if known is None:
            count = self.counts[variable.name] = self.counts.get(variable.name, 0) + 1
            known = f"%{count}" if not variable.name else variable.name if count == 1 else f"{variable.name}'{count}"
            self.names[variable] = known
        return known

    def block(self, block: ir.Block) -> None:
        self.depth += 1
        for statement in block.statements:
            self.statement(statement)
        self.depth -= 1

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Define(variable=variable, value=value):
                end = "" if value is None else f" = {self.value(value)}"
                self.line(f"{variable.kind} {self.name(variable)}: {type_text(variable.type)}{end}")
            case ir.DefineView(variable=variable, access=access):
                self.line(f"view {self.name(variable)}: {type_text(variable.type)} of {self.access(access)}")
            case ir.Assign(variable=variable, op=op, value=value):
                self.line(f"{self.name(variable)} {op or ''}= {self.value(value)}")
            case ir.Store(access=access, op=op, value=value):
                self.line(f"{self.access(access)} {op or ''}= {self.value(value)}")
            case ir.Evaluate(value=value):
                self.line(f"evaluate {self.value(value)}")
            case ir.AssumeUniform(value=value):
                self.line(f"assume uniform {self.value(value)}")
            case ir.For(variable=variable, lo=lo, hi=hi, step=step, unroll=unroll, body=body):
                times = "" if unroll is None else f" unroll {unroll}"
                bounds = ", ".join(self.value(bound) for bound in (lo, hi, step))
                self.line(f"for{times} {self.name(variable)} in range({bounds})")
                self.block(body)
            case ir.While(prelude=prelude, condition=condition, body=body):
                if prelude.statements:
                    self.line("before each test")
                    self.block(prelude)
                self.line(f"while {self.value(condition)}")
                self.block(body)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self.line(f"if {self.value(condition)}")
                self.block(then)
                if otherwise.statements:
                    self.line("else")
                    self.block(otherwise)
            case ir.Break():
                self.line("break")
            case ir.Continue():
                self.line("continue")
            case ir.Leave(leaves_kernel=whole):
                self.line("return from the kernel" if whole else "return")
            case ir.Inline(function=function, result=result, body=body):
                gives = "" if result is None else f" -> {self.name(result)}: {type_text(result.type)}"
                self.line(f"inline {function}{gives}")
                self.block(body)
            case ir.Barrier(tensor=tensor):
                self.line(f"grid_barrier({tensor.name})")
            case ir.Atomic(kind=kind, tensor=tensor, index=index, operands=operands, result=result):
                gives = "" if result is None else f"temp {self.name(result)}: {type_text(result.type)} = "
                inside = ", ".join([tensor.name, *(self.value(value) for value in (index, *operands))])
                self.line(f"{gives}atomic_{kind}({inside})")
            case ir.UnsupportedCall(name=name, arguments=arguments):
                self.line(f"not executed {name}({', '.join(self.value(a) for a in arguments)})")

    def access(self, access: ir.Access) -> str:
        base = access.base.name if isinstance(access.base, ir.Tensor) else self.name(access.base)
        return f"{base}[{', '.join(self.sub(sub) for sub in access.subs)}]"

    def sub(self, sub: ir.Sub) -> str:
        if isinstance(sub, ir.PointSub):
            return self.value(sub.index)
        if sub.whole:
            return ":"
        length = str(sub.static) if sub.static is not None else self.value(sub.length)
        return f"{self.value(sub.first)} :+ {length}"

    def value(self, value: ir.Expression) -> str:
        match value:
            case ir.IntLiteral(value=number):
                return str(number)
            case ir.FloatLiteral(value=real):
                return repr(real)
            case ir.BoolLiteral(value=truth):
                return "true" if truth else "false"
            case ir.ConstantRef(constant=constant):
                return constant.name
            case ir.DimRef(dim=dim):
                return dim.name
            case ir.ParamRef(param=param):
                return param.name
            case ir.BlockIndex(axis=axis):
                return f"ctx.block.{'xyz'[axis]}"
            case ir.GridExtent(axis=axis):
                return f"ctx.blocks.{'xyz'[axis]}"
            case ir.ThreadValue(name=name):
                return name
            case ir.VariableRef(variable=variable):
                return self.name(variable)
            case ir.Load(access=access):
                return self.access(access)
            case ir.UnaryOp(op=op, operand=operand):
                return f"{op}{self.inner(operand)}"
            case ir.BinaryOp(op=op, left=left, right=right) | ir.ShortCircuit(op=op, left=left, right=right):
                return f"{self.inner(left)} {op} {self.inner(right)}"
            case ir.Convert(operand=operand, explicit=explicit):
                dtype = "?" if isinstance(value.type, ir.ErrorT) else value.type.dtype
                if explicit:
                    return f"{'i64' if dtype == 'index' else dtype}({self.value(operand)})"
                return f"({dtype}) {self.inner(operand)}"
            case ir.BuiltinCall(name=name, arguments=arguments) | ir.Unsupported(name=name, arguments=arguments):
                return f"{name}({', '.join(self.value(a) for a in arguments)})"
            case ir.TensorRef(tensor=tensor):
                return tensor.name
        return "?"

    def inner(self, value: ir.Expression) -> str:
        text = self.value(value)
        compound = (
            isinstance(value, ir.BinaryOp | ir.ShortCircuit) or (isinstance(value, ir.Convert) and not value.explicit)
        )
        return f"({text})" if compound else text
