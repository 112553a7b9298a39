"""The decorator `compiled`, which marks what may be compiled, so that compiled code finds it.

The first loop that compiles imports numba. Classes and functions marked before then wait here until it binds them all.
Those marked later are bound immediately.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from artreplay.compiling.components import MARK, SCRATCH, UNBOUNDED, is_component
from artreplay.errors import NotCompilable

T = TypeVar("T")

_method_names: set[str] = set()
_helpers: list[tuple[Callable[..., Any], bool]] = []
_binder: Any = None  # the module `binding`, which imports numba, once it is loaded


@overload
def compiled(thing: T) -> T: ...
@overload
def compiled(*, inline: bool = True, scratch: tuple[str, ...] = ()) -> Callable[[T], T]: ...


def compiled(thing: Any = None, *, inline: bool = True, scratch: tuple[str, ...] = ()) -> Any:
    """Mark a component (a `NamedTuple` class) or a helper function as compilable. Python can still run it as it is.

    The fields of a component are arrays, numbers and other components. An algorithm written this way must have:

    - `propose(self, out) -> int`, which writes the numbers of the proposed arms into `out` and returns how many there
      are;
    - `update(self, unit, reward)`, which learns from one reward of the arm with the number `unit`;
    - `n_arms`, a field, a property or a constant of the class.

    It may also have:

    - `room(self)`, which returns how many more samples its arrays can take, and `grown(self)`, which returns the same
      component with larger arrays;
    - `reseed(self, key)`, if it draws at random;
    - `propose(self, out, round)` in place of `propose(self, out)`, if it needs the number of the online round;
    - `update_logged(self, unit, reward, allowance)`, if it treats rows of the log differently from online rewards;
    - `reads_whole_log`, a field or a property, True if every policy must show it the whole log first. Replay is then
      exact for any rule;
    - `value(self, unit, round, unread, fill)` in place of `propose`. It returns what an arm would be worth after
      `unread` more rows of the log with the reward `fill`. Artificial Replay then reads rows until the choice is
      certain. `note_unread(self, rows)` is told how many rows of the whole log are unread.

    Compiled methods must not allocate memory, so scratch space is a field. They may call only methods of components,
    marked functions, and what numba supports.

    Parameters
    ----------
    thing
        The class or the function.
    inline
        Whether a marked function is copied into its callers. A long function compiles faster with False.
    scratch
        The fields that do not belong to the state of a component. Comparisons of states leave them out.

    >>> from typing import NamedTuple
    >>> import numpy as np, artreplay as ar
    >>> @ar.compiled
    ... class FewestFirst(NamedTuple):
    ...     count: np.ndarray
    ...     n_arms = 3
    ...     def propose(self, out):
    ...         out[0] = np.argmin(self.count)
    ...         return 1
    ...     def update(self, unit, reward):
    ...         self.count[unit] += 1
    >>> policy = ar.ArtificialReplay(FewestFirst(np.zeros(3)), ar.History([0, 1, 1], [1.0, 0.0, 1.0]))
    >>> policy.ask(), policy.used
    (2, 2)
    """
    if thing is None:
        return functools.partial(compiled, inline=inline, scratch=scratch)
    if inspect.isclass(thing):
        _mark_class(thing, scratch)
    elif inspect.isfunction(thing):
        _helpers.append((thing, inline))
        thing.__dict__[MARK] = True
        if _binder is not None:
            _binder.bind_helper(thing, inline)
    else:
        raise NotCompilable(f"compiled must mark a NamedTuple class or a function, got {thing!r}")
    return thing


def _mark_class(cls: type, scratch: tuple[str, ...]) -> None:
    if not (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        raise NotCompilable(f"a compiled component must be a NamedTuple, and {cls.__qualname__} is not")
    for field in scratch:
        if field not in cls._fields:
            raise NotCompilable(f"scratch must name fields of {cls.__qualname__}, got {field!r}")
    for name, default in _defaults(cls).items():
        if name not in vars(cls):
            setattr(cls, name, default)
    setattr(cls, SCRATCH, scratch)
    setattr(cls, MARK, True)
    for name, member in vars(cls).items():
        if inspect.isfunction(member) and not name.startswith("_") and name not in _method_names:
            _method_names.add(name)
            if _binder is not None:
                _binder.bind_method(name)


def _defaults(cls: type) -> dict[str, Callable[..., Any]]:
    """The methods that loops call, for a class that does not define them itself."""
    methods: dict[str, Callable[..., Any]] = {"room": least_room, "reseed": _nothing_to_reseed}
    propose = vars(cls).get("propose")
    if inspect.isfunction(vars(cls).get("value")) and inspect.isfunction(vars(cls).get("update")):
        methods["note_unread"] = _unread_unheard
        methods["value_bounds"] = exact_bounds
        methods["update_logged"] = _update_whatever_its_origin
    if inspect.isfunction(propose):
        methods["propose_over"] = _propose_with_round if _needs(propose) > 2 else _propose
        methods["update_logged"] = _update_whatever_its_origin
    return methods


def _needs(method: Any) -> int:
    """How many arguments a method requires, 0 if there is no such method."""
    if not inspect.isfunction(method):
        return 0
    parameters = inspect.signature(method).parameters.values()
    return sum(parameter.default is inspect.Parameter.empty for parameter in parameters)


def _propose(self: Any, ledger: Any, out: Any, round_: int) -> Any:
    return self.propose(out)


def _propose_with_round(self: Any, ledger: Any, out: Any, round_: int) -> Any:
    return self.propose(out, round_)


def _update_whatever_its_origin(self: Any, unit: int, reward: float, allowance: float) -> None:
    self.update(unit, reward)


def _unread_unheard(self: Any, rows: int) -> None:
    """Do nothing, for a component whose values do not depend on how much of the log is unread."""


def exact_bounds(self: Any, unit: int, round_: int, unread: int, fill: float, exact: bool) -> Any:
    """The two bounds of a value, both equal to it, for a component that has no `value_bounds`."""
    value = self.value(unit, round_, unread, fill)
    return value, value


def assume_nonnegative(number: T) -> T:
    """Return the number, and let compiled code rely on it not being negative. Indexing is then faster.

    Nothing checks this, so use it only for numbers that artreplay has checked or computed itself.
    """
    return number


def least_room(self: Any) -> int:
    """The least room of the parts of a component, if it has no `room` of its own. `binding` compiles this method."""
    least = UNBOUNDED
    for part in self:
        if is_component(part):
            least = min(least, part.room())
    return least


def _nothing_to_reseed(self: Any, key: Any) -> None:
    """Do nothing, for a component without random draws."""


def binder() -> Any:
    """The module `binding`, after it has bound everything marked so far."""
    global _binder
    if _binder is None:
        from artreplay.compiling import binding

        for helper, inline in _helpers:
            binding.bind_helper(helper, inline)
        for name in sorted(_method_names):
            binding.bind_method(name)
        _binder = binding
    return _binder
