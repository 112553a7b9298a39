"""Compiled code on disk: found again by the next process, and never older than the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import artreplay as ar

pytestmark = pytest.mark.xdist_group("compiled code on disk")

# One loop, in a file that is never edited; components, in files that are.
LOOP = """
from artreplay.compiling import Loop

@Loop
def run(part):
    return part.go()
"""

COMPONENT = """
from typing import NamedTuple
import numpy as np
from artreplay.compiling import compiled
{above}

@compiled
class {name}(NamedTuple):
    {field}

    def {method}:
        return {result}
"""

MARKED = "from artreplay.compiling import compiled\n"


def component(
    result: str, above: str = "", name: str = "Part", field: str = "x: np.ndarray", method: str = "go(self)"
) -> str:
    return COMPONENT.format(result=result, above=above, name=name, field=field, method=method)


class Case(NamedTuple):
    """A component whose `go` gives 1.0 before an edit and 2.0 after it."""

    module: str
    before: dict[str, str]
    after: dict[str, str]


def edit_of_a_constant(module: str, text: str, constants: str = "") -> Case:
    """The component is in one file, RATE in another."""
    constants = constants or f"{module}_constants.py"
    return Case(module, {f"{module}.py": text, constants: "RATE = 1.0\n"}, {constants: "RATE = 2.0\n"})


def edit_of_the_text(module: str, files: dict[str, str], edited: str) -> Case:
    """In one file 1.0 becomes 2.0."""
    return Case(module, files, {edited: files[edited].replace("1.0", "2.0")})


CASES = {
    "its own constant": edit_of_the_text(
        "own", {"own.py": component("self.x[0] + RATE", above="RATE = 1.0")}, edited="own.py"
    ),
    "its own code": edit_of_the_text("code_", {"code_.py": component("self.x[0] + 1.0")}, edited="code_.py"),
    "a constant of another module": edit_of_a_constant(
        "named", component("self.x[0] + RATE", above="from named_constants import RATE")
    ),
    "an attribute of another module": edit_of_a_constant(
        "attr", component("self.x[0] + rates.RATE", above="import attr_constants as rates")
    ),
    "an attribute of a module of a package": edit_of_a_constant(
        "dotted", component("self.x[0] + package.constants.RATE", above="import package.constants"),
        constants="package/constants.py",
    ),
    "a constant made from one of another module": edit_of_a_constant(
        "derived", component("self.x[0] + TWICE / 2", above="from derived_constants import RATE\nTWICE = 2 * RATE")
    ),
    "a tuple made from a constant of another module": edit_of_a_constant(
        "row", component("self.x[0] + ROW[1]", above="from row_constants import RATE as rate\nROW = (0.0, rate)")
    ),
    "an array made from a constant of another module": edit_of_a_constant(
        "table", component("self.x[0] + T[1]", above="from table_constants import RATE\nT = np.array([0.0, RATE])")
    ),
    "a default of a parameter": edit_of_a_constant(
        "default",
        component("self.x[0] + by", above="from default_constants import RATE", method="go(self, by=RATE)"),
    ),
    "a marked function of another module": edit_of_the_text(
        "helped",
        {
            "helped.py": component("helper(self.x[0])", above="from helped_functions import helper"),
            "helped_functions.py": MARKED + "@compiled\ndef helper(x):\n    return x + 1.0\n",
        },
        edited="helped_functions.py",
    ),
    "a constant of a function of a function": edit_of_the_text(
        "deep",
        {
            "deep.py": component("outer(self.x[0])", above="from deep_outer import outer"),
            "deep_outer.py": MARKED + "import deep_inner\n@compiled\ndef outer(x):\n    return deep_inner.inner(x)\n",
            "deep_inner.py": MARKED + "import deep_constants\n@compiled(inline=False)\n"
            "def inner(x):\n    return x + deep_constants.RATE\n",
            "deep_constants.py": "RATE = 1.0\n",
        },
        edited="deep_constants.py",
    ),
    "a component inside a component": edit_of_the_text(
        "nest",
        {
            "nest.py": component("self.inner.rate()", above="from nest_inner import Inner", field="inner: Inner"),
            "nest_inner.py": component("self.x[0] + 1.0", name="Inner", method="rate(self)"),
        },
        edited="nest_inner.py",
    ),
    "a function numba compiles by itself": edit_of_the_text(
        "jitted",
        {
            "jitted.py": component("helper(self.x[0])", above="from jitted_functions import helper"),
            "jitted_functions.py": "import numba\n@numba.njit\ndef helper(x):\n    return x + 1.0\n",
        },
        edited="jitted_functions.py",
    ),
}  # fmt: skip

UNEDITED = {"still.py": component("self.x[0] + RATE", above="RATE = 7.0")}
TWINS = {"left.py": component("self.x[0] + 10.0"), "right.py": component("self.x[0] + 20.0")}

# Run components; say what came out, and whether the loop was compiled (1, 0) or found (0, 1).
RUNNER = """
import importlib, json, sys
import numpy as np
from artreplay.compiling import loops_compiled
from loop import run

found = {}
for name in sys.argv[1:]:
    module, _, cls = name.partition(":")
    part = getattr(importlib.import_module(module), cls or "Part")
    x = np.zeros(1)
    value = part(sys.modules[module].Inner(x)) if module == "nest" else part(x)
    before = loops_compiled()
    result = run(value)
    after = loops_compiled()
    found[name] = [result, after[0] - before[0], after[1] - before[1]]
print(json.dumps(found))
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def python(folder: Path, *arguments: str, code: str = RUNNER, path: tuple[Path, ...] = (), **settings: str) -> Any:
    """What a fresh process prints, as JSON; processes in one folder share a cache."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-B", "-c", code, *arguments],
        cwd=folder,
        env={
            **os.environ,
            **settings,
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(map(str, [folder, *path, os.environ.get("PYTHONPATH", "")])),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


# -- edits --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("edits")


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[dict[str, list]]:
    """What three processes that share a cache say: before the edits, after them, and once more."""
    write(folder, {"loop.py": LOOP, "package/__init__.py": "", **UNEDITED, **TWINS})
    for case in CASES.values():
        write(folder, case.before)
    names = ["still", "left", "right", *(case.module for case in CASES.values())]
    first = python(folder, *names)
    for case in CASES.values():
        write(folder, case.after)
    return [first, python(folder, *names), python(folder, *names)]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_edit_takes_effect_in_the_next_process(runs, case):
    assert [run[case.module][0] for run in runs] == [1.0, 2.0, 2.0]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_after_an_edit_a_loop_is_compiled_once_and_then_found(runs, case):
    assert [run[case.module][1:] for run in runs] == [[1, 0], [1, 0], [0, 1]]


@pytest.mark.long
def test_what_was_not_edited_is_found(runs):
    assert [run["still"] for run in runs] == [[7.0, 1, 0], [7.0, 0, 1], [7.0, 0, 1]]


@pytest.mark.long
def test_code_that_checks_bounds_is_not_mixed_up_with_code_that_does_not(folder, runs):
    """A run with numba's bounds checks finds nothing wrong if it takes code from the cache that has none."""
    assert python(folder, "still", NUMBA_BOUNDSCHECK="1")["still"] == [7.0, 1, 0]


# -- other classes ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_classes_of_the_same_name_in_two_modules_run_their_own_code(runs):
    assert [run["left"] for run in runs] == [[10.0, 1, 0], [10.0, 0, 1], [10.0, 0, 1]]
    assert [run["right"] for run in runs] == [[20.0, 1, 0], [20.0, 0, 1], [20.0, 0, 1]]


@pytest.mark.long
def test_programs_that_share_a_cache_do_not_need_each_others_classes(tmp_path):
    """The first has a class the second cannot import, one that is gone by then, and one with a namesake."""
    two = component("self.x[0] + 1.0") + component("self.x[0] + 40.0", name="Gone")
    write(tmp_path, {"loop.py": LOOP, "shrinking.py": two, **TWINS})
    write(tmp_path / "elsewhere", {"lonely.py": component("self.x[0] + 30.0")})
    first = python(tmp_path, "lonely", "shrinking:Gone", "left", path=(tmp_path / "elsewhere",))
    assert first == {"lonely": [30.0, 1, 0], "shrinking:Gone": [40.0, 1, 0], "left": [10.0, 1, 0]}
    write(tmp_path, {"shrinking.py": component("self.x[0] + 1.0")})
    second = python(tmp_path, "right", "shrinking:Part", "left")
    assert second == {"right": [20.0, 1, 0], "shrinking:Part": [1.0, 1, 0], "left": [10.0, 0, 1]}


EXECUTED = """
import json, sys
from pathlib import Path
from typing import NamedTuple
import numpy as np
from artreplay.compiling import compiled, loops_compiled
import still
from loop import run

text = '''
@compiled
class Part(NamedTuple):
    x: np.ndarray
    def go(self):
        return self.x[0] + {rate}
'''
results = []
for module in ("still", "__main__", "nowhere"):
    for rate in (1.0, 2.0):
        namespace = {"__name__": module, "NamedTuple": NamedTuple, "np": np, "compiled": compiled}
        exec(text.format(rate=rate), namespace)
        results.append(run(namespace["Part"](np.zeros(1))))
files = [path for path in Path.cwd().rglob("*") if path.suffix in (".nbi", ".nbc")]
print(json.dumps([results, len(files), loops_compiled()]))
"""


def test_a_class_made_by_exec_works_and_leaves_nothing_on_disk(tmp_path):
    """Whatever module it says it comes from: the source of that says nothing of it."""
    write(tmp_path, {"loop.py": LOOP, **UNEDITED})
    results, files, counted = python(tmp_path, code=EXECUTED)
    assert results == [1.0, 2.0] * 3
    assert files == 0
    assert counted == [6, 0]


# -- starting up --------------------------------------------------------------------------------------------

IMPORTING = """
import json, sys
import artreplay as ar
found = ["numba" in sys.modules, ar.compiling.loops_compiled()]
policy = ar.ArtificialReplay(ar.MonUCB(3, 100), ar.History([0, 1, 1], [0.0, 1.0, 0.5]))
for _ in range(20):
    policy.tell(policy.ask(), 0.5)
found += ["numba" in sys.modules, ar.compiling.loops_compiled()]
print(json.dumps(found))
"""


def test_importing_and_a_few_decisions_neither_import_numba_nor_compile_anything(tmp_path):
    assert python(tmp_path, code=IMPORTING) == [False, [0, 0], False, [0, 0]]
    assert not (tmp_path / "cache").exists()


AT_ONCE = """
import json, threading
import numpy as np
from artreplay.compiling import loops_compiled
import still, own
from loop import run

barrier = threading.Barrier(4)
results = []

def work(module):
    barrier.wait()
    results.append(run(module.Part(np.zeros(1))))

threads = [threading.Thread(target=work, args=(module,)) for module in (still, own, still, own)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps([sorted(results), loops_compiled()]))
"""


def test_a_loop_that_threads_ask_for_at_once_is_made_once(tmp_path):
    write(tmp_path, {"loop.py": LOOP, **UNEDITED, **CASES["its own constant"].before})
    assert python(tmp_path, code=AT_ONCE) == [[1.0, 1.0, 7.0, 7.0], [2, 0]]


# -- a numba that does not know our private option ----------------------------------------------------------

REFUSED = """
import json
import numpy as np
from artreplay.compiling import binding, loops_compiled, using
binding.PRIVATE_OPTIONS = {"an_option_of_another_numba": False}
binding.common_options.cache_clear()
import artreplay as ar
import nest
from loop import run

with using("compiled"):
    results = [run(nest.Part(nest.Inner(np.zeros(1))))]
    log = ar.History([0, 1, 2, 2], [0.0, 1.0, 0.5, 0.0])
    policy = ar.ArtificialReplay(ar.MonUCB(3, 20, bonus=ar.bonus.practical()), log)
    for round_ in range(10):
        results.append(policy.ask())
        policy.tell(results[-1], round_ % 3 / 2)
print(json.dumps([sorted(binding.common_options()), results, policy.used, loops_compiled()]))
"""


@pytest.mark.long
def test_a_numba_that_refuses_the_private_option_compiles_without_it(tmp_path):
    log = ar.History([0, 1, 2, 2], [0.0, 1.0, 0.5, 0.0])
    policy = ar.ArtificialReplay(ar.MonUCB(3, 20, bonus=ar.bonus.practical()), log)
    played = []
    with ar.compiling.using("interpreted"):
        for round_ in range(10):
            played.append(policy.ask())
            policy.tell(played[-1], round_ % 3 / 2)
    write(tmp_path, {"loop.py": LOOP, **CASES["a component inside a component"].before})
    options, results, used, (made, found) = python(tmp_path, code=REFUSED)
    assert options == ["error_model"]
    assert results == [1.0, *played]
    assert used == policy.used
    assert made >= 2
    assert found == 0


# -- a simulation in a new process -------------------------------------------------------------------------

SIMULATION = """
import inspect
import json
import sys
import artreplay as ar
from artreplay.compiling import loops, loops_compiled
from artreplay.engine import play

loops.PATIENCE = loops.PATIENCE_TO_LOAD = -1.0
base, env = ar.MonUCB(10, horizon=1000), ar.environments.KArmed(10)
runs = ar.simulate(base, env, history=1000, horizon=1000, replications=2)
lines, first = inspect.getsourcelines(loops._entries[0].py_func)
print(json.dumps([runs.regret[:, -1].tolist(), lines[1].partition("(")[0], loops_compiled()]))
"""


def test_a_simulation_compiles_in_a_new_process_and_is_found_by_the_next(tmp_path):
    """With nothing cached: numba then also reads the source that a compiled function says it has."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SIMULATION], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    with ar.compiling.using("interpreted"):
        runs = ar.simulate(ar.MonUCB(10, 1000), ar.environments.KArmed(10), history=1000, horizon=1000, replications=2)
    (regret, source, counts), again = found
    assert regret == runs.regret[:, -1].tolist()
    assert source == "def play_one"
    assert counts == [1, 0]
    assert again == [regret, source, [0, 1]]
