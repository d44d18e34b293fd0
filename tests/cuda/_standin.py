# SPDX-License-Identifier: Apache-2.0
"""What the scripts here share."""
import os
import subprocess


def environment(standin, accumulate="f32"):
    """For the programs: CUDA's libraries are `standin`, which sums products of fp8 values so."""
    return dict(os.environ, HLO_STANDIN_ACCUMULATE=accumulate,
                **{f"HLO_CUDA_{library}": standin for library in ("DRIVER", "CUBLASLT", "NVRTC")})


def run(command, environment=None):
    """Exit status, output, errors."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr
