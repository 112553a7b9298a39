"""A smooth surface over the boxes of a cell, fitted to sums per box: what is expected of each, and how surely.

f(box) = w·φ(box) + an independent deviation of the box. φ are products of cosines and a plane, so that every sum over
boxes that a fit needs is a short cosine transform, and a fit costs about as much as inverting a matrix of its weights.
All loops run in a fixed order, so that compiled and interpreted code agree bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

from artreplay.algorithms.ordered_algebra import add, clear, decompose, invert
from artreplay.algorithms.surface_layout import (
    ALONG,
    ALONG_MEAN,
    ALONG_PLANE,
    AMPLITUDE,
    COSINE,
    COSINE2,
    COVARIANCE,
    DEVIATION,
    EVIDENCE,
    INVERSE,
    LEVEL,
    LOG_PRIOR,
    MEAN,
    MODES,
    MODES2,
    NOISE,
    PLANE,
    PLANE2,
    PLANES,
    PRECISION,
    PRIOR,
    PRIORS,
    RIGHT,
    ROOT,
    ROWS,
    SOLUTION,
    SPECTRUM,
    TURNED,
    VARIANCE,
    WEIGHT,
    WEIGHTS,
    WIDTH,
)
from artreplay.compiling import Floats, Ints, compiled

GUESSES = 4  # samples that a guess of the noise counts for


@compiled(inline=False)
def learn(model: Any, slot: int, passes: int, samples: int, squares: float, total: float) -> None:
    """Fit every prior to the weights and means of the boxes, into the slots from `slot` on.

    `samples` counts the rewards behind them, `squares` and `total` are the sums of their squares and of themselves.
    The noise is what they deviate from one mean at first, then, `passes` times, what they deviate from the best fit.
    """
    work, shape = model.work, model.shape
    weight, mean, evidence = shape[WEIGHT], shape[MEAN], shape[EVIDENCE]
    boxes, priors = shape[ROWS] * shape[WIDTH], shape[PRIORS]
    share = (total + 1.0) / (samples + 2.0)
    guess = share * (1.0 - share)
    mass, weighted, explained = 0.0, 0.0, 0.0
    for box in range(boxes):
        if work[weight + box] > 0.0:
            mass += work[weight + box]
            weighted += work[weight + box] * work[mean + box]
            explained += work[weight + box] * work[mean + box] * work[mean + box]
    around_mean = max(squares - weighted * weighted / mass, 0.0)
    noise = (around_mean + GUESSES * guess) / (samples + GUESSES)
    for turn in range(passes + 1):
        best = 0
        for prior in range(priors):
            fit(model, slot + prior, prior, noise)
            if work[evidence + slot + prior] > work[evidence + slot + best]:
                best = prior
        if turn < passes:
            predict(model, slot + best, best, noise)
            noise = remaining_noise(model, samples, squares, guess, noise)
    # What the fits leave out, because they see means: the samples around the mean of their box.
    inside = max(squares - explained, 0.0) / noise + samples * math.log(noise)
    for box in range(boxes):
        if work[weight + box] > 0.0:
            inside -= math.log(noise / work[weight + box])
    for prior in range(priors):
        work[evidence + slot + prior] -= 0.5 * inside
        work[shape[NOISE] + slot + prior] = noise


@compiled
def remaining_noise(model: Any, samples: int, squares: float, guess: float, noise: float) -> float:
    """The variance of a reward around what is expected, with what a fit can hide of it."""
    work, shape = model.work, model.shape
    weight, mean, level, variance = shape[WEIGHT], shape[MEAN], shape[LEVEL], shape[VARIANCE]
    left, freedom = squares, 0.0
    for box in range(shape[ROWS] * shape[WIDTH]):
        if work[weight + box] > 0.0:
            expected = work[level + box]
            left += work[weight + box] * expected * (expected - 2.0 * work[mean + box])
            freedom += work[variance + box] * work[weight + box]
    freedom = min(freedom / noise, samples / 2.0)
    per_sample = max(left, 0.0) / max(samples - freedom, 1.0)
    return (samples * per_sample + GUESSES * guess) / (samples + GUESSES)


@compiled(inline=False)
def fit(model: Any, slot: int, prior: int, noise: float) -> None:
    """Weights of the cosines and the plane under one prior, and its evidence."""
    table, work, shape = model.table, model.work, model.shape
    size, right = shape[WEIGHTS], shape[RIGHT]
    root, solution = shape[ROOT] + slot * size * size, shape[SOLUTION] + slot * size
    score = weigh_boxes(model, table[shape[DEVIATION] + prior], noise)
    sum_along(model)
    sum_up(model, root)
    for k in range(size):
        work[root + k * size + k] += 1.0 / table[shape[PRIOR] + prior * size + k]
    score += table[shape[LOG_PRIOR] + prior] + decompose(work, root, size)
    for k in range(size):  # Uᵀx = right, then U solution = x
        x = work[right + k] / work[root + k * size + k]
        work[solution + k] = x
        score -= x * x
        add(work, right + k + 1, -x, work, root + k * size + k + 1, size - k - 1)
    for k in range(size - 1, -1, -1):
        x = work[solution + k]
        for j in range(k + 1, size):
            x -= work[root + k * size + j] * work[solution + j]
        work[solution + k] = x / work[root + k * size + k]
    work[shape[EVIDENCE] + slot] = -0.5 * score


@compiled
def weigh_boxes(model: Any, deviation: float, noise: float) -> float:
    """The precision of the mean of each box; what their own spread adds to minus twice the evidence."""
    work, shape = model.work, model.shape
    weight, mean, precision = shape[WEIGHT], shape[MEAN], shape[PRECISION]
    score = 0.0
    for box in range(shape[ROWS] * shape[WIDTH]):
        work[precision + box] = 0.0
        if work[weight + box] > 0.0:
            value = 1.0 / (deviation + noise / work[weight + box])
            work[precision + box] = value
            score += value * work[mean + box] * work[mean + box] - math.log(value)
    return score


@compiled
def sum_along(model: Any) -> None:
    """Cosine transforms along the second axis of the precisions, alone and times the means and the plane."""
    table, work, shape = model.table, model.work, model.shape
    width, modes = shape[WIDTH], shape[MODES2]
    frequencies = 2 * modes - 1
    clear(work, shape[ALONG], shape[ROWS] * frequencies)
    clear(work, shape[ALONG_MEAN], shape[ROWS] * modes)
    clear(work, shape[ALONG_PLANE], shape[ROWS] * modes)
    for i in range(shape[ROWS]):
        for j in range(width):
            precision = work[shape[PRECISION] + i * width + j]
            if precision > 0.0:
                cosine, of_mean = shape[COSINE2] + j * frequencies, precision * work[shape[MEAN] + i * width + j]
                add(work, shape[ALONG] + i * frequencies, precision, table, cosine, frequencies)
                add(work, shape[ALONG_MEAN] + i * modes, of_mean, table, cosine, modes)
                of_plane = precision * table[shape[PLANE2] + j]
                add(work, shape[ALONG_PLANE] + i * modes, of_plane, table, cosine, modes)


@compiled
def add_waves(model: Any, at: int, first: float, second: float, start: int) -> None:
    """Add to entries of the work space others of it, times amplitudes along the second axis and two numbers."""
    work, size, amplitude = model.work, model.shape[MODES2], model.shape[AMPLITUDE]
    target, source, scale = work[at : at + size], work[start : start + size], model.table[amplitude : amplitude + size]
    for h in range(size):
        target[h] += first * scale[h] * second * source[h]


@compiled
def sum_up(model: Any, root: int) -> None:
    """The precision of the weights, as far as the samples go, and the right side of their equation."""
    table, work, shape = model.table, model.work, model.shape
    modes, modes2, planes, size = shape[MODES], shape[MODES2], shape[PLANES], shape[WEIGHTS]
    frequencies, frequencies2, cosines = 2 * modes - 1, 2 * modes2 - 1, modes * modes2
    spectrum, right, tilts = shape[SPECTRUM], shape[RIGHT], shape[INVERSE]
    clear(work, spectrum, frequencies * frequencies2)
    clear(work, right, size)
    clear(work, tilts, planes * cosines)
    for i in range(shape[ROWS]):
        u, along, cosine = table[shape[PLANE] + i], shape[ALONG] + i * frequencies2, shape[COSINE] + i * frequencies
        for g in range(frequencies):
            add(work, spectrum + g * frequencies2, table[cosine + g], work, along, frequencies2)
        for k in range(modes):
            c = table[cosine + k] * table[shape[AMPLITUDE] + k]
            add_waves(model, right + k * modes2, c, 1.0, shape[ALONG_MEAN] + i * modes2)
            if planes > 0:
                add_waves(model, tilts + k * modes2, c, u, along)
            if planes > 1:
                add_waves(model, tilts + cosines + k * modes2, c, 1.0, shape[ALONG_PLANE] + i * modes2)
    for axis in range(planes):
        for k in range(cosines):
            work[root + k * size + cosines + axis] = work[tilts + axis * cosines + k]
    combine_cosines(model, root)
    if planes > 0:
        sum_planes(model, root)


@compiled
def combine_cosines(model: Any, root: int) -> None:
    """The part of the precision that is between cosines: a product of two is half the sum of two others."""
    table, work, shape = model.table, model.work, model.shape
    modes, modes2, size, amplitude = shape[MODES], shape[MODES2], shape[WEIGHTS], shape[AMPLITUDE]
    for k in range(modes):
        for h in range(k, modes):
            above = shape[SPECTRUM] + (k + h) * (2 * modes2 - 1)
            below = shape[SPECTRUM] + (h - k) * (2 * modes2 - 1)
            outer = 0.25 * table[amplitude + k] * table[amplitude + h]
            for k2 in range(modes2):
                for h2 in range(k2 if h == k else 0, modes2):
                    right, left = k2 + h2, abs(k2 - h2)
                    sums = work[above + right] + work[above + left] + work[below + right] + work[below + left]
                    scale = outer * table[amplitude + k2] * table[amplitude + h2]
                    work[root + (k * modes2 + k2) * size + h * modes2 + h2] = scale * sums


@compiled
def sum_planes(model: Any, root: int) -> None:
    """The part of the precision, and of the right side, that belongs to the planes alone."""
    table, work, shape = model.table, model.work, model.shape
    width, modes2, size = shape[WIDTH], shape[MODES2], shape[WEIGHTS]
    one, both, two, mean, mean2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(shape[ROWS]):
        u = table[shape[PLANE] + i]
        one += u * u * work[shape[ALONG] + i * (2 * modes2 - 1)]
        both += u * work[shape[ALONG_PLANE] + i * modes2]
        mean += u * work[shape[ALONG_MEAN] + i * modes2]
        for j in range(width):
            v = table[shape[PLANE2] + j]
            weighted = work[shape[PRECISION] + i * width + j] * v
            two += weighted * v
            mean2 += weighted * work[shape[MEAN] + i * width + j]
    first = shape[MODES] * modes2
    work[root + first * size + first] = one
    work[shape[RIGHT] + first] = mean
    if shape[PLANES] > 1:
        work[root + first * size + first + 1] = both
        work[root + (first + 1) * size + first + 1] = two
        work[shape[RIGHT] + first + 1] = mean2


@compiled(inline=False)
def predict(model: Any, slot: int, prior: int, noise: float) -> None:
    """Mean and variance of every box under a fit, with what its own samples say of its deviation."""
    work, shape, size = model.work, model.shape, model.shape[WEIGHTS]
    invert(work, shape[ROOT] + slot * size * size, shape[INVERSE], shape[COVARIANCE], size)
    evaluate(model, shape[SOLUTION] + slot * size)
    weight, mean, level, variance = shape[WEIGHT], shape[MEAN], shape[LEVEL], shape[VARIANCE]
    deviation = model.table[shape[DEVIATION] + prior]
    for box in range(shape[ROWS] * shape[WIDTH]):
        own = 0.0
        if work[weight + box] > 0.0:
            own = deviation / (deviation + noise / work[weight + box])
        rest = 1.0 - own
        work[level + box] += own * (work[mean + box] - work[level + box])
        work[variance + box] = rest * rest * max(work[variance + box], 0.0) + deviation * rest


@compiled
def evaluate(model: Any, solution: int) -> None:
    """φ·w and φᵀ covariance φ in every box."""
    table, work, shape = model.table, model.work, model.shape
    modes, modes2, planes, size = shape[MODES], shape[MODES2], shape[PLANES], shape[WEIGHTS]
    cosines, tilts, tilt = modes * modes2, shape[INVERSE], shape[RIGHT]
    frequencies, frequencies2, spectrum = 2 * modes - 1, 2 * modes2 - 1, shape[SPECTRUM]
    collect_frequencies(model)
    for axis in range(planes):
        for k in range(cosines):
            work[tilts + axis * cosines + k] = work[shape[COVARIANCE] + k * size + cosines + axis]
    clear(work, shape[ALONG], shape[ROWS] * frequencies2)
    clear(work, shape[ALONG_MEAN], shape[ROWS] * modes2)
    clear(work, shape[ALONG_PLANE], shape[ROWS] * modes2)
    for i in range(shape[ROWS]):
        u, cosine, along = table[shape[PLANE] + i], shape[COSINE] + i * frequencies, shape[ALONG] + i * frequencies2
        for g in range(frequencies):
            add(work, along, table[cosine + g], work, spectrum + g * frequencies2, frequencies2)
        clear(work, tilt, modes2)
        for k in range(modes):
            c = table[cosine + k] * table[shape[AMPLITUDE] + k]
            add_waves(model, shape[ALONG_MEAN] + i * modes2, c, 1.0, solution + k * modes2)
            if planes > 0:
                add_waves(model, tilt, c, 1.0, tilts + k * modes2)
            if planes > 1:
                add_waves(model, shape[ALONG_PLANE] + i * modes2, c, 1.0, tilts + cosines + k * modes2)
        if planes > 0:
            add(work, along, 2.0 * u, work, tilt, modes2)
        evaluate_row(model, solution, i, u)


@compiled
def evaluate_row(model: Any, solution: int, i: int, u: float) -> None:
    """The same in one row of boxes, from the transforms of that row."""
    table, work, shape = model.table, model.work, model.shape
    modes2, planes, size, width = shape[MODES2], shape[PLANES], shape[WEIGHTS], shape[WIDTH]
    frequencies2, first, slope = 2 * modes2 - 1, shape[MODES] * modes2, shape[PLANE2]
    level, variance, slanted = shape[LEVEL] + i * width, shape[VARIANCE] + i * width, shape[PRECISION]
    along, of_mean, of_plane = (
        shape[ALONG] + i * frequencies2,
        shape[ALONG_MEAN] + i * modes2,
        shape[ALONG_PLANE] + i * modes2,
    )
    tilts = shape[COVARIANCE] + first * size + first
    clear(work, level, width)
    clear(work, variance, width)
    clear(work, slanted, width)
    for f in range(frequencies2):
        add(work, variance, work[along + f], table, shape[TURNED] + f * width, width)
    for f in range(modes2):
        add(work, level, work[of_mean + f], table, shape[TURNED] + f * width, width)
        add(work, slanted, 2.0 * work[of_plane + f], table, shape[TURNED] + f * width, width)
    if planes > 0:
        rise, spread = u * work[solution + first], u * u * work[tilts]
        for j in range(width):
            work[level + j] += rise
            work[variance + j] += spread
    if planes > 1:
        both, spread = 2.0 * u * work[tilts + 1], work[tilts + size + 1]
        add(work, level, work[solution + first + 1], table, slope, width)
        expected, tilted, place = (
            work[variance : variance + width],
            work[slanted : slanted + width],
            table[slope : slope + width],
        )
        for j in range(width):
            expected[j] += place[j] * (tilted[j] + both) + place[j] * place[j] * spread


@compiled
def collect_frequencies(model: Any) -> None:
    """φᵀ covariance φ, as far as it is between cosines, as one sum of cosines of twice as many frequencies."""
    table, work, shape = model.table, model.work, model.shape
    modes, modes2, size, amplitude = shape[MODES], shape[MODES2], shape[WEIGHTS], shape[AMPLITUDE]
    frequencies2, covariance, spectrum = 2 * modes2 - 1, shape[COVARIANCE], shape[SPECTRUM]
    for at in range((2 * modes - 1) * frequencies2):
        work[spectrum + at] = 0.0
    for k in range(modes):
        for h in range(k, modes):
            above, below = spectrum + (k + h) * frequencies2, spectrum + (h - k) * frequencies2
            outer = 0.25 * table[amplitude + k] * table[amplitude + h]
            for k2 in range(modes2):
                for h2 in range(k2 if h == k else 0, modes2):
                    scale = outer * table[amplitude + k2] * table[amplitude + h2]
                    part = scale * work[covariance + (k * modes2 + k2) * size + h * modes2 + h2]
                    if h > k or h2 > k2:
                        part *= 2.0
                    right, left = k2 + h2, abs(k2 - h2)
                    work[above + right] += part
                    work[above + left] += part
                    work[below + right] += part
                    work[below + left] += part


@compiled
def take(model: Any, counts: Ints, totals: Floats, squares: Floats) -> tuple[int, float, float]:
    """Let a model know the sums of each box; how many samples there are, and the sums of rewards and squares."""
    work, shape = model.work, model.shape
    samples, total, square = 0, 0.0, 0.0
    for box in range(len(counts)):
        count = int(counts[box])  # plain numbers, with which interpreted code is faster
        work[shape[WEIGHT] + box] = count
        work[shape[MEAN] + box] = totals[box] / count if count > 0 else 0.0
        samples += count
        total += float(totals[box])
        square += float(squares[box])
    return samples, total, square


@compiled
def look_above(model: Any, slot: int, width: float, slack: float, upper: Floats) -> None:
    """The highest values that fits from a slot on allow, of those whose evidence is within the slack; in [0, 1]."""
    work, shape = model.work, model.shape
    evidence, noise = shape[EVIDENCE] + slot, shape[NOISE] + slot
    best = work[evidence]
    for prior in range(1, shape[PRIORS]):
        best = max(best, work[evidence + prior])
    for box in range(len(upper)):
        upper[box] = 0.0
    for prior in range(shape[PRIORS]):
        if work[evidence + prior] >= best - slack:
            predict(model, slot + prior, prior, work[noise + prior])
            for box in range(len(upper)):
                value = work[shape[LEVEL] + box] + width * math.sqrt(work[shape[VARIANCE] + box])
                upper[box] = max(upper[box], min(value, 1.0))
