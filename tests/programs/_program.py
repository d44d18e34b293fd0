# SPDX-License-Identifier: Apache-2.0
"""Collects the programs of the imported files, by name."""

PROGRAMS = {}


def collect(lower):
    """Returns a decorator for programs that `lower` converts to text: HLO, or StableHLO, which lower.py converts to HLO."""

    def program(make):
        PROGRAMS[make.__name__] = lambda: lower(make)
        return make

    return program
