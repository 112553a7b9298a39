"""Binds marked classes and functions to compiled code, and makes compiled entry points. Nothing else imports numba."""

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

# Without reference counting of arrays a round takes a fraction of the time. A version of numba may refuse the option,
# because it is private.
PRIVATE_OPTIONS: dict[str, Any] = {"_nrt": False}
# Compiled arithmetic must equal NumPy's: a division by zero gives inf or nan, and nothing is reordered or fused.
COMMON_OPTIONS: dict[str, Any] = {"error_model": "numpy"}


@functools.cache
def common_options() -> dict[str, Any]:
    """The compiler options that this version of numba takes."""
    options = COMMON_OPTIONS | PRIVATE_OPTIONS
    try:
        probe = njit(**options)(_nothing)
        probe.targetdescr.options.parse_as_flags(Flags(), probe.targetoptions)
    except (AttributeError, KeyError, NameError, TypeError, ValueError):
        return dict(COMMON_OPTIONS)
    return options


def _nothing() -> None:
    """Numba is asked to compile this to see which options it takes. It never does."""


def _inner_options(inline: bool = True) -> dict[str, Any]:
    """Options for functions that only compiled code calls. They get no entry from Python, which is slow to compile."""
    options = common_options() | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return options | {"forceinline": True} if inline else options


@infer_global(assume_nonnegative)
class _Natural(AbstractTemplate):  # type: ignore[misc]
    """Tells numba that `assume_nonnegative` returns its argument."""

    def generic(self, args: Any, kws: Any) -> Any:
        """The type of the result is the type of the argument."""
        return args[0](*args)


@lower_builtin(assume_nonnegative, types.Integer)  # type: ignore[untyped-decorator]
def _assume_nonnegative(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Tell LLVM that the number is not negative, so that it leaves out the case of an index counted from the end."""
    (value,) = args
    if signature.args[0].signed:
        assume = builder.module.declare_intrinsic("llvm.assume", (), ir.FunctionType(ir.VoidType(), [ir.IntType(1)]))
        builder.call(assume, [builder.icmp_signed(">=", value, ir.Constant(value.type, 0))])
    return value


def bind_helper(function: Callable[..., Any], inline: bool) -> None:
    """Let compiled code that calls a marked function call its compiled form."""
    register_jitable(**_inner_options(inline))(function)


class _FieldsFirst(_OverloadMethodTemplate):  # type: ignore[misc]
    """Finds a method for compiled code, with two differences from numba's own way.

    A method of one component does not hide a field of the same name in another. Calls are typed by the method's own
    parameters, so numba need not compile a wrapper around each method.
    """

    def _resolve(self, typ: Any, attr: str) -> Any:
        if attr != self._attr or attr in typ.fields:
            return None
        outer = self

        class Method(super()._resolve(typ, attr).template):  # type: ignore[misc]
            """A method that is bound to a component of this type."""

            def generic(self, args: Any, kws: Any) -> Any:
                """The signature of a call, None if the method does not take such arguments."""
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
    """Let `part.name(...)` in compiled code call the method of that name of the marked class of `part`."""

    def resolve(self: Any, *args: Any) -> Any:
        """The method to compile for a component of this type, None if its class has no such method."""
        cls = self.instance_class
        method = cls.__dict__.get(name)
        if MARK not in cls.__dict__ or not inspect.isfunction(method):
            return None
        return _least_room_of(self) if method is least_room else method

    # This does what numba's overload_method does, except for the template. It does not compare names of parameters.
    options = {"jit_options": _inner_options(), "strict": False}
    infer_getattr(make_overload_attribute_template(types.BaseNamedTuple, name, resolve, base=_FieldsFirst, **options))
    overload(resolve, **options)(resolve)


def _least_room_of(component: Any) -> Callable[..., Any]:
    """Write `least_room` out for the parts of components of one type."""
    parts = [
        f"self.{name}.room()"
        for name, part in zip(component.fields, component.types, strict=True)
        if isinstance(part, types.BaseNamedTuple) and MARK in part.instance_class.__dict__
    ]
    namespace: dict[str, Any] = {}
    exec(f"def room(self):\n    return min({UNBOUNDED}, {UNBOUNDED}, {', '.join(parts)})", namespace)
    room: Callable[..., Any] = namespace["room"]
    return room


# Numba hashes closure cells into the key of its disk cache, and a dispatcher hashes differently every time. So the
# inner function is a global of the generated module. The stamp is a cell, because it must be hashed.
_ENTRY = """
def make(stamp):
    def {name}({parameters}):
        stamp
        return inner({parameters})
    return {name}
"""


def entry_point(function: Callable[..., Any], stamp: str, cache: bool) -> Any:
    """Make a compiled form of `function` that releases the GIL. `stamp` identifies the source it is made from."""
    parameters = ", ".join(inspect.signature(function).parameters)
    # The stamp in the name gives each combination of classes a cache file of its own. Numba unpickles a whole file,
    # including types, so a program that shares a file would need the classes of every other program.
    name = f"{function.__name__}_{stamp[:16]}"
    source = _ENTRY.format(name=name, parameters=parameters)
    namespace = {"inner": njit(**_inner_options())(function), "__name__": function.__module__}
    # Numba keeps its cache next to the source file of a function, and reads the source there. So an entry point has the
    # file and the line of the function that it calls.
    code = function.__code__
    exec(compile(source, code.co_filename, "exec"), namespace)
    entry = namespace["make"](stamp)
    entry.__code__ = entry.__code__.replace(co_firstlineno=code.co_firstlineno)
    options = common_options() | {"nogil": True}
    try:
        return _whole(njit(cache=cache, **options)(entry))
    except RuntimeError:  # no folder can be written to, so every process must compile
        return _whole(njit(**options)(entry))


def _whole(entry: Any) -> Any:
    """Keep Ctrl-C from interrupting an entry point while numba compiles it or loads it from disk.

    Python prints and then forgets an interrupt inside a callback from C, and compiling makes many such callbacks.
    """
    compiled_for = entry.compile

    def compile_whole(signature: Any) -> Any:
        """Compile for new types. Numba calls this when it meets them."""
        with NoInterrupt():
            return compiled_for(signature)

    entry.compile = compile_whole
    return entry
