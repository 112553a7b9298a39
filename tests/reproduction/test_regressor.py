"""A budgeted choice by the predictions of a scikit-learn estimator."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from regressor_kit import Learner, Recorder, log, make, show
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

import artreplay as ar
from artreplay.algorithms import exact_choice, greedy_choice
from artreplay.cells.boxes import box_of
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from reproduction.algorithms import Regressor

POLICIES = {
    "ignorant": lambda base, history: ar.Ignorant(base),
    "full-start": ar.FullStart,
    "artificial-replay": ar.ArtificialReplay,
}
with_policies = pytest.mark.parametrize("start", POLICIES.values(), ids=POLICIES)
CHOICES = {"exact": exact_choice, "greedy": greedy_choice}

# Trained on, and refitted; with draws at random, and without.
REGRESSORS = {
    "default": lambda: None,
    "network, refitted": lambda: MLPRegressor(hidden_layer_sizes=(5,), solver="lbfgs", max_iter=3),
    "stochastic gradient": lambda: SGDRegressor(),
    "linear": lambda: LinearRegression(),
    "forest": lambda: RandomForestRegressor(3),
    "pipeline": lambda: make_pipeline(StandardScaler(), BaggingRegressor(DecisionTreeRegressor(max_features=1), 3)),
}
CLASSIFIERS = {
    "network": lambda: MLPClassifier(hidden_layer_sizes=(5,)),
    "stochastic gradient": lambda: SGDClassifier(loss="log_loss"),
    "Bernoulli": lambda: BernoulliNB(),
    "Gauss": lambda: GaussianNB(),
    "logistic": lambda: LogisticRegression(),
    "logistic, cut short": lambda: LogisticRegression(max_iter=1),
    "forest": lambda: RandomForestClassifier(3),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "dummy": lambda: DummyClassifier(strategy="uniform"),
}
ALL = {f"regressor: {name}": made for name, made in REGRESSORS.items()}
ALL |= {f"classifier: {name}": made for name, made in CLASSIFIERS.items()}


def play(policy, rounds):
    actions = []
    for round_ in range(rounds):
        action = policy.ask()
        actions.append((action, policy.used))
        policy.tell(action, [float((round_ + slot) % 3 == 0) for slot in range(len(action))])
    return actions


@pytest.fixture
def calls():
    Recorder.calls.clear()
    return Recorder.calls


def fits(calls):
    return [len(call[2]) for call in calls if call[0] == "fit"]


# -- what is proposed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", CHOICES)
@pytest.mark.parametrize("side", [1, 3, 4])
def test_before_any_sample_every_box_is_worth_1(solver, side, calls):
    grid = {"dim": 2, "levels": (0, 1, 2), "budget": 4, "max_units": 3, "cells_per_side": side, "solver": solver}
    fresh = ar.GridAllocation(horizon=10, **grid).propose()
    assert Regressor(**grid).propose() == fresh
    assert Regressor(Recorder(), **grid).propose() == fresh
    assert calls == []


@pytest.mark.parametrize("solver", CHOICES)
@pytest.mark.parametrize("estimator", [LinearRegression(), KNeighborsRegressor(3)], ids=["line", "neighbours"])
def test_it_is_the_budgeted_choice_by_the_predictions_at_the_centres(solver, estimator):
    space, history = [(-1, 1), (0, 10)], log(60)
    base = make(estimator, solver=solver, cells_per_side=5, box=space, budget=5)
    show(base, ar.History(history.points * [2, 10] - [1, 0], history.rewards, levels=history.levels))
    estimator.fit(np.column_stack([history.points, history.levels]), history.rewards)
    order = ar.GridAllocation(2, (1, 2), 5, 3, horizon=10, cells_per_side=5, box=space)  # the boxes in Z-order
    centres = [order.box_of(number).centre for number in order.cell_numbers()[:25].tolist()]
    rows = [[(x + 1) / 2, y / 10, level] for x, y in centres for level in (1, 2)]  # its own scale does not matter
    values = np.clip(estimator.predict(rows).reshape(25, 2), 0, 1)
    chosen = CHOICES[solver](values, (1, 2), 5, 3)
    proposal = base.propose()
    assert [unit.level for unit in proposal] == [level + 1 for _, level in chosen]
    assert np.allclose([unit.point for unit in proposal], [centres[box] for box, _ in chosen])


def test_predictions_are_clipped_to_rewards():
    history = ar.History([[0.0], [1.0]], [0.0, 1.0], levels=[1, 1])
    base = make(LinearRegression(), dim=1, levels=(1,), budget=1, max_units=1)
    show(base, history)
    base.propose()
    base._model.coef_, base._model.intercept_ = np.array([2.0, 0.0]), 0.5
    assert base._predictions().ravel().tolist() == [0.0, 0.5, 1.0]


def test_features_are_the_coordinates_and_the_level_from_minus_1_to_1(calls):
    base = make(Recorder(), box=[(-2, 2), (0, 10)], levels=(0, 1, 4))
    base.update(ar.Allocation((-2.0, 10.0), 0.0), 0.5)
    base.update(((0, 2.5), 4), 1)
    base.propose()
    fit, predict = calls
    assert fit[1].tolist() == [[-1.0, 1.0, -1.0], [0.0, -0.5, 1.0]]
    assert fit[2].tolist() == [0.5, 1.0]
    assert len(predict[1]) == 9 * 2  # never at level 0
    centres = [[-2 / 3, -2 / 3, -0.5], [-2 / 3, -2 / 3, 1], [-2 / 3, 0, -0.5], [-2 / 3, 0, 1]]
    assert np.allclose(predict[1][:4], centres)


def test_a_network_learns_where_rewards_are_and_which_level_is_worth_it():
    network = MLPRegressor(hidden_layer_sizes=(10,), learning_rate_init=0.01, batch_size=32)
    rng = np.random.default_rng(1)
    points, levels = rng.random((6000, 2)), rng.choice([1.0, 2.0], 6000)
    rewards = ((points[:, 0] > 0.5) & (levels == 2.0)).astype(float)
    policy = ar.FullStart(
        make(network, cells_per_side=4, budget=2, max_units=2), ar.History(points, rewards, levels=levels)
    )
    (unit,) = policy.ask()
    assert unit.point[0] > 0.5
    assert unit.level == 2.0


# -- when it learns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "sizes"), [(Recorder, [1, 9, 17]), (Learner, [1, 8, 8])])
def test_it_learns_from_the_first_sample_and_then_from_every_so_many(kind, sizes, calls):
    base = make(kind())
    for _ in range(24):
        base.propose()
        base.propose()
        base.update(((0.5, 0.5), 1), 0.5)
    base.propose()
    assert fits(calls) == sizes
    assert [call[0] for call in calls] == ["fit", "predict"] * 3


@pytest.mark.parametrize("kind", [Recorder, Learner])
def test_full_start_learns_once_from_the_whole_log(kind, calls):
    policy = ar.FullStart(make(kind()), log(500))
    policy.ask()
    assert fits(calls) == [500]
    play(policy, 2)
    assert fits(calls) == [500]


def test_replay_learns_from_what_is_served(calls):
    history = log(200, levels=(1.0, 2.0))
    policy = ar.ArtificialReplay(make(Learner()), history)
    policy.ask()
    assert policy.used > 8
    assert sum(fits(calls)) <= policy.used
    assert fits(calls)[0] <= 3
    assert all(8 <= size <= 10 for size in fits(calls)[1:])
    assert not any(call[0] == "fit" and len(call[2]) == 200 for call in calls)


# -- the same every time --------------------------------------------------------------------------------------


@with_policies
@pytest.mark.parametrize("estimator", ALL.values(), ids=ALL)
def test_every_policy_plays_it_and_the_same_seed_gives_the_same_actions(estimator, start):
    history = log()
    actions = play(start(make(estimator(), seed=5), history), 12)
    assert play(start(make(estimator(), seed=5), history), 12) == actions
    for action, _ in actions:
        assert 1 <= len({unit.point for unit in action}) == len(action) <= 3
        assert sum(unit.level for unit in action) <= 4
        assert all(unit.level > 0 for unit in action)
    if start is not POLICIES["ignorant"]:
        assert actions[-1][1] > 0


def predictions(base, key=None):
    show(base, log())
    if key is not None:
        base.reseed(key)
    base.propose()
    return base._model.predict(base._grid).tolist()  # not clipped


@pytest.mark.parametrize("name", ["default", "stochastic gradient", "forest", "pipeline"])
def test_another_seed_gives_other_predictions_and_reseeding_those_of_that_seed(name):
    made = [predictions(make(REGRESSORS[name](), seed=seed)) for seed in (0, 1, 2**70)]
    assert made[0] != made[1] != made[2] != made[0]
    base = make(REGRESSORS[name]())
    base.reseed(1)
    assert predictions(base) == made[1]
    assert predictions(make(REGRESSORS[name]()), key=2**70) == made[2]  # what it was shown before is not lost


def test_reseeding_starts_afresh_with_all_samples(calls):
    base = make(Learner())
    show(base, log(20))
    base.propose()
    base.reseed(9)
    base.propose()
    assert fits(calls) == [20, 20]
    states = [call[3] for call in calls if call[0] == "fit"]
    assert states[0] != states[1]
    assert all(0 <= state < 2**32 for state in states)


def test_every_part_that_draws_has_a_seed_of_its_own():
    base = make(REGRESSORS["pipeline"]())
    show(base, log())
    base.propose()
    states = {name: value for name, value in base._model.get_params().items() if name.endswith("random_state")}
    assert len(states) == len(set(states.values())) == 2


def test_the_estimator_it_is_made_from_is_left_alone():
    estimator = LinearRegression().fit([[0.0, 0.0, 0.0]], [0.25])
    base = make(estimator)
    assert base.propose() == make().propose()
    show(base, log())
    base.propose()
    assert (estimator.coef_.tolist(), estimator.intercept_) == ([0.0, 0.0, 0.0], 0.25)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda base: pickle.loads(pickle.dumps(base))], ids=["copy", "file"])
def test_a_copy_goes_on_alone(copied):
    base, other = make(), make()
    for one in (base, other):
        show(one, log(20))
        one.propose()
    twin = copied(base)
    show(twin, log(30, seed=1))
    twin.propose()
    assert base._predictions().tolist() == other._predictions().tolist()
    show(base, log(30, seed=1))
    base.propose()
    assert base._predictions().tolist() == twin._predictions().tolist()


def test_a_proposal_that_is_changed_does_not_change_the_next():
    base = make()
    base.propose().clear()
    assert len(base.propose()) == 3


# -- classifiers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_a_classifier_predicts_the_probability_of_1(estimator):
    base = make(estimator())
    show(base, log(60))
    base.propose()
    features = base._grid
    expected = base._model.predict_proba(features)[:, 1]
    assert list(base._model.classes_) == [0, 1]
    assert base._predictions().ravel().tolist() == expected.tolist()


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "Gauss"])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_classifier_may_have_seen_one_class_only(name, reward):
    estimator = CLASSIFIERS[name]
    base = make(estimator())
    for _ in range(3):
        base.update(((0.5, 0.5), 1), reward)
    assert len(base.propose()) == 3
    values = base._predictions()
    if not hasattr(estimator(), "partial_fit"):
        assert (values == reward).all()
    for row in range(20):
        base.update(((0.5, 0.5), 1), row % 2)
    assert len(base.propose()) == 3


@pytest.mark.parametrize("reward", [0.5, 1e-9])
def test_rewards_of_a_classifier_are_0_or_1(reward):
    base = make(LogisticRegression())
    with pytest.raises(InvalidAction, match=r"reward must be 0 or 1 for a classifier \(LogisticRegression\), got"):
        base.update(((0.5, 0.5), 1), reward)
    with pytest.raises(InvalidHistory, match="row 1 is refused: reward must be 0 or 1"):
        ar.FullStart(base, ar.History([[0.5, 0.5]] * 2, [1, reward], levels=[1, 1]))


@pytest.mark.parametrize("estimator", [RidgeClassifier(), SGDClassifier(), SVC()], ids=lambda e: type(e).__name__)
def test_a_classifier_must_have_probabilities(estimator):
    with pytest.raises(InvalidParameter, match=r"a classifier must offer predict_proba, .* does not"):
        make(estimator)


# -- cells ----------------------------------------------------------------------------------------------------


def test_units_of_one_box_and_level_share_a_cell():
    base = make(box=[(0, 3), (0, 3)])
    assert base.cell(((0.1, 1.2), 1)) == base.cell(ar.Allocation((0.9, 1.99), 1.0)) == ar.Box((0, 1), (1, 2), 1.0)
    cells = {base.cell(((x, y), level)) for x in (0, 1, 2, 3) for y in (0, 1, 2, 3) for level in (0, 1, 2)}
    assert len(cells) == 27
    assert base.cell(((3, 3), 2)) == ar.Box((2, 2), (3, 3), 2.0)


def test_replay_serves_samples_of_the_proposed_boxes():
    grid = {"dim": 1, "levels": (1, 2), "budget": 1, "max_units": 1, "cells_per_side": 2}
    history = ar.History([[0.1], [0.9], [0.4], [0.3]], [1, 0, 1, 1], levels=[1, 1, 1, 2])
    policy = ar.ArtificialReplay(Regressor(Recorder(), **grid, every=100), history)
    assert policy.ask() == [ar.Allocation((0.25,), 1.0)]
    assert policy.unused_rows() == [1, 3]
    assert policy.used_by_cell() == {
        (history.unit(0), history.unit(2)): 2,
        history.unit(1): 0,
        history.unit(3): 0,
    }


@pytest.mark.parametrize("start", POLICIES)
def test_a_simulation_plays_what_its_policy_asks_for(start):
    effort = {"levels": (0.5, 1.0), "budget": 2, "max_units": 3}
    env = ar.environments.PiecewiseLinear(**effort, noise="none", finest=8)
    base = Regressor(LinearRegression(), dim=2, cells_per_side=4, every=5, **effort)
    runs = ar.simulate(base, env, start=start, history=30, horizon=10, replications=2, seed=4)
    policy = POLICIES[start](base, env.draw_history(30, seed=4, replication=1))
    for round_ in range(10):
        action = policy.ask()
        boxes = [box_of(env.lattice, number, None) for number in runs.actions[1, round_].tolist() if number >= 0]
        assert len(boxes) == len(action)
        assert all(low <= x < high for box, unit in zip(boxes, action, strict=True)
                   for low, x, high in zip(box.low, unit.point, box.high, strict=True))  # fmt: skip
        assert runs.levels[1, round_, : len(action)].tolist() == [unit.level for unit in action]
        assert runs.used[1, round_] == policy.used
        policy.tell(action, [float(env.means(np.array([unit.point]), np.array([unit.level]))[0]) for unit in action])
    if start == "full-start":  # a plane is learnt from 30 samples without noise as well as it can be
        assert runs.regret[:, -1].max() < ar.simulate(base, env, "ignorant", horizon=10).regret[:, -1].min()
