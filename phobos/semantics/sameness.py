"""When two expressions are the same value: a key made of what they read and how, not of how they are spelled."""

from __future__ import annotations

from phobos.semantics import ir
from phobos.semantics.conditions import key_of
from phobos.semantics.values import Values, children_of, is_bool, is_integer

COMMUTE = frozenset({"+", "*", "&", "|", "^", "==", "!="})


def value_key(expression: ir.Expression, values: Values) -> tuple[object, ...] | None:
    """Equal for two expressions that have one value in one block at one time; None where that is not known."""
    if is_integer(expression.type):
        return ("index", values.poly(expression).key)
    if is_bool(expression.type):
        return ("bool", key_of(values.condition(expression)))
    match expression:
        case ir.FloatLiteral(value=number):
            return ("float", number)
        case ir.ParamRef(param=param):
            return ("param", param.name)
        case ir.VariableRef(variable=variable):
            return ("variable", id(variable)) if variable.kind in ("let", "temp") else None
        case ir.Load(access=access):
            parts: list[object] = [access.base.name if isinstance(access.base, ir.Tensor) else id(access.base)]
            for sub in access.subs:
                if isinstance(sub, ir.PointSub):
                    parts.append(values.poly(sub.index).key)
                else:
                    parts.append((values.poly(sub.first).key, values.poly(sub.length).key))
            return ("load", *parts)
        case ir.Convert(operand=operand):
            inner = value_key(operand, values)
            dtype = getattr(expression.type, "dtype", "")
            return None if inner is None else ("convert", dtype, inner)
        case ir.UnaryOp(op=op) | ir.BinaryOp(op=op) | ir.ShortCircuit(op=op):
            keys = [value_key(child, values) for child in children_of(expression)]
            if any(key is None for key in keys):
                return None
            if op in COMMUTE:
                keys.sort(key=repr)
            return ("op", op, *keys)
        case ir.BuiltinCall(name=name):
            keys = [value_key(child, values) for child in children_of(expression)]
            return None if any(key is None for key in keys) else ("call", name, *keys)
    return None
