/* The backends of this build. */
#include "runtime/cpu/cpu.h"

const hlo_backend *const hlo_backends[] = {&cpu_backend, NULL};
