"""A process that decides and rewards until it is killed, and says on its standard output what was acknowledged."""

from __future__ import annotations

import os
import sys
import threading

import artreplay as ar


def say(*words: object) -> None:
    """Say something in one piece, whatever other threads say."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(study: ar.Study, number: int, seed: str) -> None:
    turn = 0
    while True:
        turn += 1
        decision = study.decide(request_id=f"{seed} {number} {turn}")
        say("decided", decision.id)
        if turn % 3:
            study.reward(decision.id, float(turn % 2))
            say("rewarded", decision.id, turn % 2)
        if turn % 7 == 0:
            study.void(decision.id)
            say("void", decision.id)


if __name__ == "__main__":
    place, threads, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with ar.compiling.using("interpreted"):
        study = ar.Study.open(place)
        for number in range(threads):
            threading.Thread(target=work, args=[study, number, seed], daemon=True).start()
        threading.Event().wait()
