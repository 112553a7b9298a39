"""What is short is interpreted, because loading or making compiled code takes longer; the result is the same."""

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import loops, loops_compiled, using
from artreplay.compiling.stamps import Stamp
from artreplay.engine import worker

SETTING = {"history": 30, "horizon": 40, "replications": 6, "seed": 3}


def simulated(**other) -> np.ndarray:
    return ar.simulate(ar.MonUCB(4, 40), ar.environments.KArmed(4), **SETTING | other).actions


def test_a_short_simulation_compiles_nothing(monkeypatch):
    monkeypatch.setattr(loops, "PATIENCE", 1e9)
    monkeypatch.setattr(loops, "PATIENCE_TO_LOAD", 1e9)
    monkeypatch.setattr(worker, "play_one", loops.Loop(worker.play_one.function))  # which nobody has compiled yet
    before = loops_compiled()
    with using("auto"):
        found = simulated()
    with using("interpreted"):
        assert (found == simulated()).all()
    assert loops_compiled() == before


def test_a_long_log_is_not_drawn_by_the_interpreter(monkeypatch):
    bound: list[object] = []
    monkeypatch.setattr(loops, "PATIENCE", 0.0001)  # seconds; the log takes three times as long
    monkeypatch.setattr(loops, "PATIENCE_TO_LOAD", 0.0001)
    monkeypatch.setattr(loops, "_interpreted", {})
    monkeypatch.setattr(loops, "thread_time", lambda: 0.0)  # this is known before anything has taken time
    monkeypatch.setattr(worker, "play_one", loops.Loop(worker.play_one.function))
    monkeypatch.setattr(loops.Loop, "bound_to", lambda self, *parts: bound.append(self) or self.interpreted)
    with using("auto"):
        simulated(history=0)
        assert not bound
        simulated()
    assert bound


@pytest.mark.long
@pytest.mark.parametrize("patience", [-1.0, 0.003], ids=["at once", "in the middle"])
def test_going_over_to_compiled_code_changes_nothing(monkeypatch, patience):
    monkeypatch.setattr(loops, "PATIENCE", patience)
    monkeypatch.setattr(loops, "PATIENCE_TO_LOAD", patience)
    monkeypatch.setattr(loops, "_interpreted", {})
    monkeypatch.setattr(worker, "play_one", loops.Loop(worker.play_one.function))  # which nobody has compiled yet
    with using("auto"):
        found = simulated()
    assert worker.play_one._by_classes
    with using("interpreted"):
        assert (found == simulated()).all()


def test_it_is_known_what_is_on_disk(tmp_path, monkeypatch):
    source = tmp_path / "source.py"
    source.write_text("def count(n):\n    return n + 1\n")
    namespace = {"__name__": "source"}
    exec(compile(source.read_text(), str(source), "exec"), namespace)
    monkeypatch.setattr(loops, "stamp", lambda function, classes: Stamp("0123456789abcdef0123", True))
    assert not loops.Loop(namespace["count"]).is_at_hand()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "source.make.locals.count_0123456789abcdef-3.py311.nbi").touch()
    assert loops.Loop(namespace["count"]).is_at_hand()
