"""Saves and loads policies as one file of arrays and JSON. A file is written whole or not at all, and runs no code."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from artreplay.algorithms import ALGORITHMS, Algorithm
from artreplay.algorithms.bonus import KL, Anytime, Practical, Theory
from artreplay.algorithms.bounds import tabulate
from artreplay.algorithms.psi import BernoulliKL, Hoeffding, SubGaussian
from artreplay.compiling import arrays_of, overwrite, scalars_of
from artreplay.errors import ArtReplayError, CannotSave, InvalidFile, InvalidParameter, checked_count
from artreplay.history import Contexts, Fingerprint, History
from artreplay.replay.bases import Base, ObjectBase, as_base
from artreplay.replay.certified import rule_of, with_rule
from artreplay.replay.drift import Drift
from artreplay.replay.log import AnyHistory
from artreplay.replay.policy import Policy
from artreplay.replay.question import Question
from artreplay.replay.related import Relation, checked_relation
from artreplay.replay.step import PENDING, SAVE_SIZE
from artreplay.replay.three_policies import ArtificialReplay, FullStart, Ignorant
from artreplay.whole_files import write_whole

FORMAT = 6
MAX_UNPACKED = 512 << 20  # bytes that any file may take in memory; arrays of zeros pack a thousand times
MAX_RATIO = 100  # ... and how many times its own size a larger one may take
_MAGIC = "artreplay policy"
_POLICIES: dict[str, type[Policy]] = {policy.kind: policy for policy in (Ignorant, FullStart, ArtificialReplay)}
_SPECS = {spec.__name__: spec for spec in (Theory, Practical, Anytime, KL, Hoeffding, SubGaussian, BernoulliKL)}
_OWN_CALLABLE = {"$callable": "given again"}

Json = Any  # what json.loads returns
Arrays = dict[str, np.ndarray[Any, Any]]


def save(policy: Policy, path: str | os.PathLike[str]) -> None:
    """Write a policy to `path`."""
    document, arrays = _described(policy)
    write_whole(Path(path), lambda file: _write_zip(file, document, arrays), private=True)


def policy_as_bytes(policy: Policy) -> bytes:
    """Return what `save` writes, for callers that keep policies elsewhere than in files."""
    buffer = io.BytesIO()
    _write_zip(buffer, *_described(policy))
    return buffer.getvalue()


def load(
    path: str | os.PathLike[str],
    history: AnyHistory | None = None,
    *,
    base: object = None,
    relation: Relation | None = None,
) -> Policy:
    """Load the policy that was saved at `path`.

    Parameters
    ----------
    path
        The file that `policy.save` wrote.
    history
        The log that the policy was made with. It may have grown. Leave it out for an `Ignorant` policy.
    base
            A base made in the same way as the saved one. Give it if a file cannot hold the base: a plain object, your
            own component, or an algorithm with your own bonus or psi. The policy works on a copy of it.
    relation
        The relation, if the policy has one. Give `base` as well then.

    >>> import artreplay as ar, tempfile, pathlib
    >>> history = ar.History(["red", "blue", "blue"], [0, 1, 1])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=100), history)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     policy.save(pathlib.Path(folder) / "policy.ar")
    ...     again = ar.load(pathlib.Path(folder) / "policy.ar", history)
    >>> again.ask() == policy.ask()
    True
    """
    return _loaded(Path(path), history, base, relation)


def policy_from_bytes(saved: bytes, history: AnyHistory, base: object) -> Policy:
    """Load the policy that `policy_as_bytes` saved, over its log and a base made in the same way as then."""
    return _loaded(io.BytesIO(saved), history, base, None)


def _loaded(file: Path | io.BytesIO, history: AnyHistory | None, base: object, relation: Relation | None) -> Policy:
    checked_relation(relation)
    document, arrays = _read_zip(file)
    try:
        if document["policy"] not in _POLICIES:
            raise InvalidFile(
                f"the file holds a policy {document['policy']!r} that this version of artreplay does not have"
            )
        _check_given(document, history, base, relation)
        policy = object.__new__(_POLICIES[document["policy"]])
        policy.relation = relation
        new = _load_base(document, arrays, base, plain=relation is not None)
        policy._begin(new, _drift_again(document, new), document["history"]["unknown"])
        if policy._online is not None:
            policy._online.restore(arrays)
        _restore_position(policy, document, arrays)
        _restore_question(policy, document["question"])
        fingerprint, marks = _load_fingerprint(document["history"], arrays)
        log = History([], []) if history is None else history
        policy.resume(log, fingerprint, marks, bool(document["history"]["totals"]))
    except ArtReplayError:
        raise
    except Exception as error:  # whatever went wrong, the file caused it
        raise InvalidFile(f"is not a whole policy file: {type(error).__name__}: {error}", file=_name(file)) from error
    return policy


def _check_given(document: Json, history: object, base: object, relation: object) -> None:
    """Refuse to continue without what a file cannot hold, or with what the policy does not have."""
    log = document["history"]
    if document["policy"] == Ignorant.kind:
        if history is not None:
            raise InvalidParameter("the file holds an Ignorant policy, which has no log. Leave history out")
    elif history is None:
        raise InvalidParameter(f"the file holds a policy over a log of {log['rows']} rows. Type load(path, history).")
    if not log["relation"]:
        if relation is not None:
            raise InvalidParameter("the file holds a policy without a relation. Leave relation= out")
    elif relation is None or base is None:
        raise InvalidParameter(
            "the file holds a policy with your own relation, which a file cannot keep. Give relation= and base= again"
        )


# -- from a policy to a file -----------------------------------------------------------------------------------


def _described(policy: Policy) -> tuple[Json, Arrays]:
    """Describe a policy as JSON and arrays."""
    policy.drive.check_whole()
    arrays: Arrays = {"position": policy.drive.position[:SAVE_SIZE]}
    fingerprint = policy.fingerprint()
    arrays |= {"digests": fingerprint.digests, "marks": policy.marks()}
    arrays |= {} if policy._online is None else policy._online.kept()
    document = {
        "magic": _MAGIC,
        "format": FORMAT,
        "policy": policy.kind,
        "base": _describe_base(policy.drive.base, arrays),
        "pending": _describe_pending(policy),
        "question": None if policy._question is None else encode(list(policy._question)),
        "drift": {"given": policy._drift.value, "from_log": policy._drift.from_log},
        "history": {
            "rows": fingerprint.rows,
            "block": fingerprint.block,
            "totals": policy.log.is_totals,
            "unknown": policy.unknown,
            "relation": policy.relation is not None,
        },
    }
    return document, arrays


def _describe_base(base: Base, arrays: Arrays) -> Json:
    thing, name = base.thing, type(base.thing).__qualname__
    if isinstance(base, ObjectBase):
        if not (hasattr(thing, "state") and hasattr(thing, "restore")):
            raise CannotSave(
                f"a policy over {name} cannot be saved: a plain object must offer restore(state) and state(), which "
                "returns numbers, texts, lists, dicts and arrays"
            )
        return {"kind": "object", "class": name, "state": encode(thing.state())}
    rule = rule_of(base.component)
    arrays |= {f"base.{field}": array for field, array in arrays_of(rule).items()}
    if not isinstance(base, Algorithm):
        return {"kind": "component", "class": name, "made with": encode(scalars_of(rule))}
    if type(base) not in ALGORITHMS:
        raise CannotSave(f"{name} is not an algorithm of this package, so a file could not rebuild it")
    return {"kind": "named", "class": name, "made with": _parameters(base), "log rows": base.log_rows}


def _parameters(base: Algorithm) -> Json:
    """Return what an algorithm was made with. Of a user's callable, a file only says that there is one."""
    return {
        name: _OWN_CALLABLE if callable(value) and not _is_spec(value) else encode(value)
        for name, value in base.parameters().items()
    }


def _describe_pending(policy: Policy) -> Json:
    base, drive = policy.drive.base, policy.drive
    units = drive.position.item(PENDING)
    if units == 0:
        return None
    numbers = [int(number) for number in drive.proposed[:units]]
    entries = [base.unit(number) for number in numbers] if isinstance(base, ObjectBase) else numbers
    return {"units": encode(entries), "is_list": base.proposes_list}


# -- from a file to a policy ------------------------------------------------------------------------------------


def _load_base(document: Json, arrays: Arrays, thing: object, plain: bool) -> Base:
    """Make the base of a policy, new or as a copy of `given`, and put the saved state into it."""
    entry = document["base"]
    name = entry["class"]
    if thing is not None and type(thing).__qualname__ != name:
        raise InvalidParameter(f"base= must be a {name}, as in the file, got a {type(thing).__qualname__}")
    base = as_base(_rebuild_base(entry) if thing is None else thing, plain=plain)
    if _drift_again(document, base).is_there:
        base.allow_drift()
    if isinstance(base, Algorithm) and entry["log rows"] is not None:
        rows = entry["log rows"]
        each = [checked_count("log rows", one, least=0) for one in (rows if isinstance(rows, list) else [rows])]
        base.count_log(each if isinstance(rows, list) else each[0])
    if isinstance(base, ObjectBase):
        if not hasattr(base.thing, "restore"):
            raise InvalidParameter(f"base= must offer restore(state), and {name} does not")
        base.thing.restore(decode(entry["state"]))
        return base
    rule = rule_of(base.component)
    mine, in_file = _parameters(base) if isinstance(base, Algorithm) else encode(scalars_of(rule)), entry["made with"]
    if json.dumps(mine) != json.dumps(in_file):  # as text, in which nan equals itself
        raise InvalidParameter(f"base= must be made as the saved {name} was, with {in_file}")
    learnt = {key.removeprefix("base."): array for key, array in arrays.items() if key.startswith("base.")}
    _check_arrays(base, arrays_of(rule), learnt)
    base.component = with_rule(base.component, overwrite(rule, learnt))
    if isinstance(base, Algorithm) and not base.is_sound():
        raise InvalidFile(f"the arrays of {name} in the file contradict each other")
    return base


def _rebuild_base(entry: Json) -> Algorithm:
    """Make an algorithm with the parameters it was made with before."""
    name = entry["class"]
    if entry["kind"] != "named" or _OWN_CALLABLE in entry["made with"].values():
        own = name if entry["kind"] != "named" else f"{name} with a callable of your own"
        raise InvalidParameter(f"the file holds a policy over {own}, which it cannot rebuild. Give base= again")
    algorithm = next((cls for cls in ALGORITHMS if cls.__name__ == name), None)
    if algorithm is None:
        raise InvalidFile(f"the file holds an algorithm {name!r} that this version of artreplay does not have")
    new: Algorithm = algorithm(**{key: decode(value) for key, value in entry["made with"].items()})
    return new


def _check_arrays(base: Base, mine: Arrays, saved: Arrays) -> None:
    """Refuse arrays that do not fit the base; some arrays may have grown."""
    for name in sorted(mine.keys() | saved.keys()):
        both = name in mine and name in saved and mine[name].dtype == saved[name].dtype
        may_grow = not isinstance(base, Algorithm) or base.grows(name)
        if not both or not (mine[name].shape == saved[name].shape or may_grow):
            wrong = InvalidFile if isinstance(base, Algorithm) else InvalidParameter
            raise wrong(f"the array {name} in the file does not fit {type(base.thing).__qualname__}")
        own = base.table if isinstance(base, Algorithm) and name.endswith("bound.radius") else None
        if own is not None and not np.array_equal(tabulate(own.radius, np.empty(0), len(saved[name])), saved[name]):
            raise InvalidParameter("base= must have the same bonus or psi as the saved policy, got another one")


def _drift_again(document: Json, base: Base) -> Drift:
    entry = document["drift"]
    return Drift.restore(entry["given"], bool(entry["from_log"]), base)


def _restore_position(policy: Policy, document: Json, arrays: Arrays) -> None:
    position, drive, base = arrays["position"], policy.drive, policy.drive.base
    if position.shape != (SAVE_SIZE,) or position.dtype != np.int64 or (position < 0).any():
        raise InvalidFile("the position in the file is not that of any policy")
    drive.position[:SAVE_SIZE] = position
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


def _restore_question(policy: Policy, asked: Json) -> None:
    base = policy.drive.base
    if asked is None:
        return
    question = Question(*decode(asked))
    fits = question.context is None or (base.contextual and base.is_context(question.context))
    if not fits or not all(base.may_propose(number) for number in question.among or ()):
        raise InvalidFile("the question in the file does not fit its algorithm")
    policy._question = question


def _load_fingerprint(entry: Json, arrays: Arrays) -> tuple[Fingerprint, np.ndarray[Any, Any]]:
    """Return the fingerprint of the log when the policy was saved, and the marks of the rows used then."""
    rows, block = checked_count("rows", entry["rows"], least=0), checked_count("block", entry["block"])
    marks, digests = arrays["marks"], arrays["digests"]
    if marks.ndim != 1 or marks.dtype != np.int64 or (marks < 0).any() or (marks > rows).any():
        raise InvalidFile("the marks in the file are not those of a log of its size")
    if digests.shape != (-(-rows // block),) or (entry["totals"] and marks.shape != (1,)):
        raise InvalidFile("the marks or digests in the file are not those of a log of its size")
    return Fingerprint(rows, block, digests), marks


# -- the file ---------------------------------------------------------------------------------------------------


def _write_zip(file: IO[bytes], document: Json, arrays: Arrays) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("policy.json", json.dumps(document))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def _name(file: Path | io.BytesIO) -> str:
    return str(file) if isinstance(file, Path) else "a saved policy"


def _read_zip(file: Path | io.BytesIO) -> tuple[Json, Arrays]:
    path = _name(file)
    try:
        with zipfile.ZipFile(file) as archive:
            _check_sizes(archive, path)
            document = json.loads(archive.read("policy.json"))
            if not isinstance(document, dict) or document.get("magic") != _MAGIC:
                raise InvalidFile("is not a policy file", file=path)
            if (number := document.get("format")) != FORMAT:
                raise InvalidFile(
                    f"has format {number!r}, and this version of artreplay reads format {FORMAT}", file=path
                )
            arrays = {
                name.removesuffix(".npy"): _array_in(archive.read(name))
                for name in archive.namelist()
                if name.endswith(".npy")
            }
            n_arms = document.get("base", {}).get("made with", {}).get("n_arms")
            if isinstance(n_arms, int) and n_arms > sum(array.size for array in arrays.values()):
                raise InvalidFile(f"says that there are {n_arms:,} arms, and has no arrays for them", file=path)
    except FileNotFoundError:
        raise InvalidFile("does not exist", file=path) from None
    except InvalidFile:
        raise
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror or error}", file=path) from error
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError, AttributeError) as error:
        raise InvalidFile(f"is truncated, damaged, or not a policy file: {error}", file=path) from error
    return document, arrays


def _check_sizes(archive: zipfile.ZipFile, path: str) -> None:
    """Refuse a file that would take far more memory than it has bytes, before anything in it is read."""
    unpacked = sum(entry.file_size for entry in archive.infolist())
    most = max(MAX_UNPACKED, MAX_RATIO * sum(entry.compress_size for entry in archive.infolist()))
    if unpacked > most:
        raise InvalidFile(f"would take {unpacked:,} bytes of memory, and may take {most:,} at most", file=path)


def _array_in(saved: bytes) -> np.ndarray[Any, Any]:
    """Read an array, after seeing that it is as long as it says."""
    file = io.BytesIO(saved)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(saved) - file.tell():
        raise ValueError("an array is not as long as it says")
    return np.lib.format.read_array(io.BytesIO(saved), allow_pickle=False)


# -- values as JSON ---------------------------------------------------------------------------------------------


def encode(value: Any) -> Json:
    """Turn a value into JSON that also says what type it had."""
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
    if isinstance(value, Contexts):
        return {"$contexts": value.as_dict()}
    if _is_spec(value):
        return {"$spec": type(value).__name__, "fields": dataclasses.asdict(value)}
    raise CannotSave(f"{value!r} of type {type(value).__name__} cannot be saved as JSON")


def decode(value: Json) -> Any:
    """Turn JSON from `encode` back into the value."""
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
    if "$contexts" in value:
        return Contexts.from_dict(value["$contexts"])
    if "$spec" in value:
        return _SPECS[value["$spec"]](**value["fields"])
    return {key: decode(item) for key, item in value.items()}


def _is_spec(value: object) -> bool:
    """Return whether this is a value of this package, such as a bonus, that its name and fields describe completely."""
    return type(value).__name__ in _SPECS and dataclasses.is_dataclass(value) and not isinstance(value, type)
