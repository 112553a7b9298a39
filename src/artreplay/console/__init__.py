"""What all commands share: their options, what they print, how they run, and how they refuse."""

from artreplay.console.options import JsonOption, SeedOption
from artreplay.console.output import NONE, count, number, percent, seconds, show, show_json, size, table, text_of, write
from artreplay.console.running import run_command

__all__ = [
    "NONE",
    "JsonOption",
    "SeedOption",
    "count",
    "number",
    "percent",
    "run_command",
    "seconds",
    "show",
    "show_json",
    "size",
    "table",
    "text_of",
    "write",
]
