/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges, which a profiler shows. The profiler names the library that contains its functions
 * in NVTX_INJECTION64_PATH, as for the headers of NVTX 3. Without a profiler, the functions do
 * nothing. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/driver/cuda.h"
#include "runtime/cuda/driver/library.h"

typedef void function(void);

/* The profiler's functions, by number. */
typedef struct profiler {
    pthread_once_t once;
    function *functions[CUDA_NVTX_CORE_FUNCTIONS];
    function **addresses[CUDA_NVTX_CORE_FUNCTIONS + 1]; /* of `functions`, then NULL */
} profiler;

/* Returns the profiler of the process. It is static: functions of NVTX have no context. */
static profiler *find_profiler(void) {
    static profiler p = {.once = PTHREAD_ONCE_INIT};
    return &p;
}

static int find_functions(uint32_t module, function ***out_table[1], unsigned *out_size) {
    if (module != CUDA_NVTX_CORE) return 0;
    *out_table = find_profiler()->addresses;
    if (out_size) *out_size = CUDA_NVTX_CORE_FUNCTIONS;
    return 1;
}

static void set_version(uint32_t version) {
    (void)version;
}

static const void *find_table(uint32_t id) {
    static const struct {
        size_t size;
        int (*find)(uint32_t module, function ***out_table[1], unsigned *out_size);
    } callbacks = {sizeof callbacks, find_functions};
    static const struct {
        size_t size;
        uint32_t version, reserved;
        void (*set)(uint32_t version);
    } version = {sizeof version, CUDA_NVTX_VERSION, 0, set_version};
    return id == CUDA_NVTX_CALLBACKS       ? (const void *)&callbacks
           : id == CUDA_NVTX_VERSION_TABLE ? &version
                                           : NULL;
}

static void initialize(void) {
    profiler *p = find_profiler();
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
    void *symbol = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    int (*start)(const void *(*find)(uint32_t id)) = NULL;
    for (int i = 1; i < CUDA_NVTX_CORE_FUNCTIONS; i++) p->addresses[i] = &p->functions[i];
    memcpy(&start, &symbol, sizeof start);
    if (start && start(find_table)) return;
    p->functions[CUDA_NVTX_PUSH] = p->functions[CUDA_NVTX_POP] = NULL;
    if (library) dlclose(library);
}

void cuda_range_push(void *device, const char *name) {
    profiler *p = find_profiler();
    (void)device;
    pthread_once(&p->once, initialize);
    if (p->functions[CUDA_NVTX_PUSH]) ((int (*)(const char *))p->functions[CUDA_NVTX_PUSH])(name);
}

void cuda_range_pop(void *device) {
    const profiler *p = find_profiler();
    (void)device;
    if (p->functions[CUDA_NVTX_POP]) ((int (*)(void))p->functions[CUDA_NVTX_POP])();
}
