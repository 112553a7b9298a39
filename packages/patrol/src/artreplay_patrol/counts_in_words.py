"""Words that sentences about a park share."""


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
