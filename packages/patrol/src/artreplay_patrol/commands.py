"""The commands for patrols: records in, a plan out."""

from __future__ import annotations

import typer

from artreplay_patrol.plan_commands import draw_map, plan, record, undo
from artreplay_patrol.record_commands import demo, import_records, samples

patrol = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="From patrol records to the next patrol plan.")
patrol.command("import")(import_records)
patrol.command("map")(draw_map)
patrol.command()(plan)
patrol.command()(record)
patrol.command()(undo)
patrol.command()(samples)
patrol.command()(demo)
