# SPDX-License-Identifier: Apache-2.0
"""Defines a mutant: a mutation at a position in a file, its code in the build of all mutants, and its code alone."""
import difflib

STATEMENT, EXPRESSION = "statement", "expression"
JUMPS = b"break", b"continue"


class Mutant:
    """A mutation: `text` replaces the bytes [start, end)."""

    def __init__(self, file, start, end, kind, form, text):
        self.file, self.start, self.end, self.kind, self.form, self.text = file, start, end, kind, form, text

    def chosen(self, number, original):
        """Returns the bytes for the build of all mutants: the original and the mutated code, and the choice between
        them."""
        if self.form == STATEMENT:
            if original in JUMPS:
                return b"if (HLO_MUTANT(%d)) ; else %s" % (number, original)
            return b"(HLO_MUTANT(%d) ? (void)0 : (void)(%s))" % (number, original)
        return b"(HLO_MUTANT(%d) ? (%s) : (%s))" % (number, self.text, original)

    def alone(self, original):
        """Returns the bytes for a file with only this mutation; its lines keep their numbers."""
        text = b"(" + self.text + b")"
        if self.form == STATEMENT:
            text = b"" if original in JUMPS else b"(void)0"
        return text + b"\n" * (original.count(b"\n") - text.count(b"\n"))

    def changed(self, data):
        """Returns the bytes of the file with only this mutation."""
        return data[:self.start] + self.alone(data[self.start:self.end]) + data[self.end:]

    def difference(self, data):
        lines = [text.decode(errors="replace").split("\n") for text in (data, self.changed(data))]
        return "\n".join(difflib.unified_diff(*lines, "a/" + self.file, "b/" + self.file, n=0, lineterm=""))


def mutated(data, placed):
    """Returns the bytes of a file with all its mutants, given as (number, mutant), each of which can be selected."""
    for number, mutant in sorted(placed, key=lambda pair: -pair[1].start):
        original = data[mutant.start:mutant.end]
        data = data[:mutant.start] + mutant.chosen(number, original) + data[mutant.end:]
    return data
