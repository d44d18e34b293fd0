# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: the fixture ``assert_fp8``, and the marker ``fp8``, which requires that a test has FP8 matmuls."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker ``fp8``."""
    config.addinivalue_line(
        "markers",
        "fp8(at_least=1): fail unless the functions that hlofp8.jit compiles in the test have this many FP8 matmuls",
    )


@pytest.fixture
def assert_fp8() -> Callable[..., Any]:
    """Returns ``hlofp8.assert_fp8``."""
    import hlofp8

    return hlofp8.assert_fp8


def fp8(at_least: int = 1) -> int:
    """Returns the argument of the marker ``fp8``. Raises TypeError if the arguments are invalid."""
    if isinstance(at_least, bool) or not isinstance(at_least, int) or at_least < 1:
        raise TypeError(f"at_least must be an int of 1 or more, not {at_least!r}")
    return at_least


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Runs a test. If it has the marker ``fp8``, fails unless enough FP8 matmuls are compiled."""
    marker = item.get_closest_marker("fp8")
    if marker is None:
        yield
        return
    from hlofp8._explain import Explanation, watching

    with watching() as seen:
        outcome = yield
    try:
        wanted = fp8(*marker.args, **marker.kwargs)
    except TypeError as error:
        outcome.force_exception(pytest.fail.Exception(f"pytest.mark.fp8: {error}", pytrace=False))
        return
    found = sum(rewritten.fp8 for rewritten in seen)
    if outcome.excinfo is None and found < wanted:
        tables = "\n".join(str(Explanation(rewritten)) for rewritten in seen)
        message = f"expected at least {wanted} FP8 matmuls, found {found}\n{tables}"
        outcome.force_exception(pytest.fail.Exception(message, pytrace=False))
