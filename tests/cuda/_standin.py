"""What the scripts here share."""
import os


def environment(standin):
    """For the programs: CUDA's libraries are `standin`."""
    return dict(os.environ, **{f"HLO_CUDA_{library}": standin for library in ("DRIVER", "CUBLASLT", "NVRTC")})
