/* libcuda, stood in for. */
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "standin.h"

/* ----------------------------------------------------------------------------------- the record */

enum { COUNTED = 128 };

static struct {
    const char *name;
    long count;
} calls[COUNTED];

/* Names are the first words of formats. */
static bool same_name(const char *a, const char *b) {
    size_t length = strcspn(a, " ");
    return length == strcspn(b, " ") && memcmp(a, b, length) == 0;
}

static long count_call(const char *name) {
    for (int i = 0; i < COUNTED; i++) {
        if (!calls[i].name) calls[i].name = name;
        if (same_name(calls[i].name, name)) return ++calls[i].count;
    }
    return 0;
}

static void write_line(const char *format, va_list args) {
    const char *path = getenv("HLO_STANDIN_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    vfprintf(log, format, args);
    fputc('\n', log);
    fclose(log);
}

int standin_enter(const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
    long number = count_call(format);
    const char *fail = getenv("HLO_STANDIN_FAIL");
    size_t length = strcspn(format, " ");
    if (!fail || strncmp(fail, format, length) != 0 || fail[length] != ':') return 0;
    char *end;
    long at = strtol(fail + length + 1, &end, 10);
    return at == number && *end == '=' ? atoi(end + 1) : 0;
}

void standin_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

int standin_sm(void) {
    const char *sm = getenv("HLO_STANDIN_SM");
    return sm ? atoi(sm) : 90;
}

/* The call is logged, and may be told to fail. */
#define ENTER(...)                                                                                 \
    do {                                                                                           \
        int failed = standin_enter(__VA_ARGS__);                                                   \
        if (failed) return failed;                                                                 \
    } while (0)

/* --------------------------------------------------------------------------- device and context */

static int retained;

enum { ALLOCATIONS = 1 << 14 };

typedef struct allocation {
    char *memory;
    size_t size;
    long number;
} allocation;

static allocation allocated[ALLOCATIONS];
static long allocations, numbered;
static double passed; /* milliseconds that the clock is ahead */

int cuInit(unsigned flags) {
    ENTER("cuInit %u", flags);
    return 0;
}

int cuDriverGetVersion(int *version) {
    ENTER("cuDriverGetVersion");
    *version = 13000;
    return 0;
}

int cuDeviceGetCount(int *count) {
    ENTER("cuDeviceGetCount");
    *count = 1;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    ENTER("cuDeviceGet %d", ordinal);
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    ENTER("cuDeviceGetName %d", device);
    snprintf(name, (size_t)size, "stand-in");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER("cuDeviceGetAttribute %d of %d", attribute, device);
    switch (attribute) {
    case 16: *value = 4; break;       /* multiprocessors */
    case 38: *value = 1 << 20; break; /* bytes of L2 */
    case 75: *value = standin_sm() / 10; break;
    case 76: *value = standin_sm() % 10; break;
    default: *value = 1;
    }
    return 0;
}

int cuDeviceTotalMem(size_t *bytes, int device) {
    ENTER("cuDeviceTotalMem %d", device);
    *bytes = (size_t)1 << 34;
    return 0;
}

int cuDevicePrimaryCtxRetain(cuda_context **context, int device) {
    ENTER("cuDevicePrimaryCtxRetain %d", device);
    retained++;
    *context = (cuda_context *)&retained;
    return 0;
}

int cuDevicePrimaryCtxRelease(int device) {
    ENTER("cuDevicePrimaryCtxRelease %d", device);
    if (--retained == 0 && allocations) standin_note("leaked %ld allocations", allocations);
    return 0;
}

int cuCtxSetCurrent(cuda_context *context) {
    return context == (cuda_context *)&retained ? 0 : CUDA_INVALID_HANDLE;
}

/* -------------------------------------------------------------------------------------- streams */

typedef struct node {
    struct node *next;
    void (*run)(void *argument);
    max_align_t argument[];
} node;

struct cuda_graph {
    node *first, **last;
};

struct cuda_graph_exec {
    node *first;
};

struct cuda_stream {
    cuda_graph *captured; /* NULL: nothing is captured */
    bool invalid;
};

static cuda_stream *capturing; /* the one stream of which something is captured */

/* What must not be done while anything is captured: waiting, allocating, asking. Not 0: it is. */
static int uncaptured(void) {
    if (!capturing) return 0;
    capturing->invalid = true;
    return CUDA_CAPTURE_UNSUPPORTED;
}

static node *node_new(void (*run)(void *), const void *argument, size_t size) {
    node *n = calloc(1, sizeof *n + size);
    if (!n) return NULL;
    n->run = run;
    memcpy(n->argument, argument, size);
    return n;
}

int standin_enqueue(cuda_stream *stream, void (*run)(void *argument), const void *argument,
                    size_t size) {
    node *n = node_new(run, argument, size);
    if (!n) return CUDA_OUT_OF_MEMORY;
    if (stream->captured) {
        *stream->captured->last = n;
        stream->captured->last = &n->next;
        return 0;
    }
    run(n->argument);
    free(n);
    return 0;
}

int cuStreamCreate(cuda_stream **stream, unsigned flags) {
    ENTER("cuStreamCreate %u", flags);
    *stream = calloc(1, sizeof **stream);
    return *stream ? 0 : CUDA_OUT_OF_MEMORY;
}

static void free_nodes(node *first) {
    while (first) {
        node *next = first->next;
        free(first);
        first = next;
    }
}

int cuStreamDestroy(cuda_stream *stream) {
    ENTER("cuStreamDestroy");
    if (stream->captured) {
        standin_note("destroyed while it captures");
        free_nodes(stream->captured->first);
        free(stream->captured);
    }
    if (capturing == stream) capturing = NULL;
    free(stream);
    return 0;
}

int cuStreamSynchronize(cuda_stream *stream) {
    (void)stream;
    ENTER("cuStreamSynchronize");
    return uncaptured();
}

int cuStreamBeginCapture(cuda_stream *stream, int mode) {
    ENTER("cuStreamBeginCapture %d", mode);
    if (capturing) return uncaptured();
    stream->captured = calloc(1, sizeof *stream->captured);
    if (!stream->captured) return CUDA_OUT_OF_MEMORY;
    stream->captured->last = &stream->captured->first;
    stream->invalid = false;
    capturing = stream;
    return 0;
}

int cuStreamEndCapture(cuda_stream *stream, cuda_graph **graph) {
    *graph = NULL;
    if (!stream->captured) return CUDA_INVALID_VALUE;
    cuda_graph *captured = stream->captured;
    stream->captured = NULL;
    capturing = NULL;
    int failed = standin_enter("cuStreamEndCapture");
    if (failed || stream->invalid) {
        free_nodes(captured->first);
        free(captured);
        return failed ? failed : CUDA_CAPTURE_UNSUPPORTED + 1;
    }
    *graph = captured;
    return 0;
}

int cuGraphInstantiate(cuda_graph_exec **exec, cuda_graph *graph, unsigned long long flags) {
    long nodes = 0;
    for (const node *n = graph->first; n; n = n->next) nodes++;
    ENTER("cuGraphInstantiate %ld nodes, %llu", nodes, flags);
    *exec = calloc(1, sizeof **exec);
    if (!*exec) return CUDA_OUT_OF_MEMORY;
    (*exec)->first = graph->first;
    graph->first = NULL;
    return 0;
}

int cuGraphLaunch(cuda_graph_exec *exec, cuda_stream *stream) {
    (void)stream;
    ENTER("cuGraphLaunch");
    if (capturing) return uncaptured();
    for (node *n = exec->first; n; n = n->next) n->run(n->argument);
    return 0;
}

int cuGraphExecDestroy(cuda_graph_exec *exec) {
    free_nodes(exec->first);
    free(exec);
    ENTER("cuGraphExecDestroy");
    return 0;
}

int cuGraphDestroy(cuda_graph *graph) {
    free_nodes(graph->first);
    free(graph);
    ENTER("cuGraphDestroy");
    return 0;
}

/* --------------------------------------------------------------------------------------- memory */

int cuMemGetInfo(size_t *free_bytes, size_t *total) {
    ENTER("cuMemGetInfo");
    *free_bytes = *total = (size_t)1 << 34;
    return uncaptured();
}

static const allocation *find_allocation(const void *memory) {
    for (long i = 0; i < allocations; i++) {
        const allocation *a = &allocated[i];
        if ((const char *)memory >= a->memory && (const char *)memory < a->memory + a->size)
            return a;
    }
    return NULL;
}

bool standin_allocated(const void *memory, size_t size) {
    const allocation *a = find_allocation(memory);
    return a && size <= a->size - (size_t)((const char *)memory - a->memory);
}

const char *standin_name(const void *memory, char capacity[64]) {
    const allocation *a = find_allocation(memory);
    if (!a) return NULL;
    snprintf(capacity, 64, "memory %ld+%td", a->number, (const char *)memory - a->memory);
    return capacity;
}

int cuMemAlloc(cuda_address *memory, size_t size) {
    ENTER("cuMemAlloc %zu", size);
    if (uncaptured()) return CUDA_CAPTURE_UNSUPPORTED;
    if (allocations == ALLOCATIONS) return CUDA_OUT_OF_MEMORY;
    void *made = size ? aligned_alloc(512, (size + 511) / 512 * 512) : NULL;
    if (!made) return size ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
    memset(made, 0xa5, size);
    allocated[allocations++] = (allocation){made, size, ++numbered};
    *memory = (cuda_address)(uintptr_t)made;
    return 0;
}

int cuMemFree(cuda_address memory) {
    void *freed = (void *)(uintptr_t)memory;
    for (long i = 0; i < allocations; i++)
        if (allocated[i].memory == freed) {
            allocated[i] = allocated[--allocations];
            free(freed);
            ENTER("cuMemFree");
            return 0;
        }
    return CUDA_INVALID_VALUE;
}

typedef struct copying {
    void *to;
    const void *from;
    size_t size;
    unsigned char byte;
} copying;

static void run_copy(void *argument) {
    const copying *c = argument;
    memmove(c->to, c->from, c->size);
}

static void run_fill(void *argument) {
    const copying *c = argument;
    memset(c->to, c->byte, c->size);
}

static void *host(cuda_address memory) {
    return (void *)(uintptr_t)memory;
}

int cuMemcpyHtoD(cuda_address to, const void *from, size_t size) {
    ENTER("cuMemcpyHtoD %zu", size);
    if (capturing) return uncaptured();
    memcpy(host(to), from, size);
    return 0;
}

int cuMemcpyDtoH(void *to, cuda_address from, size_t size) {
    ENTER("cuMemcpyDtoH %zu", size);
    if (capturing) return uncaptured();
    memcpy(to, host(from), size);
    return 0;
}

/* Of the host's memory that is not page-locked: the driver allows neither in a capture. */
int cuMemcpyHtoDAsync(cuda_address to, const void *from, size_t size, cuda_stream *stream) {
    (void)stream;
    ENTER("cuMemcpyHtoDAsync %zu", size);
    if (capturing) return uncaptured();
    memcpy(host(to), from, size);
    return 0;
}

int cuMemcpyDtoHAsync(void *to, cuda_address from, size_t size, cuda_stream *stream) {
    (void)stream;
    ENTER("cuMemcpyDtoHAsync %zu", size);
    if (capturing) return uncaptured();
    memcpy(to, host(from), size);
    return 0;
}

int cuMemcpyDtoDAsync(cuda_address to, cuda_address from, size_t size, cuda_stream *stream) {
    ENTER("cuMemcpyDtoDAsync %zu", size);
    const copying c = {host(to), host(from), size, 0};
    return standin_enqueue(stream, run_copy, &c, sizeof c);
}

int cuMemsetD8(cuda_address memory, unsigned char byte, size_t size) {
    ENTER("cuMemsetD8 %zu", size);
    if (capturing) return uncaptured();
    memset(host(memory), byte, size);
    return 0;
}

int cuMemsetD8Async(cuda_address memory, unsigned char byte, size_t size, cuda_stream *stream) {
    ENTER("cuMemsetD8Async %zu", size);
    const copying c = {host(memory), NULL, size, byte};
    return standin_enqueue(stream, run_fill, &c, sizeof c);
}

/* --------------------------------------------------------------------------------------- events */

struct cuda_event {
    double time;
    bool recorded;
};

void standin_pass(double milliseconds) {
    passed += milliseconds;
}

int cuEventCreate(cuda_event **event, unsigned flags) {
    ENTER("cuEventCreate %u", flags);
    *event = calloc(1, sizeof **event);
    return *event ? 0 : CUDA_OUT_OF_MEMORY;
}

int cuEventRecord(cuda_event *event, cuda_stream *stream) {
    (void)stream;
    ENTER("cuEventRecord");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *event = (cuda_event){(double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6 + passed, true};
    return 0;
}

int cuEventSynchronize(cuda_event *event) {
    (void)event;
    ENTER("cuEventSynchronize");
    return uncaptured();
}

int cuEventElapsedTime(float *milliseconds, cuda_event *start, cuda_event *end) {
    ENTER("cuEventElapsedTime");
    if (!start->recorded || !end->recorded) return CUDA_INVALID_HANDLE;
    *milliseconds = (float)(end->time - start->time);
    return 0;
}

int cuEventDestroy(cuda_event *event) {
    free(event);
    ENTER("cuEventDestroy");
    return 0;
}

/* -------------------------------------------------------------------------------------- kernels */

typedef struct indices {
    unsigned x, y, z;
} indices;

/* What every module has (shim.h). */
typedef struct shim {
    indices thread, block, block_size, grid_size;
    void (*synchronise)(void);
} shim;

struct cuda_module {
    void *handle;
    shim *shim;
    struct cuda_function *functions;
};

/* Kernels take pointers only, and no more than this. */
enum { ARGUMENTS = 64, STACK = 1 << 16 };
typedef void kernel(void *, ...);

struct cuda_function {
    struct cuda_function *next;
    cuda_module *module;
    kernel *run;
    int arguments;
    char name[64];
};

/* A "cubin" is a shared object of the host's. */
static size_t image_size(const unsigned char *image) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
    return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

static void *load_image(const void *image) {
    size_t size = image_size(image);
    int file = size ? memfd_create("module", 0) : -1;
    if (file < 0) return NULL;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *handle =
        write(file, image, size) == (ssize_t)size ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle) standin_note("%s", dlerror());
    close(file);
    return handle;
}

int cuModuleLoadData(cuda_module **module, const void *image) {
    ENTER("cuModuleLoadData");
    if (capturing) return uncaptured();
    void *handle = load_image(image);
    if (!handle) return CUDA_INVALID_IMAGE;
    *module = calloc(1, sizeof **module);
    if (!*module) return CUDA_OUT_OF_MEMORY;
    (*module)->handle = handle;
    (*module)->shim = dlsym(handle, "standin_shim");
    return (*module)->shim ? 0 : CUDA_INVALID_IMAGE;
}

int cuModuleGetFunction(cuda_function **function, cuda_module *module, const char *name) {
    char count[128];
    snprintf(count, sizeof count, "standin_arguments_%s", name);
    const int *arguments = dlsym(module->handle, count);
    ENTER("cuModuleGetFunction %s", name);
    if (!arguments || *arguments > ARGUMENTS) return CUDA_NOT_FOUND;
    cuda_function *f = calloc(1, sizeof *f);
    if (!f) return CUDA_OUT_OF_MEMORY;
    *(void **)&f->run = dlsym(module->handle, name);
    f->module = module;
    f->arguments = *arguments;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->next = module->functions;
    module->functions = f;
    *function = f;
    return f->run ? 0 : CUDA_NOT_FOUND;
}

int cuModuleUnload(cuda_module *module) {
    while (module->functions) {
        cuda_function *next = module->functions->next;
        free(module->functions);
        module->functions = next;
    }
    dlclose(module->handle);
    free(module);
    ENTER("cuModuleUnload");
    return 0;
}

int cuFuncSetAttribute(cuda_function *function, int attribute, int value) {
    ENTER("cuFuncSetAttribute %s %d = %d", function->name, attribute, value);
    return 0;
}

typedef struct launch {
    cuda_function *function;
    unsigned grid, block;
    void *arguments[ARGUMENTS];
} launch;

/* The threads of a block are fibers, so that they can wait for each other. */
typedef struct fiber {
    ucontext_t context;
    bool done;
    char *stack;
} fiber;

static struct {
    ucontext_t home;
    fiber *fibers;
    unsigned count, at;
    const launch *launch;
} block;

static void call(const launch *l) {
    void *const *a = l->arguments;
    l->function->run(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                     a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22],
                     a[23], a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31], a[32], a[33],
                     a[34], a[35], a[36], a[37], a[38], a[39], a[40], a[41], a[42], a[43], a[44],
                     a[45], a[46], a[47], a[48], a[49], a[50], a[51], a[52], a[53], a[54], a[55],
                     a[56], a[57], a[58], a[59], a[60], a[61], a[62], a[63]);
}

static void run_fiber(void) {
    call(block.launch);
    block.fibers[block.at].done = true;
}

static void synchronise(void) {
    swapcontext(&block.fibers[block.at].context, &block.home);
}

static void prepare_fiber(fiber *f) {
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = &block.home;
    f->done = false;
    makecontext(&f->context, run_fiber, 0);
}

/* From one barrier to the next, thread after thread, until all are done. */
static void run_block(shim *s) {
    for (unsigned i = 0; i < block.count; i++) prepare_fiber(&block.fibers[i]);
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < block.count; i++) {
            if (block.fibers[i].done) continue;
            block.at = i;
            s->thread.x = i;
            swapcontext(&block.home, &block.fibers[i].context);
            more |= !block.fibers[i].done;
        }
    }
}

static void run_launch(void *argument) {
    const launch *l = argument;
    shim *s = l->function->module->shim;
    s->block_size = (indices){l->block, 1, 1};
    s->grid_size = (indices){l->grid, 1, 1};
    s->synchronise = synchronise;
    block.launch = l;
    block.count = l->block;
    block.fibers = calloc(l->block, sizeof *block.fibers);
    char *stacks = malloc((size_t)l->block * STACK);
    for (unsigned i = 0; i < l->block; i++) block.fibers[i].stack = stacks + (size_t)i * STACK;
    for (unsigned b = 0; b < l->grid; b++) {
        s->block.x = b;
        run_block(s);
    }
    free(stacks);
    free(block.fibers);
}

int cuLaunchKernel(cuda_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   cuda_stream *stream, void **arguments, void **extra) {
    ENTER("cuLaunchKernel %s grid %u block %u", function->name, grid_x, block_x);
    if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared_bytes || extra ||
        grid_x == 0 || block_x == 0 || block_x > 1024)
        return CUDA_INVALID_VALUE;
    launch l = {function, grid_x, block_x, {0}};
    for (int i = 0; i < function->arguments; i++) l.arguments[i] = *(void **)arguments[i];
    return standin_enqueue(stream, run_launch, &l, sizeof l);
}

/* --------------------------------------------------------------------------------------- errors */

int cuGetErrorName(int error, const char **name) {
    static char text[32];
    snprintf(text, sizeof text, "CUDA_ERROR_%d", error);
    *name = text;
    return 0;
}

int cuGetErrorString(int error, const char **text) {
    (void)error;
    *text = "the stand-in was told to fail";
    return 0;
}
