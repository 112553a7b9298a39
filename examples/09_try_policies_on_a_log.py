"""What policies would have earned on a log whose old policy chose by position: by its propensities, and without."""

import numpy as np

import artreplay as ar

rng = np.random.default_rng(0)
rows, banners = 12_000, ["spring", "summer", "winter"]
appeal, place_adds = np.array([0.05, 0.08, 0.11]), np.array([0.25, 0.05, 0.0])

place = rng.integers(0, 3, rows)
chances = np.where(np.eye(3, dtype=bool)[place], 0.8, 0.1)  # at the top it nearly always showed the worst banner
shown = (rng.random((rows, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)
clicks = (rng.random(rows) < appeal[shown] + place_adds[place]).astype(float)
log = ar.History(
    [banners[arm] for arm in shown],
    clicks,
    contexts={"place": place.tolist(), "chance": chances[np.arange(rows), shown]},
)

policies = {f"always {banner}": banner for banner in banners}
policies["kl-ucb"] = ar.KLUCB(arms=banners, horizon=600)

for propensity in (None, "chance"):
    result = ar.evaluate(policies, log, start=0, propensity=propensity)
    print(f"\npropensity={propensity!r}")
    for policy in result.policies:
        value = policy.value
        print(f"{policy.name:14} {value.value:.3f} [{value.low:.3f}, {value.high:.3f}] over {policy.rows:,} rows")
    print(*result.sentences(), sep="\n")

print("\nwhat is true:", ", ".join(f"{b} {a + place_adds.mean():.3f}" for b, a in zip(banners, appeal, strict=True)))
