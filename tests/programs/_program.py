# SPDX-License-Identifier: Apache-2.0
"""The programs of the files that have been imported, by name."""

PROGRAMS = {}


def collect(lower):
    """A decorator for programs that `lower` makes text of: HLO, or StableHLO, which lower.py makes HLO of."""

    def program(make):
        PROGRAMS[make.__name__] = lambda: lower(make)
        return make

    return program
