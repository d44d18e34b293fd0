"""What the scripts here share."""
import os


def environment(standin):
    """For the programs: CUDA's libraries are `standin`."""
    return dict(os.environ, OPENBLAS_NUM_THREADS="1",
                **{f"HLO_CUDA_{library}": standin for library in ("DRIVER", "CUBLASLT", "NVRTC")})
