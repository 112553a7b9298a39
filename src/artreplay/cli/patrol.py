"""The commands for patrols: records in, a plan out."""

from __future__ import annotations

import typer

from artreplay.cli.patrol_plans import draw_map, plan, record
from artreplay.cli.patrol_records import demo, import_records, surface
from artreplay.cli.patrol_simulation import simulate

patrol = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="From patrol records to the next patrol plan.")
patrol.command("import")(import_records)
patrol.command("map")(draw_map)
patrol.command()(plan)
patrol.command()(record)
patrol.command()(surface)
patrol.command()(demo)
patrol.command()(simulate)
