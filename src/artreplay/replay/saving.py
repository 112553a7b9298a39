"""Policies on disk: arrays and JSON in one file, written whole or not at all; nothing is executed on loading."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.algorithms import ALGORITHMS, Algorithm
from artreplay.algorithms.bonus import KL, Anytime, Practical, Theory
from artreplay.algorithms.bounds import tabulate
from artreplay.algorithms.psi import BernoulliKL, Hoeffding, SubGaussian
from artreplay.compiling import arrays_of, overwrite, scalars_of
from artreplay.errors import ArtReplayError, CannotSave, InvalidFile, InvalidParameter, checked_count
from artreplay.history import Fingerprint
from artreplay.replay.bases import Base, ComponentBase, ObjectBase, as_base
from artreplay.replay.certified import rule_of, with_rule
from artreplay.replay.drift import Drift
from artreplay.replay.log import AnyHistory, checked_unknown
from artreplay.replay.policy import ArtificialReplay, FullStart, HistoryPolicy, Ignorant, Policy
from artreplay.replay.related import checked_relation
from artreplay.replay.standing import online_of
from artreplay.replay.step import KEPT, PENDING
from artreplay.whole_files import write_whole

FORMAT = 5
_MAGIC = "artreplay policy"
_POLICIES: dict[str, type[Policy]] = {policy.kind: policy for policy in (Ignorant, FullStart, ArtificialReplay)}
_SPECS = {spec.__name__: spec for spec in (Theory, Practical, Anytime, KL, Hoeffding, SubGaussian, BernoulliKL)}
_GIVEN_AGAIN = "given again"


def save(policy: Policy, path: str | os.PathLike[str], note: dict[str, Any] | None = None) -> None:
    """Write a policy to `path`; `note` is JSON of the caller's own, handed back by `read_note`."""
    document, arrays = _described(policy, note)
    write_whole(Path(path), lambda file: _write_zip(file, document, arrays))


def policy_as_bytes(policy: Policy) -> bytes:
    """What `save` writes, for whoever keeps policies elsewhere than in files."""
    buffer = io.BytesIO()
    _write_zip(buffer, *_described(policy, None))
    return buffer.getvalue()


def policy_from_bytes(saved: bytes, base: Any) -> Any:
    """The policy that `policy_as_bytes` saved, without its log, over a base that was made again as it was made then."""
    return _loaded("a saved policy", *_read_zip(io.BytesIO(saved)), base, None, {})


def _described(policy: Policy, note: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """A policy as JSON and arrays."""
    policy.drive.check_whole()
    arrays: dict[str, np.ndarray[Any, Any]] = {"position": policy.drive.position[:KEPT]}
    document: dict[str, Any] = {
        "magic": _MAGIC,
        "format": FORMAT,
        "policy": policy.kind,
        "base": _describe_base(policy.drive.base, arrays),
        "pending": _describe_pending(policy),
        "note": note,
    }
    if isinstance(policy, HistoryPolicy):
        known = policy.fingerprint()
        document["history"] = {
            "rows": known.rows,
            "block": known.block,
            "samples": policy._log_size(),
            "totals": policy._starts_from_totals,
            "unknown": policy.unknown,
            "skipped": policy.skipped,
            "grown": policy._grown,
            "relation": policy.relation is not None,
        }
        document["drift"] = {"given": policy._drift.given, "from_log": policy._drift.from_log}
        arrays |= {"digests": known.digests, "marks": policy.marks()}
        arrays |= {} if policy._online is None else policy._online.kept()
    return document, arrays


def load(
    path: str | os.PathLike[str],
    history: AnyHistory | None = None,
    *,
    base: Any = None,
    relation: Any = None,
    bonus: Any = None,
    psi: Any = None,
) -> Any:
    """The policy that was saved at `path`, over its log, which may have rows appended.

    Without `history` it can be told and saved, and asked only after `extend(history)`. Give again what a file cannot
    hold: `base` (a plain object or a component of your own), `relation`, `bonus` or `psi` (callables).

    >>> import artreplay as ar, tempfile, pathlib
    >>> history = ar.History(["red", "blue", "blue"], [0, 1, 1])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=100), history)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     policy.save(pathlib.Path(folder) / "policy.ar")
    ...     again = ar.load(pathlib.Path(folder) / "policy.ar", history)
    >>> again.ask() == policy.ask()
    True
    """
    policy = _loaded(path, *_read_zip(Path(path)), base, relation, {"bonus": bonus, "psi": psi})
    if history is not None:
        if not isinstance(policy, HistoryPolicy):
            raise InvalidParameter(f"{path} holds an Ignorant policy, which has no log: leave history out")
        policy.extend(history)
    return policy


def _loaded(
    path: Any,
    document: dict[str, Any],
    arrays: dict[str, np.ndarray[Any, Any]],
    base: Any,
    relation: Any,
    given: dict[str, Any],
) -> Policy:
    """A policy without its log."""
    try:
        _check_relation(document, base, relation)
        policy = _empty_policy(document, _restore_base(document, arrays, base, given, relation))
        _restore_state(policy, document, arrays)
        if isinstance(policy, HistoryPolicy):
            _restore_history(policy, document["history"], arrays, relation)
            policy._drift = _restore_drift(document, policy.drive.base)
    except ArtReplayError:
        raise
    except Exception as error:  # whatever is in the file, it is the file that is wrong
        raise InvalidFile(f"is not a whole policy file: {type(error).__name__}: {error}", file=path) from error
    return policy


def _check_relation(document: dict[str, Any], base: Any, relation: Any) -> None:
    """A policy with a relation of the user's own needs it again, and its base; any other needs none."""
    checked_relation(relation)
    if not document.get("history", {}).get("relation"):
        if relation is not None:
            raise InvalidParameter("the file holds a policy without a relation of your own: leave relation= out")
    elif relation is None or base is None:
        raise InvalidParameter(
            "the file holds a policy with a relation of your own, which it cannot keep: give relation= and base= again"
        )


def read_note(path: str | os.PathLike[str]) -> Any:
    """The note a policy was saved with."""
    document, _ = _read_zip(Path(path))
    return document.get("note")


# -- writing ------------------------------------------------------------------------------------------------


def _write_zip(file: Any, document: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("policy.json", json.dumps(document))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def _describe_base(base: Base, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    thing, rule = base.thing, rule_of(base.component)
    name = type(thing).__qualname__
    if isinstance(thing, Algorithm):
        if type(thing) not in ALGORITHMS:
            raise CannotSave(f"{name} is not an algorithm of this package: a file could not rebuild it")
        arrays |= {f"base.{name}": array for name, array in arrays_of(rule).items()}
        parameters = {name: _encode_parameter(name, value) for name, value in thing.parameters().items()}
        return {"kind": "named", "class": name, "parameters": parameters}
    if isinstance(base, ComponentBase):
        arrays |= {f"base.{name}": array for name, array in arrays_of(rule).items()}
        return {"kind": "component", "class": name, "scalars": encode(scalars_of(rule))}
    if not (hasattr(thing, "state") and hasattr(thing, "restore")):
        raise CannotSave(
            f"a policy over {name} cannot be saved: a plain object must offer state(), numbers, texts, "
            "lists, dicts and arrays, and restore(state)"
        )
    return {"kind": "plain", "class": name, "state": encode(thing.state())}


def _encode_parameter(name: str, value: Any) -> Any:
    own = name in ("bonus", "psi") and callable(value) and not _is_spec(value)
    return {"$callable": _GIVEN_AGAIN} if own else encode(value)


def encode(value: Any) -> Any:
    """A value as JSON that says what it was."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"$array": value.ravel().tolist(), "shape": list(value.shape), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"$tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, dict) and all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: encode(item) for key, item in value.items()}
    if _is_spec(value):
        return {"$spec": type(value).__name__, "fields": dataclasses.asdict(value)}
    raise CannotSave(f"{value!r} of type {type(value).__name__} cannot be saved as JSON")


def _is_spec(value: Any) -> bool:
    """Whether this is a value of this package, such as a bonus, that its name and fields describe completely."""
    return type(value).__name__ in _SPECS and dataclasses.is_dataclass(value) and not isinstance(value, type)


def _describe_pending(policy: Policy) -> Any:
    base, drive = policy.drive.base, policy.drive
    units = drive.position.item(PENDING)
    if units == 0:
        return None
    numbers = [int(number) for number in drive.proposed[:units]]
    named = [base.unit(number) for number in numbers] if isinstance(base, ObjectBase) else numbers
    return {"units": encode(named), "is_list": base.proposes_list}


# -- reading ------------------------------------------------------------------------------------------------


def _read_zip(path: Path | io.BytesIO) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read("policy.json"))
            if not isinstance(document, dict) or document.get("magic") != _MAGIC:
                raise InvalidFile("is not a policy file", file=path)
            if document.get("format") != FORMAT:
                raise InvalidFile(
                    f"is written in format {document.get('format')!r}, this version of artreplay reads {FORMAT}",
                    file=path,
                )
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except FileNotFoundError:
        raise InvalidFile("does not exist", file=path) from None
    except InvalidFile:
        raise
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror or error}", file=path) from error
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError) as error:
        raise InvalidFile(f"is truncated, damaged, or not a policy file: {error}", file=path) from error
    return document, arrays


def decode(value: Any) -> Any:
    """The value that `encode` made JSON of."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        return np.array(value["$array"], dtype=value["dtype"]).reshape(value["shape"])
    if "$tuple" in value:
        return tuple(decode(item) for item in value["$tuple"])
    if "$bytes" in value:
        return bytes.fromhex(value["$bytes"])
    if "$spec" in value:
        return _SPECS[value["$spec"]](**value["fields"])
    return {key: decode(item) for key, item in value.items()}


def _restore_base(
    document: dict[str, Any],
    arrays: dict[str, np.ndarray[Any, Any]],
    given_base: Any,
    given: dict[str, Any],
    relation: Any,
) -> Base:
    """The base of a policy: made again, or the one that is given, with the saved arrays poured into it."""
    entry, name = document["base"], document["base"]["class"]
    if given_base is None:
        if entry["kind"] != "named":
            raise InvalidParameter(f"the file holds a policy over {name}, which it cannot rebuild: give base= again")
        classes = {cls.__name__: cls for cls in ALGORITHMS}
        if name not in classes:
            raise InvalidFile(f"the file holds an algorithm {name!r} that this version of artreplay does not have")
        given_base = _made_again(classes[name], entry, given)
    elif type(given_base).__qualname__ != name:
        raise InvalidParameter(f"the file holds a policy over {name}, base= is a {type(given_base).__qualname__}")
    base = as_base(given_base, plain=relation is not None)
    if "drift" in document and _restore_drift(document, base).is_there:
        base.allow_drift()
    if entry["kind"] == "plain":
        if not hasattr(base.thing, "restore"):
            raise InvalidParameter(f"base= must offer restore(state), {name} does not")
        base.thing.restore(decode(entry["state"]))
        return base
    own = {key.removeprefix("base."): array for key, array in arrays.items() if key.startswith("base.")}
    rule = rule_of(base.component)
    if isinstance(base, Algorithm):
        _check_tables(base, own)
        _check_shapes(base, rule, own)
    else:
        mine = arrays_of(rule)
        if own.keys() != mine.keys() or any(own[key].dtype != mine[key].dtype for key in own):
            raise InvalidParameter(f"base= must have the arrays of the saved {name}: {', '.join(sorted(own))}")
        if json.dumps(encode(scalars_of(rule))) != json.dumps(entry["scalars"]):
            raise InvalidParameter(f"base= must have the constants of the saved {name}: {entry['scalars']}")
    base.component = with_rule(base.component, overwrite(rule, own))
    if isinstance(base, Algorithm) and not base.is_sound():
        raise InvalidFile(f"the arrays of {name} in the file do not belong together")
    return base


def _restore_drift(document: dict[str, Any], base: Base) -> Drift:
    entry = document["drift"]
    return Drift.restored(entry["given"], bool(entry["from_log"]), base)


def _made_again(algorithm: type[Algorithm], entry: dict[str, Any], given: dict[str, Any]) -> Algorithm:
    """An algorithm as it was when it was made."""
    parameters = {
        key: _given(key, given) if value == {"$callable": _GIVEN_AGAIN} else decode(value)
        for key, value in entry["parameters"].items()
    }
    try:
        return algorithm(**parameters)
    except ArtReplayError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidFile(f"the parameters of {algorithm.__name__} in the file do not fit: {error}") from error


def _given(name: str, given: dict[str, Any]) -> Any:
    if given[name] is None:
        raise InvalidParameter(
            f"the file holds a policy with a {name} of your own, which it cannot keep: give {name}= again"
        )
    return given[name]


def _check_tables(made: Algorithm, own: dict[str, np.ndarray[Any, Any]]) -> None:
    """Refuse a callable that gives other values than the one that was saved, as far as that was used."""
    if made.table is None:
        return
    saved = next(array for name, array in own.items() if name.endswith("bound.radius"))
    if not np.array_equal(tabulate(made.table.radius, np.empty(0), len(saved)), saved):
        raise InvalidParameter("the callable given again must be the one the policy was saved with, it differs")


def _check_shapes(made: Algorithm, rule: Any, own: dict[str, np.ndarray[Any, Any]]) -> None:
    """Refuse arrays whose shapes do not fit the algorithm; some arrays may have grown."""
    for key, array in arrays_of(rule).items():
        same = own[key].dtype == array.dtype and (own[key].shape == array.shape or made.grows(key))
        if not same:
            raise InvalidFile(f"the array {key} of {type(made).__name__} in the file does not fit its parameters")


def _empty_policy(document: dict[str, Any], base: Base) -> Policy:
    kind = document["policy"]
    if kind not in _POLICIES:
        raise InvalidFile(f"the file holds a policy {kind!r} that this version of artreplay does not have")
    policy = object.__new__(_POLICIES[kind])
    Policy.__init__(policy, base)
    return policy


def _restore_state(policy: Policy, document: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    position, drive, base = arrays["position"], policy.drive, policy.drive.base
    if position.shape != (KEPT,) or position.dtype != np.int64 or (position < 0).any():
        raise InvalidFile("the position in the file is not one of a policy")
    drive.position[:KEPT] = position
    pending = document["pending"]
    if pending is None:
        drive.position[PENDING] = 0
        return
    units, is_list = decode(pending["units"]), pending["is_list"]
    numbers = [base.checked_number(unit) for unit in units] if isinstance(base, ObjectBase) else units
    fits = len(numbers) == position[PENDING] and len(numbers) > 0
    if isinstance(base, ObjectBase):
        base.proposes_list = bool(is_list)
    else:
        fits = fits and is_list == base.proposes_list and len(numbers) <= len(drive.proposal)
    if not fits or not all(type(number) is int and base.may_propose(number) for number in numbers):
        raise InvalidFile("the pending action in the file does not fit its algorithm")
    drive.proposal[: len(numbers)] = numbers


def _restore_history(
    policy: HistoryPolicy, entry: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]], relation: Any
) -> None:
    policy.relation = relation
    policy.unknown = checked_unknown(entry["unknown"])
    policy.skipped = entry["skipped"]
    rows, block = checked_count("rows", entry["rows"], least=0), checked_count("block", entry["block"])
    marks, policy._size_without_log = arrays["marks"], checked_count("samples", entry["samples"], least=0)
    most = max(rows, policy._size_without_log)
    if marks.ndim != 1 or marks.dtype != np.int64 or (marks < 0).any() or (marks > most).any():
        raise InvalidFile("the marks in the file are not those of a log of its size")
    if arrays["digests"].shape != (-(-rows // block),):
        raise InvalidFile("the digests in the file are not those of a log of its size")
    policy._starts_from_totals = bool(entry["totals"])
    if policy._starts_from_totals and marks.shape != (1,):
        raise InvalidFile("the marks in the file are not those of totals")
    policy._fingerprint = Fingerprint(rows, block, arrays["digests"])
    policy._marks_without_log = marks
    policy._grown = bool(entry["grown"])
    policy._online = online_of(policy.base)
    if policy._online is not None:
        policy._online.restore(arrays)
