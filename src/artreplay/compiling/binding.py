"""The only module that imports numba: binds marked things to compiled code, and makes compiled entry points."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.typing.templates import (
    _OverloadMethodTemplate,
    infer_getattr,
    make_overload_attribute_template,
)
from numba.extending import overload, register_jitable

from artreplay.compiling.components import MARK

# Without reference counting of arrays a step costs a fraction; the option is private to numba, so it may be refused.
PRIVATE_OPTIONS: dict[str, Any] = {"_nrt": False}
# Exactly NumPy's arithmetic: a division by zero gives inf or nan, nothing is reordered or fused.
COMMON_OPTIONS: dict[str, Any] = {"error_model": "numpy"}


@functools.cache
def common_options() -> dict[str, Any]:
    """The options of everything compiled here, without those this numba refuses."""
    try:
        njit(**COMMON_OPTIONS, **PRIVATE_OPTIONS)(_nothing)
    except (KeyError, NameError, TypeError, ValueError):
        return dict(COMMON_OPTIONS)
    return COMMON_OPTIONS | PRIVATE_OPTIONS


def _nothing() -> None:
    """Never compiled: only shown to numba to see which options it takes."""


def _inner_options(inline: bool = True) -> dict[str, Any]:
    """What is only called from compiled code needs no way in from Python, which takes long to make."""
    options = common_options() | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return options | {"forceinline": True} if inline else options


def bind_helper(function: Callable[..., Any], inline: bool) -> None:
    """Inside compiled code, a call of a marked function is a call of its compiled form."""
    register_jitable(**_inner_options(inline))(function)


class _FieldsFirst(_OverloadMethodTemplate):  # type: ignore[misc]
    """How compiled code finds a method, with two differences from numba's own way.

    A method of one component does not hide a field of the same name of another; and calls are typed by the method's
    own parameters, which saves compiling one more function around each.
    """

    def _resolve(self, typ: Any, attr: str) -> Any:
        if attr != self._attr or attr in typ.fields:
            return None
        outer = self

        class Method(super()._resolve(typ, attr).template):  # type: ignore[misc]
            def generic(self, args: Any, kws: Any) -> Any:
                function_type = outer._get_function_type(outer.context, typ)
                signature = outer._get_signature(outer.context, function_type, (typ, *args), kws)
                for template in function_type.templates:
                    outer._inline_overloads.update(template._inline_overloads)
                return None if signature is None else signature.as_method()

        return types.BoundFunction(Method, typ)

    @classmethod
    def _get_signature(cls, context: Any, function_type: Any, args: Any, kws: Any) -> Any:
        return function_type.get_call_type(context, args, kws)


def bind_method(name: str) -> None:
    """Inside compiled code, `part.name(...)` on a marked class is that class's own method."""

    def resolve(self: Any, *args: Any) -> Any:
        cls = self.instance_class
        method = cls.__dict__.get(name)
        return method if MARK in cls.__dict__ and inspect.isfunction(method) else None

    # What numba's overload_method does, but for the template, and without comparing the names of parameters.
    options = {"jit_options": _inner_options(), "strict": False}
    infer_getattr(make_overload_attribute_template(types.BaseNamedTuple, name, resolve, base=_FieldsFirst, **options))
    overload(resolve, **options)(resolve)


# The inner function is a global of the generated module and not a closure cell: numba hashes closure cells into the
# key of its disk cache, and a dispatcher never hashes the same twice. The stamp is a cell so that it is hashed.
_ENTRY = """
def make(stamp):
    def {name}({parameters}):
        stamp
        return inner({parameters})
    return {name}
"""


def entry_point(function: Callable[..., Any], stamp: str, cache: bool) -> Any:
    """A compiled form of `function` that releases the GIL; `stamp` says which source it was made from."""
    source = _ENTRY.format(name=function.__name__, parameters=", ".join(inspect.signature(function).parameters))
    namespace: dict[str, Any] = {"inner": njit(**_inner_options())(function), "__name__": function.__module__}
    # Numba keeps its cache beside the file a function says it comes from.
    exec(compile(source, function.__code__.co_filename, "exec"), namespace)
    return njit(cache=cache, nogil=True, **common_options())(namespace["make"](stamp))
