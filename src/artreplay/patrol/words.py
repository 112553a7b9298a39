"""Words that sentences about a park share."""


def many(count: int, thing: str) -> str:
    """A number of things.

    >>> many(1, "visit"), many(1200, "visit")
    ('1 visit', '1,200 visits')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
