"""The only module that imports numba: binds marked things to compiled code, and makes compiled entry points."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.compiler import Flags
from numba.core.typing.templates import (
    AbstractTemplate,
    _OverloadMethodTemplate,
    infer_getattr,
    infer_global,
    make_overload_attribute_template,
)
from numba.extending import lower_builtin, overload, register_jitable

from artreplay.compiling.components import MARK, UNBOUNDED
from artreplay.compiling.interrupts import NoInterrupt
from artreplay.compiling.marker import assume_nonnegative, least_room

# Without reference counting of arrays a step costs a fraction; the option is private to numba, so it may be refused.
PRIVATE_OPTIONS: dict[str, Any] = {"_nrt": False}
# Exactly NumPy's arithmetic: a division by zero gives inf or nan, nothing is reordered or fused.
COMMON_OPTIONS: dict[str, Any] = {"error_model": "numpy"}


@functools.cache
def common_options() -> dict[str, Any]:
    """The options for everything that is compiled here, without those that this version of numba refuses."""
    options = COMMON_OPTIONS | PRIVATE_OPTIONS
    try:
        probe = njit(**options)(_nothing)
        probe.targetdescr.options.parse_as_flags(Flags(), probe.targetoptions)
    except (AttributeError, KeyError, NameError, TypeError, ValueError):
        return dict(COMMON_OPTIONS)
    return options


def _nothing() -> None:
    """Never compiled: only shown to numba to see which options it takes."""


def _inner_options(inline: bool = True) -> dict[str, Any]:
    """Options for functions that only compiled code calls: an entry from Python would take long to compile."""
    options = common_options() | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return options | {"forceinline": True} if inline else options


@infer_global(assume_nonnegative)
class _Natural(AbstractTemplate):  # type: ignore[misc]
    """`assume_nonnegative` returns what it is given."""

    def generic(self, args: Any, kws: Any) -> Any:
        """The type that comes out is the one that goes in."""
        return args[0](*args)


@lower_builtin(assume_nonnegative, types.Integer)  # type: ignore[untyped-decorator]
def _assume_nonnegative(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Tell LLVM that the number is not negative, so that it drops the case of an index that counts from the end."""
    (value,) = args
    if signature.args[0].signed:
        assume = builder.module.declare_intrinsic("llvm.assume", (), ir.FunctionType(ir.VoidType(), [ir.IntType(1)]))
        builder.call(assume, [builder.icmp_signed(">=", value, ir.Constant(value.type, 0))])
    return value


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
            """A method that is bound to a component of this type."""

            def generic(self, args: Any, kws: Any) -> Any:
                """The signature of a call, None where the method does not take such arguments."""
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
        """The method to compile for a component of this type, None where its class has none."""
        cls = self.instance_class
        method = cls.__dict__.get(name)
        if MARK not in cls.__dict__ or not inspect.isfunction(method):
            return None
        return _least_room_of(self) if method is least_room else method

    # What numba's overload_method does, but for the template, and without comparing the names of parameters.
    options = {"jit_options": _inner_options(), "strict": False}
    infer_getattr(make_overload_attribute_template(types.BaseNamedTuple, name, resolve, base=_FieldsFirst, **options))
    overload(resolve, **options)(resolve)


def _least_room_of(component: Any) -> Callable[..., Any]:
    """`least_room` written out for the parts of one type."""
    parts = [
        f"self.{name}.room()"
        for name, part in zip(component.fields, component.types, strict=True)
        if isinstance(part, types.BaseNamedTuple) and MARK in part.instance_class.__dict__
    ]
    namespace: dict[str, Any] = {}
    exec(f"def room(self):\n    return min({UNBOUNDED}, {UNBOUNDED}, {', '.join(parts)})", namespace)
    room: Callable[..., Any] = namespace["room"]
    return room


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
    parameters = ", ".join(inspect.signature(function).parameters)
    # The stamp in the name gives each combination of classes a cache file of its own. Numba unpickles a whole file,
    # types included, so that in a shared one the classes of one program would have to be there in every other.
    name = f"{function.__name__}_{stamp[:16]}"
    source = _ENTRY.format(name=name, parameters=parameters)
    namespace = {"inner": njit(**_inner_options())(function), "__name__": function.__module__}
    # Numba keeps its cache beside the file a function says it comes from, and reads its source there. An entry point
    # says that it comes from the function it calls, file and line.
    code = function.__code__
    exec(compile(source, code.co_filename, "exec"), namespace)
    entry = namespace["make"](stamp)
    entry.__code__ = entry.__code__.replace(co_firstlineno=code.co_firstlineno)
    options = common_options() | {"nogil": True}
    try:
        return _whole(njit(cache=cache, **options)(entry))
    except RuntimeError:  # no folder can be written to: compile in every process then
        return _whole(njit(**options)(entry))


def _whole(entry: Any) -> Any:
    """The same entry point, which Ctrl-C cannot interrupt while it is compiled or loaded from disk.

    Python prints and then forgets an interrupt inside a callback from C, and compiling makes many such callbacks.
    """
    compiled_for = entry.compile

    def compile_whole(signature: Any) -> Any:
        """What numba calls when it meets new types."""
        with NoInterrupt():
            return compiled_for(signature)

    entry.compile = compile_whole
    return entry
