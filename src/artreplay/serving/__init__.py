"""Serves studies over HTTP to workers in any language, on any number of machines.

Its modules need the packages of the extra `artreplay[serve]`, so nothing is imported here.
"""
