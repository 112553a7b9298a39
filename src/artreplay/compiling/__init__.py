"""One implementation, two speeds.

An algorithm, a ledger or an environment is a *component*: a `NamedTuple` of arrays with plain methods, marked by
`compiled`. Python runs it as it stands. Inside a `Loop` the same methods are found by type and compiled into one piece
of machine code. Before a loop asks for that, numba is not even imported.
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
