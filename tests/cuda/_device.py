"""What the scripts here share: the device of this machine, or the stand-in."""
import ctypes
import os
import sys

SKIPPED = 77


def missing_device():
    """Why no device can be used; None when one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return str(error)
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "the CUDA driver has no device"
    return None


def environment(standin):
    """For the programs: CUDA's libraries are `standin`, or where that is None the machine's own. Exits with 77, which
    CTest takes for skipped, where there is no device then."""
    chosen = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    for library in ("DRIVER", "CUBLASLT", "NVRTC") if standin else ():
        chosen[f"HLO_CUDA_{library}"] = standin
    why = None if standin else missing_device()
    if why:
        print(f"skipped: no CUDA device ({why})")
        sys.exit(SKIPPED)
    return chosen
