"""How much a log helps, and how much of it is read, as the log grows."""

import artreplay as ar

env = ar.environments.KArmed(10)
print("rows of the log   regret: ignorant  full start  replay   read by replay   same actions")
for rows in (10, 100, 1_000, 10_000):
    runs = {
        start: ar.simulate(ar.KLUCB(10, horizon=1_000), env, start=start, history=rows, horizon=1_000, replications=40)
        for start in ("ignorant", "full-start", "artificial-replay")
    }
    ignorant, full, replay = runs.values()
    same = bool((full.actions == replay.actions).all())
    read = replay.used[:, -1].mean() / rows
    regrets = [run.final_regret()[0] for run in (ignorant, full, replay)]
    print(f"{rows:15,} {regrets[0]:17.1f} {regrets[1]:11.1f} {regrets[2]:7.1f} {read:15.0%} {same!s:>14}")
