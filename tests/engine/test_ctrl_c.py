"""Ctrl-C of a real process in the middle of long work: it ends soon, with KeyboardInterrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import artreplay as ar

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")

SOON = 20.0  # seconds; on a quiet machine it is a fraction of one, beside a dozen other processes it was 10.6

WORK = {
    # Warmed up first: compiling, or loading what was compiled, is not what is measured.
    "many rounds": """
        base, env = ar.MonUCB(10, 10**8), ar.environments.KArmed(10)
        work = lambda horizon: ar.simulate(base, env, history=100, horizon=horizon, replications=4, keep="final")
        with ar.compiling.using("compiled"):
            work(10)
        print("ready", flush=True)
        work(10**9)
    """,
    "rounds that are costly": """
        base, env = ar.IDS(10), ar.environments.KArmed(10)
        work = lambda horizon: ar.simulate(base, env, history=100, horizon=horizon, replications=4, keep="final")
        with ar.compiling.using("compiled"):
            work(2)
        print("ready", flush=True)
        work(10**8)
    """,
    "a long log": """
        base, env = ar.MonUCB(10, 10**8), ar.environments.KArmed(10)
        work = lambda rows: ar.simulate(base, env, "full-start", rows, 10, replications=200, threads=1, keep="final")
        with ar.compiling.using("compiled"):
            work(10)
        print("ready", flush=True)
        work(3 * 10**7)
    """,
    "a long log to replay": """
        base, env = ar.MonUCB(10, 10**8), ar.environments.KArmed(10)
        work = lambda rows: ar.simulate(base, env, history=rows, horizon=10, replications=200, threads=1, keep="final")
        with ar.compiling.using("compiled"):
            work(10)
        print("ready", flush=True)
        work(3 * 10**7)
    """,
    "many replications": """
        base, env = ar.MonUCB(10, 10**8), ar.environments.KArmed(10)
        work = lambda n: ar.simulate(base, env, history=10, horizon=10, replications=n, keep="final")
        with ar.compiling.using("compiled"):
            work(10)
        print("ready", flush=True)
        work(10**8)
    """,
    "a slow function of points": """
        import time
        def slow(points):
            if len(points) == 1:
                time.sleep(0.02)
            return 0.5 + 0 * points[:, 0]
        base, env = ar.TreeUCB(1, 10**8, play="uniform"), ar.environments.Metric(slow)
        work = lambda horizon: ar.simulate(base, env, history=10, horizon=horizon, replications=4, keep="final")
        with ar.compiling.using("compiled"):
            work(10)
        print("ready", flush=True)
        work(10**8)
    """,
    "a plain object": """
        class Slow:
            def propose(self):
                return 0
            def update(self, unit, reward):
                pass
        print("ready", flush=True)
        ar.simulate(Slow(), ar.environments.KArmed(2), history=10, horizon=10**8, replications=1, keep="final")
    """,
}

BEGINNING = """
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import numpy as np
    import artreplay as ar
"""


def start(work: str) -> subprocess.Popen[str]:
    code = textwrap.dedent(BEGINNING) + textwrap.dedent(work)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    line = process.stdout.readline()
    if line.strip() != "ready":
        process.kill()
        raise AssertionError(line + process.communicate()[1])
    return process


def interrupt(process: subprocess.Popen[str], after: float) -> tuple[float, str, str]:
    """Press Ctrl-C after so many seconds; how long it took to end, and what it said."""
    time.sleep(after)
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("it went on for 30 seconds") from None
    return time.perf_counter() - began, out, err


LATER = [pytest.param(what, marks=pytest.mark.long) for what in ("a long log to replay", "a plain object")]


@pytest.mark.parametrize("what", ["many rounds", *LATER])
def test_ctrl_c_ends_a_simulation_soon(what):
    process = start(WORK[what])
    seconds, _, err = interrupt(process, after=0.6)
    assert "KeyboardInterrupt" in err.strip().splitlines()[-1]
    assert process.returncode in (-signal.SIGINT, 130)
    assert seconds < SOON


@pytest.mark.long
@pytest.mark.parametrize("what", WORK)
@pytest.mark.parametrize("after", [0.01, 0.1, 0.6, 1.5, 3.0])
def test_ctrl_c_ends_a_simulation_soon_at_any_time(what, after):
    process = start(WORK[what])
    seconds, _, err = interrupt(process, after)
    assert "KeyboardInterrupt" in err.strip().splitlines()[-1]
    assert seconds < SOON


ASKING = """
    rng = np.random.default_rng(0)
    history = ar.History(rng.integers(0, 10, 5 * 10**6), rng.random(5 * 10**6))
    policy = ar.{start}(ar.MonUCB(10, 10**7), history{relation})
    print("ready", flush=True)
    try:
        with ar.compiling.using("interpreted"):  # machine code is done in a tenth of a second
            policy.ask()
    except KeyboardInterrupt:
        for call in (policy.ask, lambda: policy.tell(0, 1.0), lambda: policy.save("policy")):
            try:
                call()
            except ar.errors.Interrupted as error:
                print(error, flush=True)
        raise
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("start_", "relation"),
    [("FullStart", ""), ("ArtificialReplay", ", relation=lambda *_: True")],
)
def test_ctrl_c_ends_an_ask_over_a_long_log_and_the_policy_refuses_to_go_on(start_, relation):
    process = start(ASKING.format(start=start_, relation=relation))
    seconds, out, err = interrupt(process, after=0.3)
    assert out.count("was interrupted in the middle of a step") == 3, err
    assert "KeyboardInterrupt" in err.strip().splitlines()[-1]
    assert seconds < SOON


@pytest.mark.long
def test_ctrl_c_while_workers_are_started_stops_them_too():
    """At every seventh bytecode of `simulate`: nothing goes on behind one's back, and nobody waits for it to end."""
    base, env = ar.MonUCB(10, 10**8), ar.environments.KArmed(10)

    def work(horizon):
        ar.simulate(base, env, history=10, horizon=horizon, replications=2, threads=2, keep="final")

    work(10)
    before = threading.active_count()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        places = _press(None, lambda: work(10))
        assert places > 100
        for number in range(0, places, 7):
            began = time.perf_counter()
            with pytest.raises(KeyboardInterrupt):
                _press(number, lambda: work(2 * 10**8))
            assert time.perf_counter() - began < SOON, number
            while threading.active_count() > before and time.perf_counter() - began < SOON:
                time.sleep(0.01)
            assert threading.active_count() == before, number
    finally:
        signal.signal(signal.SIGINT, previous)


def _press(number, call):
    """Make a call with Ctrl-C pressed at its n-th bytecode where workers are started; how many it had."""
    module, count, tracing = sys.modules["artreplay.engine.simulate"].__file__, 0, sys.gettrace()

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code.co_filename != module:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            if count == number:
                signal.raise_signal(signal.SIGINT)
            count += 1
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(tracing)
    return count
