"""Algorithms that the paper plays and the package does not offer."""

from reproduction.algorithms.batch_start import BatchStart
from reproduction.algorithms.plain_thompson import PlainThompson
from reproduction.algorithms.plain_ucb1 import PlainUCB1
from reproduction.algorithms.published_ids import PublishedIDS
from reproduction.algorithms.regressor import Regressor, published_network

__all__ = ["BatchStart", "PlainThompson", "PlainUCB1", "PublishedIDS", "Regressor", "published_network"]
