# SPDX-License-Identifier: Apache-2.0
"""Defines functions that the scripts of this folder share."""
import os
import subprocess


def environment(standin, accumulate="f32"):
    """Returns the environment for programs: CUDA's libraries are the fake `standin`, which accumulates fp8 products
    in this way."""
    return dict(os.environ, HLO_STANDIN_ACCUMULATE=accumulate,
                **{f"HLO_CUDA_{library}": standin for library in ("DRIVER", "CUBLASLT", "NVRTC")})


def run(command, environment=None):
    """Runs a program; returns exit status, output, errors."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr
