"""For pytest: the fixture ``assert_fp8``, and the marker ``fp8``, which counts FP8 matmuls of what a test compiles."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line(
        "markers", "fp8(at_least=1): fails unless hlofp8.jit made so many FP8 matmuls of what the test has compiled"
    )


@pytest.fixture
def assert_fp8() -> Callable[..., Any]:
    """``hlofp8.assert_fp8``."""
    import hlofp8

    return hlofp8.assert_fp8


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Counts the FP8 matmuls of a marked test."""
    marker = item.get_closest_marker("fp8")
    if marker is None:
        yield
        return
    from hlofp8._explain import Explanation, watching

    wanted = marker.kwargs.get("at_least", marker.args[0] if marker.args else 1)
    with watching() as seen:
        outcome = yield
    found = sum(rewritten.fp8 for rewritten in seen)
    if outcome.excinfo is None and found < wanted:
        tables = "\n".join(str(Explanation(rewritten)) for rewritten in seen)
        message = f"{found} FP8 matmuls were compiled, {wanted} were expected\n{tables}"
        outcome.force_exception(pytest.fail.Exception(message, pytrace=False))
