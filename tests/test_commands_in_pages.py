"""Every command in the pages can be typed as it stands, and what a page shows as printed is what the command prints."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import typer.core

from artreplay.cli import main
from command_kit import Run, running

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")), *sorted((ROOT / "packages").glob("*/**/*.md"))]
BLOCK = re.compile(r"^(<!-- output varies -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Needs what no test has: another machine, a service that runs on, records of a park.
ELSEWHERE = re.compile(r"://|^artreplay (serve|patrol)\b")
PROGRAM = re.compile(r"(\$ )?(\S*[\\/])?(artreplay|chmod|curl|echo|make|pip|python3?) ")


class Block(NamedTuple):
    """Commands that stand together in a page. Where they begin with a $, what they print follows."""

    page: Path
    text: str
    varies: bool

    @property
    def commands(self) -> list[str]:
        whole = self.text.replace("\\\n", " ")
        lines = [line.removeprefix("$ ") for line in whole.splitlines() if not self.prints or line.startswith("$ ")]
        return [line for line in lines if line.startswith("artreplay ")]

    @property
    def prints(self) -> bool:
        return self.text.startswith("$ ")


def blocks() -> Iterator[Block]:
    for page in PAGES:
        for varies, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language in ("", "bash") and PROGRAM.match(text):
                yield Block(page, text, bool(varies))


BLOCKS = list(blocks())
PRINTED = [block for block in BLOCKS if block.prints and not block.varies]


def test_what_follows_a_command_is_shown_as_printed() -> None:
    """A block with a command and what it prints has a $ before the command, so that it is compared."""
    for block in BLOCKS:
        lines = block.text.replace("\\\n", " ").splitlines()
        if not block.prints and not block.varies:
            assert [line for line in lines if not PROGRAM.match(line)] == [], block.page.name


def test_every_command_has_the_options_that_the_pages_give_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are parsed, and nothing is run."""
    monkeypatch.setattr(typer.core.TyperCommand, "invoke", lambda command, context: 0)
    commands = [command for block in BLOCKS for command in block.commands]
    assert len(commands) > 40
    wrong = [command for command in commands if main(shlex.split(command, comments=True)[1:]) != 0]
    assert wrong == []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return running(main, capsys)


@pytest.mark.as_users_run  # `inspect` forecasts fewer rows where nothing is compiled
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.commands[0][:30], marks=pytest.mark.long if "simulate" in block.text else ())
        for block in PRINTED
    ],
)
def test_what_a_page_shows_is_printed(run: Run, block: Block) -> None:
    runpy.run_path(str(ROOT / "docs/understand/log_worth.py"))["draw_logs"](Path())
    (command,) = block.commands
    done = run(*shlex.split(command)[1:])
    assert block.text == f"$ {command}\n{done.out}", (
        f"run docs/understand/log_worth.py: {block.page.name} is out of date"
    )


# -- commands whose output no page shows -------------------------------------------------------------------------------


def draw_rows(rows: int, seed: int = 0) -> pa.Table:
    """A log with every column that a page names."""
    draws = np.random.default_rng(seed)
    arms, prices = np.array(["red", "blue", "summer", "tulips"]), np.array([10, 12])
    chosen = arms[draws.integers(4, size=rows)]
    return pa.table(
        {
            **dict.fromkeys(("banner", "arm"), chosen),
            **dict.fromkeys(("click", "bought"), draws.integers(2, size=rows)),
            "price": prices[draws.integers(2, size=rows)],
            "chance": np.full(rows, 0.25),
            "position": draws.integers(1, 4, size=rows),
            "age": draws.integers(20, 60, size=rows),
            "decision_id": [f"of-{seed}-{row}" for row in range(rows)],
            "country": np.array(["NL", "BE"])[draws.integers(2, size=rows)],
        }
    )


def write_logs() -> None:
    rows = draw_rows(400)
    for name in ("clicks", "sales", "log", "visits", "clicks-of-november"):
        pa.csv.write_csv(rows, f"{name}.csv")
    for name, count in (("clicks", 400), ("tuesday", 20)):
        pa.parquet.write_table(draw_rows(count), f"{name}.parquet")
    pa.csv.write_csv(rows.select(["age", "country"]).slice(0, 5), "visitors.csv")
    requests = {"model": ["small", "large"] * 40, "task": ["chat", "code", "code", "chat"] * 20}
    requests |= {"kilotokens": np.linspace(0.1, 8.0, 80), "reward": np.linspace(-1.0, 1.0, 80)}
    pa.parquet.write_table(pa.table(requests), "gateway.parquet")
    totals = {"item": ["a", "b"], "shown": [100, 80], "clicked": [7, 9]}
    pa.csv.write_csv(pa.table(totals), "totals.csv")


def write_dutch_log() -> None:
    Path("log.csv").write_text("arm;price\n" + "rood;0,5\nblauw;1\n" * 20, encoding="latin-1")


def grow_clicks() -> None:
    pa.parquet.write_table(pa.concat_tables([draw_rows(400), draw_rows(10, seed=1)]), "clicks.parquet")


BEFORE: dict[str, Callable[[], None]] = {"--csv decimal_separator": write_dutch_log, "--append --grown": grow_clicks}


@pytest.mark.long
@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS if block.commands}), ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_a_page_run_one_after_the_other(run: Run, page: Path) -> None:
    write_logs()
    decision = ""
    for command in (
        command for block in BLOCKS if block.page == page and not block.prints for command in block.commands
    ):
        if ELSEWHERE.search(command):
            continue
        for part, prepare in BEFORE.items():
            if part in command:
                prepare()
        words = [
            decision if re.fullmatch(r"1-[0-9a-f]{8}", word) else word for word in shlex.split(command, comments=True)
        ]
        done = run(*words[1:])
        assert done.code == 0, f"{command}\n{done.err}"
        if command.startswith("artreplay study decide") and "--json" in words:
            answer: Any = json.loads(done.out)
            decision = (answer[0] if isinstance(answer, list) else answer).get("id", decision)
