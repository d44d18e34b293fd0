"""usage: static.py IN.npz OUT.npz doubles the floats of IN; static.py ONE.json BOTH.json compares amaxes"""
import json
import sys

import numpy as np

one, other = sys.argv[1:]
if one.endswith(".npz"):
    arrays = np.load(one)
    np.savez(other, **{name: 2 * array if array.dtype.kind == "f" else array for name, array in arrays.items()})
else:
    with open(one) as first, open(other) as second:
        before, after = json.load(first)["amaxes"], json.load(second)["amaxes"]
    assert before.keys() == after.keys()
    for name in sorted(after):
        old, new = np.atleast_1d(before[name]), np.atleast_1d(after[name])
        assert (new >= old).all()
        print(f"{name}: {new.size} number{'s' * (new.size > 1)}, {'larger' if (new > old).all() else 'equal'}")
# SPDX-License-Identifier: Apache-2.0
