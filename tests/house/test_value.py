"""A value class behaves as a dataclass of the same fields would."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

from phobos.value import replace, value


@value
class Base:
    first: int
    second: str = "s"


@value
class Derived(Base):
    third: float = 1.5


@value
class Empty:
    pass


def test_fields_by_position_by_name_and_by_default() -> None:
    one = Derived(1, third=2.0)
    assert (one.first, one.second, one.third) == (1, "s", 2.0)
    assert str(inspect.signature(Derived)) == "(first, second='s', third=1.5)"
    assert repr(one) == "Derived(first=1, second='s', third=2.0)" and repr(Empty()) == "Empty()"
    with pytest.raises(TypeError, match=r"Base.__init__\(\) missing 1 required positional argument: 'first'"):
        Base()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'fourth'"):
        Base(1, fourth=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 15, 16, 17, 40, 300])
def test_any_number_of_fields(count: int) -> None:
    names = [f"field{n}" for n in reversed(range(count))]
    made = value(type("Many", (), {"__annotations__": dict.fromkeys(names, "int"), "__module__": __name__}))
    one = made(*range(count))
    assert [getattr(one, name) for name in names] == list(range(count))


def test_a_field_without_a_default_cannot_follow_one_with_a_default() -> None:
    with pytest.raises(TypeError, match=r"field 'late' of .*Wrong without a default follows"):

        @value
        class Wrong(Base):
            late: int


def test_replaced_as_a_dataclass_is() -> None:
    one = Derived(1)
    for made in (replace(one, second="t"), dataclasses.replace(one, second="t")):  # type: ignore[type-var]
        assert (made.first, made.second, made.third) == (1, "t", 1.5) and type(made) is Derived
    with pytest.raises(TypeError, match="fourth"):
        replace(one, fourth=2)


def test_values_are_told_apart_by_identity_and_take_nothing_else() -> None:
    assert Base(1) != Base(1) and len({Base(1), Base(1)}) == 2
    with pytest.raises(AttributeError):
        Base(1).other = 2  # type: ignore[attr-defined]


def test_a_constructor_has_the_builtins_that_readers_of_code_look_for() -> None:
    """PyTorch's compiler went into a kernel's call and ended there with a KeyError."""

    @value
    class Point:
        x: int

    assert "__builtins__" in Point.__init__.__globals__  # type: ignore[misc]
