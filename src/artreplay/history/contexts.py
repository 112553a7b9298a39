"""The class `Contexts`, which says how the columns of a context become numbers. It never changes once it is made."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter, checked_number
from artreplay.history.context_values import Category, ContextColumn, context_columns
from artreplay.history.labels import is_missing, plain_label
from artreplay.parameters import Seed, Size, checked
from artreplay.streams import COSINES, fold, normal, uniform
from artreplay.whole_files import write_whole

COSINES_OF_A_MAP = 64
MAX_FEATURES = 512  # features of a context; a covariance has as many rows and columns
MAX_VALUES = 50  # values of a category, unless `keep` says otherwise
CLIPPED_AT = 3.0  # standard deviations from the centre of the scale
FORMAT = "artreplay contexts 1"


@dataclass(frozen=True)
class Numeric:
    """Say where the values of a numeric column lie, instead of taking its scale from a log.

    Parameters
    ----------
    low, high
        The range of the values. The centre of the scale is its middle. The width of the scale is (high − low)/√12,
        which is the standard deviation of values that are spread evenly.
    missing
        Whether values may be missing. If so, one more feature says whether the value is missing.

    Examples
    --------
    >>> Numeric(0, 100).centre
    50.0
    """

    low: float
    high: float
    missing: bool = False

    def __post_init__(self) -> None:
        """Refuse a range that is not one."""
        low, high = checked_number("low", self.low), checked_number("high", self.high)
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
            raise InvalidParameter(f"a numeric column must have finite bounds with low < high, got ({low}, {high})")
        if not isinstance(self.missing, bool):
            raise InvalidParameter(f"missing must be True or False, got {self.missing!r}")

    @property
    def centre(self) -> float:
        """The middle of the range."""
        return float(self.low) + (float(self.high) - float(self.low)) / 2.0

    @property
    def width(self) -> float:
        """The standard deviation of values that are spread evenly over the range."""
        return (float(self.high) - float(self.low)) / math.sqrt(12.0)


class ColumnScale(NamedTuple):
    """The scale of a numeric column: z = clip((value − centre) / width, −3, 3)."""

    centre: float
    width: float
    missing: bool


class Contexts:
    """Say how the columns of a context become numbers: scales, numbers of categories, and columns that make segments.

    `Contexts.from_history` takes the scales from a log. Everything an algorithm learns depends on them, so they never
    change. They are saved with a policy, and have a fingerprint.

    Parameters
    ----------
    numeric
        Numeric columns by name, each with its `Numeric` range.
    categories
        The values of each category, by the name of its column. Any value that is not listed counts as "other". List
        `None` if a missing value should be a value of its own.
    segments
        The columns whose values make segments. They must be categories.
    cosines
        How many cosines `ContextRegression` uses as features beside the columns.
    seed
        The seed of these cosines.

    Examples
    --------
    >>> contexts = Contexts({"age": Numeric(18, 82)}, {"country": ["NL", "DE"]}, segments=["country"])
    >>> contexts
    <Contexts: age numeric; country of 2 values; 3 segments by country>
    >>> contexts.encode_one({"age": 50, "country": "DE"})
    array([1., 0.])
    """

    @checked
    def __init__(
        self,
        numeric: Any = None,
        categories: Any = None,
        *,
        segments: Any = (),
        cosines: Size = COSINES_OF_A_MAP,
        seed: Seed = 0,
    ) -> None:
        self.numeric = {str(name): _checked_scale(str(name), given) for name, given in dict(numeric or {}).items()}
        self.categories = {str(name): _checked_values(str(name), each) for name, each in dict(categories or {}).items()}
        self.segments = _names("segments", segments)
        self.seed = seed
        for name in self.numeric.keys() & self.categories.keys():
            raise InvalidParameter(f"the column {name!r} must be numeric or a category, got both")
        for name in self.segments:
            if name not in self.categories:
                raise InvalidParameter(f"segments must name categories, got {name!r}, which is not one")
        if not self.numeric and not self.categories:
            raise InvalidParameter("contexts must have at least one column, got none")
        self.free = [name for name in self.categories if name not in self.segments]
        self.cosines = cosines if self.n_linear > 1 else 0
        if self.n_features > MAX_FEATURES:
            raise InvalidParameter(
                f"a context must have at most {MAX_FEATURES} features, got {self.n_linear} from its columns and "
                f"{self.cosines} cosines. Leave columns out, keep fewer values, or set cosines=0"
            )
        self._numbers = {
            name: {(isinstance(value, bool), value): code for code, value in enumerate(values)}
            for name, values in self.categories.items()
        }

    # -- made from a log ------------------------------------------------------------------------------------------

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        segments: Any = (),
        numeric: Any = None,
        categories: Any = None,
        keep: int | None = None,
        cosines: int = COSINES_OF_A_MAP,
        seed: int = 0,
    ) -> Self:
        """Take scales and categories from a table of contexts.

        Parameters
        ----------
        table
            A mapping of names to columns, or a frame, with one context per row. Columns of numbers are numeric, columns
            of texts and booleans are categories.
        segments
            The columns whose values make segments.
        numeric, categories
            What you say yourself instead of taking it from the table. `numeric` has a `Numeric` for each such column.
            `categories` has the values of each such column, or is a list of columns whose numbers are categories.
        keep
            How many values of each category to keep. The most frequent ones are kept, and all others count as "other".
        cosines, seed
            As for `Contexts`.

        Examples
        --------
        >>> Contexts.from_table({"age": [20, 40], "country": ["NL", "DE"]})
        <Contexts: age numeric; country of 2 values>
        """
        columns = context_columns(table)
        scales = dict(numeric or {})
        values = dict(categories) if isinstance(categories, Mapping) else {}
        as_categories = {*_names("segments", segments), *(categories or ())}
        for name in (*scales, *as_categories):
            if name not in columns:
                raise InvalidParameter(f"the contexts must have a column {name!r}, got the columns {_listed(columns)}")
        for name, column in columns.items():
            if name in scales or name in values:
                continue
            if column.numbers is None or name in as_categories:
                values[name] = _values_of(name, column.as_categories(), keep)
            else:
                scales[name] = _scale_of(name, column.numbers)
        in_order = {name: scales[name] for name in columns if name in scales}
        listed = {name: values[name] for name in columns if name in values}
        return cls(in_order, listed, segments=segments, cosines=cosines, seed=seed)

    @classmethod
    def from_history(cls, history: Any, **options: Any) -> Self:
        """Take scales and categories from the context columns of a log. It does not look at rewards.

        Parameters
        ----------
        history
            A log with contexts.
        options
            As for `from_table`.

        Examples
        --------
        >>> import artreplay as ar
        >>> log = ar.History(["red", "blue"], [1, 0], contexts={"age": [20, 40], "country": ["NL", "DE"]})
        >>> ar.Contexts.from_history(log, segments=["country"])
        <Contexts: age numeric; country of 2 values; 3 segments by country>
        """
        table = getattr(history, "contexts", None)
        if table is None:
            raise InvalidHistory("the log has no contexts. Make it with ar.History(arms, rewards, contexts=table)")
        return cls.from_table(table, **options)

    # -- sizes ----------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return [*self.numeric, *self.categories]

    @property
    def width(self) -> int:
        """How many numbers an encoded context has: one for the segment and one for each column that makes none."""
        return 1 + len(self.numeric) + len(self.free)

    @property
    def n_linear(self) -> int:
        """How many features come from the columns alone."""
        indicators = sum(scale.missing for scale in self.numeric.values())
        return 1 + len(self.numeric) + indicators + sum(len(self.categories[name]) + 1 for name in self.free)

    @property
    def n_features(self) -> int:
        """How many features there are together with the cosines."""
        return self.n_linear + self.cosines

    @property
    def n_segments(self) -> int:
        """How many segments there are, 1 without segment columns. The value "other" makes segments too."""
        return math.prod(len(self.categories[name]) + 1 for name in self.segments)

    def segment_of(self, values: Sequence[Category]) -> int:
        """The segment that values of the segment columns make."""
        segment = 0
        for name, value in zip(self.segments, values, strict=True):
            segment = segment * (len(self.categories[name]) + 1) + self._code(name, value)
        return segment

    def segment_values(self, segment: int) -> tuple[Category, ...]:
        """Return the values of the segment columns in a segment. Values that are not listed are "other".

        Parameters
        ----------
        segment
            The number of the segment.

        Examples
        --------
        >>> Contexts(categories={"country": ["NL", "DE"]}, segments=["country"]).segment_values(2)
        ('other',)
        """
        chosen: list[Category] = []
        for name in reversed(self.segments):
            values = self.categories[name]
            segment, code = divmod(segment, len(values) + 1)
            chosen.append(values[code] if code < len(values) else "other")
        return tuple(reversed(chosen))

    # -- encoding -------------------------------------------------------------------------------------------------

    def encode(self, table: Any) -> Floats:
        """Turn a table of contexts into an array with one row for each.

        A row has the number of the segment, then the scaled value of each numeric column, then the number of the value
        of each category.

        Parameters
        ----------
        table
            A mapping of names to columns, or a frame. Columns that these contexts do not have are ignored.

        Examples
        --------
        >>> Contexts({"age": Numeric(18, 82)}, {"country": ["NL", "DE"]}).encode({"age": [50], "country": ["DE"]})
        array([[0., 0., 1.]])
        """
        columns = context_columns(table, self.columns)
        rows = len(next(iter(columns.values())))
        encoded = np.zeros((rows, self.width))
        for name in self.segments:
            encoded[:, 0] = encoded[:, 0] * (len(self.categories[name]) + 1) + self._codes(name, columns[name])
        for at, (name, scale) in enumerate(self.numeric.items(), start=1):
            numbers = columns[name].numbers
            if numbers is None:
                if any(value is not None for value in columns[name].values):
                    raise InvalidHistory("must have numbers, got text or booleans", column=name)
                numbers = np.full(rows, math.nan)
            encoded[:, at] = np.clip((numbers - scale.centre) / scale.width, -CLIPPED_AT, CLIPPED_AT)
        for at, name in enumerate(self.free, start=1 + len(self.numeric)):
            encoded[:, at] = self._codes(name, columns[name])
        return encoded

    def encode_one(self, context: Any, complete: bool = True) -> Floats:
        """Turn one context, a mapping of column names to values, into numbers.

        Parameters
        ----------
        context
            The values by name.
        complete
            Whether the context must have all columns and no others. If not, a column that is absent has a missing
            value.

        Examples
        --------
        >>> Contexts({"age": Numeric(18, 82)}, {"country": ["NL", "DE"]}).encode_one({"age": 50, "country": "NL"})
        array([0., 0., 0.])
        """
        if not isinstance(context, Mapping):
            raise InvalidParameter(
                f"must be a mapping of {_listed(self.columns)} to values, got {context!r}", parameter="context"
            )
        if complete:
            self._check_names(context)
        encoded = np.zeros(self.width)
        for name in self.segments:
            encoded[0] = encoded[0] * (len(self.categories[name]) + 1) + self._code(name, context.get(name))
        for at, (name, scale) in enumerate(self.numeric.items(), start=1):
            z = (_checked_value(name, context.get(name)) - scale.centre) / scale.width
            encoded[at] = z if math.isnan(z) else min(CLIPPED_AT, max(-CLIPPED_AT, z))
        for at, name in enumerate(self.free, start=1 + len(self.numeric)):
            encoded[at] = self._code(name, context.get(name))
        return encoded

    def oddities(self, encoded: Floats) -> dict[str, int]:
        """Count, for each column, the contexts that it does not fit: clipped, "other", or missing without an indicator.

        High counts mean that contexts have drifted since the scales were made.

        Parameters
        ----------
        encoded
            Contexts as `encode` returns them.

        Examples
        --------
        >>> contexts = Contexts({"age": Numeric(18, 82)})
        >>> contexts.oddities(contexts.encode({"age": [50, 400]}))
        {'age': 1}
        """
        rows = np.atleast_2d(encoded)
        odd = {}
        for at, (name, scale) in enumerate(self.numeric.items(), start=1):
            is_odd = np.abs(rows[:, at]) >= CLIPPED_AT
            odd[name] = int((is_odd if scale.missing else is_odd | np.isnan(rows[:, at])).sum())
        for at, name in enumerate(self.free, start=1 + len(self.numeric)):
            odd[name] = int((rows[:, at] == len(self.categories[name])).sum())
        segment = rows[:, 0].astype(np.int64)
        for name in reversed(self.segments):
            size = len(self.categories[name]) + 1
            odd[name] = int((segment % size == size - 1).sum())
            segment //= size
        return odd

    def _check_names(self, context: Mapping[str, Any]) -> None:
        for name in context:
            if name not in self.numeric and name not in self.categories:
                raise InvalidParameter(
                    f"must have only the columns {_listed(self.columns)}, got {name!r}", parameter="context"
                )
        for name in self.columns:
            if name not in context:
                raise InvalidParameter(f"must have {name!r}. If its value is missing, give None", parameter="context")

    def _code(self, name: str, value: Any) -> int:
        value = None if is_missing(value) else plain_label(value)
        values = self.categories[name]
        try:
            return self._numbers[name].get((isinstance(value, bool), value), len(values))
        except TypeError:
            raise InvalidParameter(
                f"must have a text, a boolean or a number as {name!r}, got {value!r}", parameter="context"
            ) from None

    def _codes(self, name: str, column: ContextColumn) -> Ints:
        column = column.as_categories()
        return np.array([self._code(name, value) for value in column.values], np.int64)[column.codes]

    # -- the cosines ----------------------------------------------------------------------------------------------

    @cached_property
    def frequencies(self) -> Floats:
        """The frequencies of the cosines: a row for each, and a column for each linear feature but the constant."""
        spread = 1.0 / math.sqrt(max(1, len(self.numeric)))
        n_numeric = len(self.numeric) + sum(scale.missing for scale in self.numeric.values())
        key = np.uint64(fold(self.seed))
        rows = np.zeros((self.cosines, self.n_linear - 1))
        with np.errstate(over="ignore"):
            for row in range(self.cosines):
                for at in range(self.n_linear - 1):
                    deviation = spread if at < n_numeric else 1.0
                    rows[row, at] = normal(key, COSINES, at, row, 0.0, deviation, -math.inf, math.inf)
        return rows

    @cached_property
    def shifts(self) -> Floats:
        """The phases of the cosines."""
        key = np.uint64(fold(self.seed))
        with np.errstate(over="ignore"):
            draws = [uniform(key, COSINES, MAX_FEATURES, row) for row in range(self.cosines)]
        return 2.0 * math.pi * np.array(draws)

    # -- saving ---------------------------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Return these contexts as a dictionary that JSON can hold.

        Examples
        --------
        >>> Contexts.from_dict(Contexts({"age": Numeric(18, 82)}).as_dict())
        <Contexts: age numeric>
        """
        return {
            "format": FORMAT,
            "numeric": [[name, *scale] for name, scale in self.numeric.items()],
            "categories": [[name, values] for name, values in self.categories.items()],
            "segments": self.segments,
            "cosines": self.cosines,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, frozen: Any) -> Self:
        """Make contexts from the dictionary that `as_dict` returned.

        Parameters
        ----------
        frozen
            The dictionary.
        """
        try:
            if frozen["format"] != FORMAT:
                raise InvalidFile(f"must have the format {FORMAT!r}, got {frozen['format']!r}")
            numeric = {
                name: ColumnScale(float(c), float(w), bool(missing)) for name, c, w, missing in frozen["numeric"]
            }
            categories = {str(name): list(values) for name, values in frozen["categories"]}
            settings = {"segments": list(frozen["segments"]), "cosines": frozen["cosines"], "seed": frozen["seed"]}
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidFile(f"does not describe contexts ({type(error).__name__}: {error})") from None
        return cls(numeric, categories, **settings)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the contexts to a JSON file.

        Parameters
        ----------
        path
            The path of the file.
        """
        text = json.dumps(self.as_dict(), indent=1)
        write_whole(Path(path), lambda file: file.write(text.encode()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read contexts from a JSON file that `save` wrote.

        Parameters
        ----------
        path
            The path of the file.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "contexts.json"
        ...     Contexts({"age": Numeric(18, 82)}).save(path)
        ...     Contexts.load(path)
        <Contexts: age numeric>
        """
        try:
            frozen = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise InvalidFile(f"cannot be read as contexts: {error}", file=path) from None
        try:
            return cls.from_dict(frozen)
        except InvalidFile as error:
            error.file = str(path)
            raise

    @cached_property
    def fingerprint(self) -> str:
        """A text that identifies these contexts. Equal contexts have the same one in every process."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contexts) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        listed = [f"{name} numeric" for name in self.numeric]
        listed += [f"{name} of {len(values)} values" for name, values in self.categories.items()]
        if self.segments:
            listed.append(f"{self.n_segments} segments by {', '.join(self.segments)}")
        return f"<Contexts: {'; '.join(listed)}>"


def contexts_of(thing: Any) -> Contexts:
    """Return contexts as they are, or take them from a table of contexts."""
    return thing if isinstance(thing, Contexts) else Contexts.from_table(thing)


def _checked_scale(name: str, scale_or_pair: Any) -> ColumnScale:
    if isinstance(scale_or_pair, ColumnScale):
        scale = scale_or_pair
    elif isinstance(scale_or_pair, Numeric):
        scale = ColumnScale(scale_or_pair.centre, scale_or_pair.width, scale_or_pair.missing)
    else:
        raise InvalidParameter(f"the column {name!r} must be ar.Numeric(low, high), got {scale_or_pair!r}")
    if not (math.isfinite(scale.centre) and 0.0 < scale.width < math.inf):
        raise InvalidParameter(f"the column {name!r} must have a finite scale of positive width, got {scale_or_pair!r}")
    return scale


def _checked_values(name: str, listing: Any) -> list[Category]:
    if isinstance(listing, (str, bytes)) or not isinstance(listing, Iterable):
        raise InvalidParameter(f"categories must list the values of {name!r}, got {listing!r}")
    values = [None if is_missing(value) else plain_label(value) for value in listing]
    for value in values:
        if not isinstance(value, (str, bool, int, float, type(None))):
            raise InvalidParameter(f"the values of {name!r} must be texts, booleans or numbers, got {value!r}")
    if len({(isinstance(value, bool), value) for value in values}) != len(values):
        raise InvalidParameter(f"the values of {name!r} must be distinct, got {values!r}")
    return values


def _names(what: str, names: Any) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidParameter(f"{what} must be a list of column names, got {names!r}")
    return [str(name) for name in names]


def _values_of(name: str, column: ContextColumn, keep: int | None) -> list[Category]:
    """The values of a category in the order of first appearance, or only the most frequent ones."""
    most = MAX_VALUES if keep is None else keep
    if len(column.values) <= most:
        return column.values
    if keep is None:
        raise InvalidHistory(
            f"must have at most {MAX_VALUES} values to be a category, got {len(column.values)}. Keep the most frequent "
            f"ones with keep={MAX_VALUES}, or leave the column out if its values are ids",
            column=name,
        )
    counts = np.bincount(column.codes, minlength=len(column.values))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:keep])
    return [column.values[code] for code in frequent.tolist()]


def _scale_of(name: str, numbers: Floats) -> ColumnScale:
    """The mean and the standard deviation of the values that are present. They do not depend on batches of the log."""
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        raise InvalidHistory(
            "has no values, so it has no scale. Leave it out, or give ar.Numeric(low, high)", column=name
        )
    first = float(present[0])
    shifted = present - first
    mean = math.fsum(shifted.tolist()) / len(present)
    variance = math.fsum((shifted * shifted).tolist()) / len(present) - mean * mean
    if (present == first).all() or variance <= 0.0:
        raise InvalidHistory(
            f"is {first} in every row, so it says nothing. Leave the column out, or give ar.Numeric(low, high)",
            column=name,
        )
    return ColumnScale(first + mean, math.sqrt(variance), len(present) < len(numbers))


def _checked_value(name: str, value: Any) -> float:
    if is_missing(value):
        return math.nan
    value = plain_label(value)
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidParameter(f"must have a finite number as {name!r}, got {value!r}", parameter="context")
    return float(value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
