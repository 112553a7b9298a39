"""Runs one implementation of each algorithm at two speeds, interpreted and compiled.

An algorithm, a ledger or an environment is a *component*: a `NamedTuple` of arrays with plain methods, marked by
`compiled`. Python can run it as it is. A `Loop` can also compile the same methods into one piece of machine code. Until
a loop does so, numba is not even imported.
"""

from artreplay.compiling.components import (
    UNBOUNDED,
    Flags,
    Floats,
    Growers,
    Ints,
    Words,
    arrays_of,
    check_fields,
    classes_of,
    copied,
    is_component,
    overwrite,
    packed,
    resized,
    scalars_of,
    state_of,
    views,
    with_room,
)
from artreplay.compiling.loops import (
    Loop,
    Mode,
    Slices,
    can_compile,
    current_mode,
    loops_compiled,
    next_limit,
    using,
    worth_compiling,
)
from artreplay.compiling.marker import assume_nonnegative, compiled, exact_bounds

__all__ = [
    "UNBOUNDED",
    "Flags",
    "Floats",
    "Growers",
    "Ints",
    "Loop",
    "Mode",
    "Slices",
    "Words",
    "arrays_of",
    "assume_nonnegative",
    "can_compile",
    "check_fields",
    "classes_of",
    "compiled",
    "copied",
    "current_mode",
    "exact_bounds",
    "is_component",
    "loops_compiled",
    "next_limit",
    "overwrite",
    "packed",
    "resized",
    "scalars_of",
    "state_of",
    "using",
    "views",
    "with_room",
    "worth_compiling",
]
