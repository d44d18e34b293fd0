"""Checks the outputs of feeds.hlo by the arrays that it sends to the host.

usage: feeds.py FILE.npz
"""
import sys

import numpy

sent = numpy.load(sys.argv[1])
names = ['0', '1', 'send.7.0']
for i in range(3):
    names += [f'outfeed.{2 * i}', *(f'outfeed.{2 * i + 1}{{{k}}}' for k in range(3))]
names += ['outfeed.6', 'outfeed.7', 'outfeed.8']
assert sent.files == names, sent.files
assert [int(sent[f'outfeed.{2 * i}']) for i in range(4)] == [0, 1, 2, 3]
total, received = sent['send.7.0'], [sent[f'outfeed.{2 * i + 1}{{0}}'] for i in range(3)]
for one in received:
    total = total + one
assert (sent['0'] == total).all()
assert (sent['1'] == -sent['outfeed.7']).all() and (sent['1'] == sent['outfeed.8']).all()
assert len({x for one in received for x in one.ravel().tolist()}) == 18, 'equal draws'
# SPDX-License-Identifier: Apache-2.0
