"""Words that sentences about a park share."""

import re

# What may be a position: decimals of degrees, metres of a projection, or degrees with their sign.
_POSITION = re.compile(r"-?\d+[.,]\d{3,}|\b\d{6,7}\b|\d+\s*°[^,;]*")


def many(count: int, thing: str) -> str:
    """A number of things.

    >>> many(1, "visit"), many(1200, "visit")
    ('1 visit', '1,200 visits')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def amount(value: float) -> str:
    """An effort as people say it.

    >>> amount(0.25), amount(3.14), amount(1718.2)
    ('0.2', '3.1', '1,718')
    """
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.1f}"


def quoted(text: str) -> str:
    """Quote a text from somebody's file in a sentence, without the numbers in it that may be positions.

    >>> quoted("05/03/2016"), quoted("N 2.12345 E 31.65432")
    ("'05/03/2016'", "'N … E …'")
    """
    return repr(_POSITION.sub("…", text))
