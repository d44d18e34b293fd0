"""What the scripts here share."""
import os


def environment(standin, accumulate="f32"):
    """For the programs: CUDA's libraries are `standin`, which sums products of fp8 values so."""
    return dict(os.environ, HLO_STANDIN_ACCUMULATE=accumulate,
                **{f"HLO_CUDA_{library}": standin for library in ("DRIVER", "CUBLASLT", "NVRTC")})
