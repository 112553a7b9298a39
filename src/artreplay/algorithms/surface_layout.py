"""What a surface over the boxes of a cell is made of: its priors, and where things lie in its two arrays."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, compiled

LENGTHS = (0.5, 0.3, 0.17, 0.1)  # over which surfaces vary, as a share of the side of the space: one prior for each
DOUBT = 2.0  # nats of evidence that a prior must have more than the one before it, which is smoother, to count as much
REACH = 1.25  # the cosines are those of a box so many times as wide as the cell: at the edges of theirs they lie level
SPREAD = 0.25  # how far they lie from flat, over all of the wider box
SLOPE = 0.5  # of their planes
ROUGHNESS = 0.02  # the least deviation of a box, as a share of the spread
LEAST_VARIANCE = 1e-10  # of a weight

# What a model has, in one array of whole numbers: sizes, then where things begin in its two arrays of floats. Few
# arrays, because each of them is passed from one compiled function to the next.
# Boxes along the first and the second axis, cosines along each, axes with a slope, weights in all, and priors.
ROWS, WIDTH, MODES, MODES2, PLANES, WEIGHTS, PRIORS = range(7)
# In the table of constants: cosines (box, frequency) and coordinates (mean 0, variance 1) along each axis; amplitudes
# of cosines; the variance of each weight (prior, weight), the sum of the logarithms of these with the doubt of a prior,
# and the variance of the deviation of a box, under each prior.
COSINE, COSINE2, PLANE, PLANE2, AMPLITUDE, PRIOR, LOG_PRIOR, DEVIATION = range(7, 15)
# In the space to work in. Of each box: what its samples count for, their mean, the precision of that, and what is
# expected of it with its variance.
WEIGHT, MEAN, PRECISION, LEVEL, VARIANCE = range(15, 20)
# Cosine transforms along the second axis (box, frequency), and along both; the right side of the equation of weights.
ALONG, ALONG_MEAN, ALONG_PLANE, SPECTRUM, RIGHT = range(20, 25)
# Of each weight with each: two matrices. Of each fit, in a slot of its own: the upper triangle U of UᵀU, the precision
# of the weights; the weights; the evidence; the variance of a reward.
INVERSE, COVARIANCE, ROOT, SOLUTION, EVIDENCE, NOISE = range(25, 31)
# In the table again: the cosines along the second axis, (frequency, box).
TURNED = 31


@compiled(scratch=("work",))
class Surface(NamedTuple):
    """The boxes of a cell along two axes (in one dimension the second has one box), and space for several fits."""

    table: Floats
    work: Floats
    shape: Ints


def surface(side: int, boxes: int, dim: int, modes: int, hypotheses: int) -> Surface:
    """The model of a cell with so many boxes along each axis, out of `side`.

    It keeps the fits of so many hypotheses, one for each prior. A part of the space has every other prior: it can tell
    fewer of them apart, and there are several parts to fit.
    """
    lengths = LENGTHS if boxes == side else LENGTHS[1::2]
    slots = hypotheses * len(lengths)
    boxes2, modes2, planes = (boxes, modes, dim) if dim == 2 else (1, 1, 1)
    planes = planes if boxes > 1 else 0
    priors, deviations = [], []
    for length in lengths:
        variances, deviation = _prior(length, side, boxes, dim, modes, modes2)
        priors.append(variances + [(SLOPE * boxes / side) ** 2 / 12.0] * planes)
        deviations.append(deviation)
    rows, rows2 = _axis(boxes, 2 * modes - 1), _axis(boxes2, 2 * modes2 - 1)
    constants: list[Any] = [rows[0], rows2[0], rows[1], rows2[1], [1.0] + [math.sqrt(2.0)] * (modes - 1)]
    log_priors = [math.fsum(map(math.log, one)) + 2.0 * DOUBT * place for place, one in enumerate(priors)]
    constants += [list(itertools.chain(*priors)), log_priors, deviations]
    turned = [rows2[0][f :: 2 * modes2 - 1] for f in range(2 * modes2 - 1)]
    size, n_boxes = len(priors[0]), boxes * boxes2
    spaces = [n_boxes] * 5 + [boxes * (2 * modes2 - 1), boxes * modes2, boxes * modes2]
    spaces += [(2 * modes - 1) * (2 * modes2 - 1), size, size * size, size * size, slots * size * size, slots * size]
    spaces += [slots, slots]
    shape = [boxes, boxes2, modes, modes2, planes, size, len(lengths)]
    table = np.array(list(itertools.chain(*constants, *turned)))
    shape += _starts([len(part) for part in constants]) + _starts(spaces) + [len(table) - boxes2 * len(turned)]
    return Surface(table, np.zeros(sum(spaces)), np.array(shape, np.int64))


def _prior(length: float, side: int, boxes: int, dim: int, modes: int, modes2: int) -> tuple[list[float], float]:
    """The variances of the cosines of a surface that varies over this length, and of what they leave out."""
    width = boxes / side
    power = [math.exp(-((math.pi * k / (REACH * width) * length) ** 2) / 2.0) for k in range(4 * boxes)]
    whole = math.fsum(math.exp(-((math.pi * k / REACH * length) ** 2) / 2.0) for k in range(4 * side))
    scale = SPREAD**2 / (whole**dim - 1.0) / width**dim
    variances = [scale * power[k] * power[h] for k in range(modes) for h in range(modes2)]
    left_out = scale * (math.fsum(power) ** dim - 1.0) - math.fsum(variances[1:])
    variances[0] = 1.0
    return [max(variance, LEAST_VARIANCE) for variance in variances], max(left_out, 0.0) + (ROUGHNESS * SPREAD) ** 2


def _axis(boxes: int, frequencies: int) -> tuple[list[float], list[float]]:
    """Cosines of each frequency in the middle of each box, and the coordinates of these middles."""
    middle = [(i + 0.5) / boxes for i in range(boxes)]
    inside = [0.5 + (t - 0.5) / REACH for t in middle]
    cosines = [math.cos(math.pi * f * t) for t in inside for f in range(frequencies)]
    return cosines, [(t - 0.5) * math.sqrt(12.0) for t in middle]


def _starts(sizes: list[int]) -> list[int]:
    """Where parts of these sizes begin, one behind the other."""
    return list(itertools.accumulate(sizes, initial=0))[:-1]
