"""A smooth surface over the boxes of a cell, fitted to sums per box: what is expected of each, and how surely.

f(box) = w·φ(box) + an independent deviation of the box. φ are products of cosines and a plane, so that every sum over
boxes that a fit needs is a short cosine transform, and a fit costs about as much as inverting a matrix of its weights.
All loops run in a fixed order, so that compiled and interpreted code agree bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

from artreplay.algorithms.ordered_algebra import decompose, invert
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
        for j in range(k + 1, size):
            work[right + j] -= x * work[root + k * size + j]
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
    for i in range(shape[ROWS]):
        along, along_mean = shape[ALONG] + i * frequencies, shape[ALONG_MEAN] + i * modes
        along_plane = shape[ALONG_PLANE] + i * modes
        for f in range(frequencies):
            work[along + f] = 0.0
        for f in range(modes):
            work[along_mean + f] = 0.0
            work[along_plane + f] = 0.0
        for j in range(width):
            precision = work[shape[PRECISION] + i * width + j]
            if precision > 0.0:
                cosine = shape[COSINE2] + j * frequencies
                of_mean = precision * work[shape[MEAN] + i * width + j]
                of_plane = precision * table[shape[PLANE2] + j]
                for f in range(frequencies):
                    work[along + f] += precision * table[cosine + f]
                for f in range(modes):
                    work[along_mean + f] += of_mean * table[cosine + f]
                for f in range(modes):
                    work[along_plane + f] += of_plane * table[cosine + f]


@compiled
def sum_up(model: Any, root: int) -> None:
    """The precision of the weights, as far as the samples go, and the right side of their equation."""
    table, work, shape = model.table, model.work, model.shape
    modes, modes2, planes, size = shape[MODES], shape[MODES2], shape[PLANES], shape[WEIGHTS]
    frequencies, frequencies2, cosines = 2 * modes - 1, 2 * modes2 - 1, modes * modes2
    spectrum, right, amplitude = shape[SPECTRUM], shape[RIGHT], shape[AMPLITUDE]
    for at in range(frequencies * frequencies2):
        work[spectrum + at] = 0.0
    for k in range(size):
        work[right + k] = 0.0
        for axis in range(planes):
            work[root + k * size + cosines + axis] = 0.0
    for i in range(shape[ROWS]):
        u, along, cosine = table[shape[PLANE] + i], shape[ALONG] + i * frequencies2, shape[COSINE] + i * frequencies
        of_mean, of_plane = shape[ALONG_MEAN] + i * modes2, shape[ALONG_PLANE] + i * modes2
        for g in range(frequencies):
            c = table[cosine + g]
            for f in range(frequencies2):
                work[spectrum + g * frequencies2 + f] += c * work[along + f]
        for k in range(modes):
            c = table[cosine + k] * table[amplitude + k]
            for h in range(modes2):
                entry, scale = k * modes2 + h, c * table[amplitude + h]
                work[right + entry] += scale * work[of_mean + h]
                if planes > 0:
                    work[root + entry * size + cosines] += scale * u * work[along + h]
                if planes > 1:
                    work[root + entry * size + cosines + 1] += scale * work[of_plane + h]
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
    covariance, cosines, amplitude = shape[COVARIANCE], modes * modes2, shape[AMPLITUDE]
    frequencies, frequencies2, spectrum = 2 * modes - 1, 2 * modes2 - 1, shape[SPECTRUM]
    collect_frequencies(model)
    for i in range(shape[ROWS]):
        u, cosine, along = table[shape[PLANE] + i], shape[COSINE] + i * frequencies, shape[ALONG] + i * frequencies2
        for f in range(frequencies2):
            total = 0.0
            for g in range(frequencies):
                total += table[cosine + g] * work[spectrum + g * frequencies2 + f]
            work[along + f] = total
        for h in range(modes2):
            expected, tilt, tilt2 = 0.0, 0.0, 0.0
            for k in range(modes):
                entry, c = k * modes2 + h, table[cosine + k] * table[amplitude + k] * table[amplitude + h]
                expected += c * work[solution + entry]
                if planes > 0:
                    tilt += c * work[covariance + entry * size + cosines]
                if planes > 1:
                    tilt2 += c * work[covariance + entry * size + cosines + 1]
            work[shape[ALONG_MEAN] + i * modes2 + h] = expected
            work[shape[ALONG_PLANE] + i * modes2 + h] = 2.0 * tilt2
            work[along + h] += 2.0 * u * tilt
        evaluate_row(model, solution, i, u)


@compiled
def evaluate_row(model: Any, solution: int, i: int, u: float) -> None:
    """The same in one row of boxes, from the transforms of that row."""
    table, work, shape = model.table, model.work, model.shape
    modes2, planes, size, width = shape[MODES2], shape[PLANES], shape[WEIGHTS], shape[WIDTH]
    frequencies2, first = 2 * modes2 - 1, shape[MODES] * modes2
    along, of_mean = shape[ALONG] + i * frequencies2, shape[ALONG_MEAN] + i * modes2
    of_plane, tilts = shape[ALONG_PLANE] + i * modes2, shape[COVARIANCE] + first * size + first
    for j in range(width):
        cosine = shape[COSINE2] + j * frequencies2
        expected, variance, slanted = 0.0, 0.0, 0.0
        for f in range(frequencies2):
            variance += work[along + f] * table[cosine + f]
        for f in range(modes2):
            expected += work[of_mean + f] * table[cosine + f]
            slanted += work[of_plane + f] * table[cosine + f]
        if planes > 0:
            expected += u * work[solution + first]
            variance += u * u * work[tilts]
        if planes > 1:
            v = table[shape[PLANE2] + j]
            expected += v * work[solution + first + 1]
            variance += v * (slanted + 2.0 * u * work[tilts + 1]) + v * v * work[tilts + size + 1]
        work[shape[LEVEL] + i * width + j] = expected
        work[shape[VARIANCE] + i * width + j] = variance


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
