"""Policies over points on disk: they go on as if nothing had happened, or one sentence says why they cannot."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from point_kit import BASES, TREES, given_again, log_for, play, seen, tell

import artreplay as ar
from artreplay.algorithms import index_over_boxes
from artreplay.errors import InvalidFile

bases = pytest.mark.parametrize("name", BASES)


def check_same_future(policy, again, rounds):
    assert type(again) is type(policy)
    assert repr(again) == repr(policy)
    assert seen(again) == seen(policy)
    assert play(again, rounds) == play(policy, rounds)
    assert seen(again) == seen(policy)


# -- going on -------------------------------------------------------------------------------------------------


@bases
@pytest.mark.parametrize("moment", ["fresh", "asked", "told", "asked again"])
def test_a_policy_can_be_saved_at_any_moment_and_a_pending_action_is_kept(path, name, moment):
    base = BASES[name]()
    log = log_for(base)
    policy = ar.ArtificialReplay(base, log)
    for step in ("asked", "told", "asked again"):
        if moment == "fresh":
            break
        if step == "told":
            tell(policy, policy.ask())
        else:
            policy.ask()
        if step == moment:
            break
    policy.save(path)
    loaded = ar.load(path, log, **given_again(name))
    if moment.startswith("asked"):
        used = loaded.used
        assert loaded.ask() == policy.ask()
        assert loaded.used == used == policy.used
    check_same_future(policy, loaded, 20)


@bases
def test_a_loaded_policy_goes_on_with_a_longer_log(path, name):
    base = BASES[name]()
    policy = ar.ArtificialReplay(base, log_for(base, 25))
    play(policy, 6)
    policy.ask()
    policy.save(path)
    loaded = ar.load(path, log_for(base, 60), **given_again(name))
    policy.extend(log_for(base, 60))
    check_same_future(policy, loaded, 40)


@pytest.mark.parametrize("name", [name for name in BASES if "uniform" in name])
def test_another_seed_is_kept(path, name):
    policy = ar.Ignorant(BASES[name]())
    policy.base.reseed(77)
    policy.save(path)
    loaded = ar.load(path, base=policy.base)
    assert play(loaded, 10) == play(policy, 10)


@pytest.mark.parametrize("nodes", [(1, 64), (1, 1), (500, 1)], ids=["small, usual", "small, small", "large, small"])
@pytest.mark.parametrize("name", TREES)
def test_a_forest_of_another_size_than_a_fresh_one_is_saved_and_loaded(path, name, nodes, monkeypatch):
    monkeypatch.setattr(index_over_boxes, "FIRST_NODES", nodes[0])
    policy = ar.Ignorant(BASES[name]())
    play(policy, 15)
    policy.save(path)
    monkeypatch.setattr(index_over_boxes, "FIRST_NODES", nodes[1])
    check_same_future(policy, ar.load(path, **given_again(name)), 20)


# -- files that were tampered with ----------------------------------------------------------------------------


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)


def with_array(path, name, change):
    """The file with one array changed; the array as it was."""
    parts = parts_of(path)
    array = np.load(io.BytesIO(parts[f"{name}.npy"]))
    buffer = io.BytesIO()
    np.save(buffer, change(array.copy()))
    write_parts(path, parts | {f"{name}.npy": buffer.getvalue()})
    return array


def with_document(path, change):
    parts = parts_of(path)
    document = json.loads(parts["policy.json"])
    change(document)
    write_parts(path, parts | {"policy.json": json.dumps(document).encode()})


def some_policy(path, name):
    base = BASES[name]()
    policy = ar.ArtificialReplay(base, log_for(base))
    play(policy, 12)
    policy.ask()
    policy.save(path)
    return policy


def entry(place, value):
    def change(array):
        array[place] = value
        return array

    return change


STRUCTURE = {
    "a child beyond the nodes": ("child", entry(0, 10**6)),
    "a child that is its own parent": ("child", entry(0, 0)),
    "a node with two parents": ("child", lambda array: np.where(array >= 0, array[array >= 0][0], array)),
    "no children": ("child", lambda array: np.full_like(array, -1)),
    "another parent": ("parent", entry(3, 77)),
    "a cycle": ("parent", entry(0, 1)),
    "another box": ("box", entry(3, 1)),
    "no box": ("box", entry(1, 0)),
    "another depth": ("depth", entry(3, 9)),
    "more nodes than there are": ("size", entry(0, 10**9)),
    "no nodes": ("size", entry(0, 0)),
    "fewer nodes": ("size", lambda array: array - 1),
    "a negative number of nodes": ("size", entry(0, -5)),
    "children cut short": ("child", lambda array: array[:2]),
    "children of two dimensions": ("child", lambda array: array.reshape(2, -1)),
    "boxes that are fractions": ("box", lambda array: array / 2),
}


@pytest.mark.parametrize("damage", STRUCTURE)
@pytest.mark.parametrize("name", ["TreeUCB", "TreeAllocation", "TreeAllocation, the paper's rule"])
def test_arrays_that_are_no_forest_are_refused(path, name, damage):
    log = log_for(some_policy(path, name).base)
    array, change = STRUCTURE[damage]
    with_array(path, f"base.whole.cells.{array}", change)
    with pytest.raises(InvalidFile) as refused:
        ar.load(path, log)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("what", ["leaf", "rank", "counts", "totals", "value"])
def test_arrays_of_different_lengths_are_refused(path, name, what):
    policy = some_policy(path, name)
    arrays = [part.removesuffix(".npy") for part in parts_of(path) if part.endswith(f".{what}.npy")]
    arrays = [array for array in arrays if "candidates" not in array]
    assert arrays
    for array in arrays:
        with_array(path, array, lambda values: values[:3])
        with pytest.raises(InvalidFile, match=r"(contradict each other|do not fit)"):
            ar.load(path, log_for(policy.base), **given_again(name))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("value", [-1, 10**6, -(2**62)])
def test_champions_that_are_no_leaves_are_refused(path, name, value):
    policy = some_policy(path, name)
    [leaf] = [part.removesuffix(".npy") for part in parts_of(path) if part.endswith(".leaf.npy")]
    with_array(path, leaf, entry(0, value))
    with pytest.raises(InvalidFile, match="contradict each other"):
        ar.load(path, log_for(policy.base), **given_again(name))


REGRESSION_DAMAGE = {
    "cells.place": entry(0, 5),
    "selector.box_at": entry(0, 9),
    "selector.inside": entry(0, 9),
    "selector.solver.units": entry(0, -1),
    "selector.candidates.rank": entry((0, 0), 9),
    "selector.candidates.size": entry(0, 9),
    "chosen": entry(-1, 9),
    "index.cell": entry((0, 2), 17),
    "index.wait_slot": entry((0, 3), 9),
    "index.counts": entry(0, -9),
}


@pytest.mark.parametrize("array", REGRESSION_DAMAGE)
def test_arrays_that_are_no_regression_are_refused(path, array):
    policy = ar.Ignorant(ar.PointRegression(1, 10, 8))
    policy.tell(policy.ask(), 0.5)
    policy.save(path)
    with_array(path, f"base.{array}", REGRESSION_DAMAGE[array])
    with pytest.raises(InvalidFile, match="contradict each other"):
        ar.load(path)


PENDING = [0, -1, 1, 2, 3, 1 << 56, 99 << 56 | 1, (1 << 56) - 1, 2**63 - 1, -(2**63), 2**70, 0.5, "x", None]


@bases
def test_a_pending_action_that_names_no_box_is_refused_or_leads_nowhere_bad(path, name):
    policy = some_policy(path, name)
    log = log_for(policy.base)
    for number in PENDING:
        with_document(path, lambda document: document["pending"]["units"].__setitem__(0, number))  # noqa: B023
        with suppress(InvalidFile):
            loaded = ar.load(path, log, **given_again(name))
            assert type(number) is int
            play(loaded, 3)


@pytest.mark.parametrize("name", ["GridUCB", "TreeUCB", "TreeAllocation"])
@pytest.mark.parametrize("number", [0, -1, 1 << 56, 99 << 56 | 1, 2**70, "x", None])
def test_a_number_that_is_no_box_is_refused(path, name, number):
    policy = some_policy(path, name)
    with_document(path, lambda document: document["pending"]["units"].__setitem__(0, number))
    with pytest.raises(InvalidFile):
        ar.load(path, log_for(policy.base))


MARKS = {
    "one more row": lambda marks: marks + 1,
    "more cells than there are": lambda marks: np.concatenate([marks, np.zeros(5, np.int64)]),
    "negative": lambda marks: marks - 99,
    "beyond the log": lambda marks: marks + 10**6,
    "none used": np.zeros_like,
}


@pytest.mark.parametrize("damage", MARKS)
def test_marks_that_do_not_fit_are_refused(path, damage):
    policy = some_policy(path, "TreeUCB")
    with_array(path, "marks", MARKS[damage])
    with pytest.raises(InvalidFile):
        ar.load(path, log_for(policy.base))


@bases
def test_numbers_that_were_changed_do_no_harm(path, name):
    """What no check can notice may lead to other decisions, or to an error; not to a crash, and not to a hang."""
    policy = some_policy(path, name)
    log = log_for(policy.base)
    whole = path.read_bytes()
    for array in (part.removesuffix(".npy") for part in parts_of(path) if part.startswith("base.")):
        path.write_bytes(whole)
        with_array(path, array, lambda values: values[::-1].copy() if values.ndim == 1 else values + 1)
        with suppress(Exception), ar.compiling.using("interpreted"):
            play(ar.load(path, log, **given_again(name)), 3)
