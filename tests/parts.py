#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the time of the suite by part. usage: parts.py JUNIT.xml

Prints the seconds of all tests of a kind, in each build, and the ten longest tests. The tests run concurrently, so the
sums exceed the time of the suite.
"""
import collections
import sys
import xml.etree.ElementTree

times = collections.defaultdict(lambda: [0.0, 0.0])
tests = []
for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
    name, seconds = case.get("name"), float(case.get("time"))
    sanitized = name.startswith("sanitized/")
    kind = name.removeprefix("sanitized/").split("/")[0]
    times[kind][sanitized] += seconds
    tests.append((seconds, name))
print(f"{'tests':12}{'dev':>8}{'asan-ubsan':>12}   seconds")
for kind, (plain, sanitized) in sorted(times.items(), key=lambda row: -sum(row[1])):
    print(f"{kind:12}{plain:8.0f}{sanitized:12.0f}")
print("the longest: " + ", ".join(f"{name} {seconds:.0f}" for seconds, name in sorted(tests, reverse=True)[:10]))
