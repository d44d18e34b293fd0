# SPDX-License-Identifier: Apache-2.0
"""Calls ``hlofp8.enable`` with the options in the environment variable HLOFP8.

JAX imports the modules in the namespace package ``jax_plugins`` before it creates its first backend.
"""

import os

# Here and not in initialize(), whose exceptions JAX ignores.
if "HLOFP8" in os.environ:
    from hlofp8.__main__ import enable_from_environment

    enable_from_environment()


def initialize() -> None:
    """Called by JAX after the import. There is no backend to register."""
