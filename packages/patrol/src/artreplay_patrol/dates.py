"""Days and times as people and machines write them; what can be read in two ways is not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from artreplay.errors import InvalidParameter
from artreplay_patrol.area import Bools
from artreplay_patrol.counts_in_words import quoted
from artreplay_patrol.errors import InvalidRecords

FORMATS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
)
_TIME = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(\.\d+)?)?\s*([AaPp])?\.?(?:[Mm]\.?)?\s*(Z|[+-]\d{2}:?\d{2}|[+-]\d{2})?",
)
_MONTHS = (  # what a month's name begins with, in English, French, Spanish, Portuguese, German, Italian, Dutch, Swahili
    ("Jan", "jan ene gen jän"),
    ("Feb", "feb fév fev"),
    ("Mar", "mar mär maa mac"),
    ("Apr", "apr avr abr"),
    ("May", "may mai mei mag"),
    ("Jun", "jun juin giu"),
    ("Jul", "jul juil lug"),
    ("Aug", "aug aoû aou ago"),
    ("Sep", "sep set"),
    ("Oct", "oct okt out ott"),
    ("Nov", "nov"),
    ("Dec", "dec déc dic dez des"),
)
_NAMES = {start: english for english, starts in _MONTHS for start in starts.split()}
_YEAR = re.compile("%[YyGcxDF]")  # Python 3.13 warns of a format without a year before it fails
_WORD = re.compile(r"[^\W\d_]+\.?")
_EARLIEST, _LATEST = date(1970, 1, 1), date(2100, 1, 1)


def checked_date_format(form: object) -> str:
    """A way of writing dates that says day, month and year."""
    example = date(2013, 11, 29)
    if not isinstance(form, str) or _YEAR.search(form) is None or parsed(example.strftime(form), form) != example:
        raise InvalidParameter(f"date_format must say day, month and year, such as %d/%m/%Y, got {form!r}")
    return form


class Moments(NamedTuple):
    """The day and, where it is known, the time of each row, both of the park."""

    day: np.ndarray[Any, Any]  # datetime64[D], NaT where it cannot be read
    time: np.ndarray[Any, Any]  # datetime64[us], NaT where there is none
    bad_times: int  # rows whose time is there and cannot be read
    zones: frozenset[timezone | None]  # that times bring with them; None is in there if some bring none


def read_moments(dates: Any, times: Any, date_format: str | None, zone: str | None, source: str) -> Moments:
    """Days and times from two columns of text; `date_format` ends any doubt, `zone` is that of the park."""
    days, day_codes = _coded(dates)
    found_days = _days(days, date_format, source)
    clocks, clock_codes = _coded(times)
    found = [_clock(text) for text in clocks]
    day = np.array(found_days, "datetime64[D]")[day_codes]
    of_day = np.array([None if one is None else one[0] for one in found], "timedelta64[us]")[clock_codes]
    bad = np.array([one is None and bool(text) for one, text in zip(found, clocks, strict=True)], np.bool_)[clock_codes]
    time = day.astype("datetime64[us]") + of_day
    offsets = [None if one is None else one[1] for one in found]
    known = ~np.isnat(time)
    zones = frozenset(offsets[code] for code in np.unique(clock_codes[known]).tolist())
    if zone is not None:
        time = _in_the_park(time, offsets, clock_codes, zones, zone)
    return Moments(np.where(known, time.astype("datetime64[D]"), day), time, int(bad.sum()), zones)


def check_zones(moments: Sequence[Moments], sources: Sequence[str], zone: str | None) -> None:
    """Refuse times of several zones, in one file or in several, if nobody says which one the park has."""
    used = frozenset[timezone | None]().union(*(one.zones for one in moments))
    if zone is not None or len(used) < 2:
        return
    timed = dict.fromkeys(source for source, one in zip(sources, moments, strict=True) if one.zones)
    named = ", ".join(list(timed)[:3]) + (", ..." if len(timed) > 3 else "")
    raise InvalidRecords(
        f"{named}: times come from several time zones ({_zones(used)}): "
        "say which one the park has, for example time_zone: Africa/Kampala in the site file"
    )


def _coded(column: Any) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The distinct texts of a column without the space around them, and for each row the number of its text."""
    encoded = pa.chunked_array([pa.array(column, pa.string())] if not isinstance(column, pa.ChunkedArray) else column)
    encoded = encoded.combine_chunks().fill_null("").dictionary_encode()
    return [text.strip() for text in encoded.dictionary.to_pylist()], np.asarray(encoded.indices)


# -- days ---------------------------------------------------------------------------------------------------------


def _days(texts: Sequence[str], date_format: str | None, source: str) -> list[date | None]:
    if date_format is not None:
        return _with_format(texts, date_format, source)
    written = [text for text in texts if text]
    if not written:
        return [None] * len(texts)
    readings = {form: [parsed(text, form) for text in texts] for form in FORMATS}
    counts = {form: sum(day is not None for day in days) for form, days in readings.items()}
    most = max(counts.values())
    if most == 0:
        raise InvalidRecords(
            f"{source}: dates such as {quoted(written[0])} cannot be read. Say how they are written, "
            "for example --date-format %d/%m/%Y"
        )
    best = [form for form in FORMATS if counts[form] == most]
    _check_one_way(texts, best[0], readings, source)
    _check_unambiguous(texts, best, readings, source)
    return readings[best[0]]


def parsed(text: str, form: str) -> date | None:
    """A day written in this form; None if it is not, or in no century of ours. Months may have names of many languages.

    >>> parsed("5 de março de 2016", "%d %B %Y"), parsed("05-févr.-2016", "%d-%b-%Y")
    (datetime.date(2016, 3, 5), datetime.date(2016, 2, 5))
    """
    try:
        by_name = "%b" in form.lower()
        day = (
            datetime.strptime(_in_english(text), form.replace("%B", "%b")) if by_name else datetime.strptime(text, form)
        )
    except ValueError:
        return None
    return day.date() if _EARLIEST <= day.date() < _LATEST else None


@lru_cache(maxsize=65_536)
def _in_english(text: str) -> str:
    """A date with the English short name of its month."""

    def name(word: re.Match[str]) -> str:
        letters = word[0].rstrip(".").casefold()
        if letters == "de":  # 5 de março de 2016
            return ""
        return next((_NAMES[letters[:size]] for size in (4, 3) if letters[:size] in _NAMES), word[0])

    return " ".join(_WORD.sub(name, text).split())


def _with_format(texts: Sequence[str], form: str, source: str) -> list[date | None]:
    days = [parsed(text, form) for text in texts]
    written = [text for text in texts if text]
    if written and not any(days):
        raise InvalidRecords(f"{source}: no date is written as {form}, they look like {quoted(written[0])}")
    return days


def _check_unambiguous(texts: Sequence[str], best: list[str], readings: dict[str, Any], source: str) -> None:
    """Refuse dates that two forms read equally well and differently."""
    first, *others = best
    for other in others:
        for text, one, two in zip(texts, readings[first], readings[other], strict=True):
            if one is not None and two is not None and one != two:
                raise InvalidRecords(
                    f"{source}: dates such as {quoted(text)} can be {_spoken(one)} or {_spoken(two)}, and no "
                    f"other date tells which: give --date-format {first} or --date-format {other}"
                )


def _check_one_way(texts: Sequence[str], best: str, readings: dict[str, Any], source: str) -> None:
    """Refuse a file whose dates are written in two ways, such as two exports pasted together."""
    for place, text in enumerate(texts):
        if readings[best][place] is None:
            other = next((form for form in FORMATS if readings[form][place] is not None), None)
            if other is not None:
                raise InvalidRecords(
                    f"{source}: dates are written in two ways: some as {best}, but {quoted(text)} is written as "
                    f"{other}: import the parts as two files, each with its own --date-format"
                )


def _spoken(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


# -- times --------------------------------------------------------------------------------------------------------


def _clock(text: str) -> tuple[timedelta, timezone | None] | None:
    """The time since midnight and the offset from UTC, if one is written; None if it is no time.

    >>> _clock("2:05 PM")
    (datetime.timedelta(seconds=50700), None)
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds, fraction, half, offset = match.groups()
    hour = int(hours)
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half in "Pp" else 0)
    try:
        checked = clock(hour, int(minutes), int(seconds or 0))
    except ValueError:
        return None
    since = timedelta(hours=checked.hour, minutes=checked.minute, seconds=checked.second + float(fraction or 0))
    return since, _offset(offset)


def _offset(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return timezone(-ahead if text[0] == "-" else ahead)


def _in_the_park(
    time: np.ndarray[Any, Any],
    offsets: Sequence[timezone | None],
    codes: np.ndarray[Any, Any],
    used: frozenset[timezone | None],
    zone: str,
) -> np.ndarray[Any, Any]:
    """Times that bring an offset, as the clocks of the park showed them; others are taken to be just that."""
    known: Bools = ~np.isnat(time)
    local = time.copy()
    park = ZoneInfo(zone)
    for offset in used:
        if offset is None:
            continue
        ahead = np.timedelta64(offset.utcoffset(None) or timedelta(0), "us")
        rows = known & np.array([one == offset for one in offsets], np.bool_)[codes]
        local[rows] = _from_utc(time[rows] - ahead, park)
    return local


def _from_utc(times: np.ndarray[Any, Any], park: ZoneInfo) -> np.ndarray[Any, Any]:
    """UTC as the clocks of a zone; its offset is looked up once an hour."""
    hours, codes = np.unique(times.astype("datetime64[h]"), return_inverse=True)
    ahead = [datetime.fromtimestamp(int(hour) * 3600, park).utcoffset() for hour in hours.astype(np.int64)]
    local: np.ndarray[Any, Any] = times + np.array(ahead, "timedelta64[us]")[codes]
    return local


def _zones(offsets: Iterable[timezone | None]) -> str:
    return ", ".join(sorted("none written" if offset is None else str(offset) for offset in offsets))
