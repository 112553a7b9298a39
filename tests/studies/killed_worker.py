"""A process that decides and rewards until it is killed, and says on its standard output what was acknowledged."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import artreplay as ar


def say(*words: object) -> None:
    """Say something in one piece, whatever other threads say."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(study: ar.Study, number: int, seed: str) -> None:
    turn, contextual = 0, study.base.contextual
    while True:
        turn += 1
        context = {"country": "NL" if turn % 2 else "DE", "age": turn % 50} if contextual else None
        decision = study.decide(request_id=f"{seed} {number} {turn}", context=context)
        say("decided", decision.id)
        if turn % 3:
            study.reward(decision.id, float(turn % 2))
            say("rewarded", decision.id, turn % 2)
        if turn % 4 == 0:
            later = study.decide(
                request_id=f"{seed} {number} {turn} later", deferred=True, context=context, info={"turn": turn}
            )
            say("deferred", later.id)
            if turn % 8 == 0:
                study.activate(later.id)
                say("decided", later.id)
        if turn % 5 == 0:
            study.change(note={"turn": turn})
        if turn % 7 == 0:
            study.void(decision.id, erase=True)
            say("void", decision.id)


def give_up(failure: Any) -> None:
    """A thread failed: say so and end, for nobody would ever be told anything."""
    threading.__excepthook__(failure)
    os._exit(1)


if __name__ == "__main__":
    threading.excepthook = give_up
    place, threads, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with ar.compiling.using("interpreted"):
        study = ar.Study.open(place)
        for number in range(threads):
            threading.Thread(target=work, args=[study, number, seed], daemon=True).start()
        threading.Event().wait()
