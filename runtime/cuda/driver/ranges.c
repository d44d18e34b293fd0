/* Ranges of NVTX, which a profiler shows: the library that it names in NVTX_INJECTION64_PATH is
 * asked for its functions, as by the headers of NVTX 3. Without a profiler there are none. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/driver/cuda.h"

/* Numbers of nvtxTypes.h (CUDA 13.0). */
enum {
    TABLE_CALLBACKS = 1,
    TABLE_VERSION = 3,
    MODULE_CORE = 1,
    CORE_PUSH = 9,
    CORE_POP = 11,
    CORE_FUNCTIONS = 16,
    NVTX_VERSION = 3
};

typedef void function(void);

/* The profiler's functions, by number. */
typedef struct profiler {
    pthread_once_t once;
    function *functions[CORE_FUNCTIONS];
    function **addresses[CORE_FUNCTIONS + 1]; /* of these; ended by NULL */
} profiler;

/* Returns the one of the process: a profiler's functions have no argument that tells whose they
 * are. */
static profiler *find_profiler(void) {
    static profiler p = {.once = PTHREAD_ONCE_INIT};
    return &p;
}

static int find_functions(uint32_t module, function ***out_table[1], unsigned *out_size) {
    if (module != MODULE_CORE) return 0;
    *out_table = find_profiler()->addresses;
    if (out_size) *out_size = CORE_FUNCTIONS;
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
    } version = {sizeof version, NVTX_VERSION, 0, set_version};
    return id == TABLE_CALLBACKS ? (const void *)&callbacks : id == TABLE_VERSION ? &version : NULL;
}

static void initialise(void) {
    profiler *p = find_profiler();
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
    void *symbol = library ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
    int (*start)(const void *(*find)(uint32_t id)) = NULL;
    for (int i = 1; i < CORE_FUNCTIONS; i++) p->addresses[i] = &p->functions[i];
    memcpy(&start, &symbol, sizeof start);
    if (start && start(find_table)) return;
    p->functions[CORE_PUSH] = p->functions[CORE_POP] = NULL;
    if (library) dlclose(library);
}

void cuda_range_push(void *device, const char *name) {
    profiler *p = find_profiler();
    (void)device;
    pthread_once(&p->once, initialise);
    if (p->functions[CORE_PUSH]) ((int (*)(const char *))p->functions[CORE_PUSH])(name);
}

void cuda_range_pop(void *device) {
    const profiler *p = find_profiler();
    (void)device;
    if (p->functions[CORE_POP]) ((int (*)(void))p->functions[CORE_POP])();
}
