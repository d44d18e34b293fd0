/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the fake libcuda: modules, and kernels that run on the host, one thread after another. */
#include <dlfcn.h>
#include <elf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime/cuda/driver/graph.h"
#include "standin.h"

typedef struct indices {
    unsigned x, y, z;
} indices;

/* The variables that every module defines (shim.h). */
typedef struct shim {
    indices thread, block, block_size, grid_size;
    void (*synchronize)(void);
    void (*wait)(void); /* waits for the previous kernels */
} shim;

/* For a kernel: the number of arguments, and bit sets of the arguments that are only read and of
 * those whose memory is not shared. */
typedef struct argument_kinds {
    int count;
    unsigned long long read_only, restricted;
} argument_kinds;

struct cuda_module {
    void *handle; /* NULL if the module is PTX */
    int file; /* the file stays open as long as the module is loaded, so that its name is unique */
    const char *ptx;
    shim *shim;
    struct cuda_function *functions;
};

/* The maximum number of arguments of a kernel, all of which are pointers. */
enum { ARGUMENTS = 64, STACK = 1 << 16 };
#define NOWHERE ((size_t)1 << 36) /* size of the inaccessible memory in bytes */
typedef void kernel(void *, ...);

struct cuda_function {
    struct cuda_function *next;
    cuda_module *module;
    kernel *run; /* NULL for a PTX kernel, which sets a conditional handle or does nothing */
    argument_kinds arguments;
    char name[64];
};

/* A "cubin" is a shared object of the host. */
static size_t image_size(const unsigned char *image) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
    return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

static void *load_image(const void *image, int *out_file) {
    size_t size = image_size(image);
    int file = size ? memfd_create("module", MFD_CLOEXEC) : -1;
    if (file < 0) return NULL;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *handle =
        write(file, image, size) == (ssize_t)size ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle) {
        standin_note("%s", dlerror());
        close(file);
    }
    *out_file = file;
    return handle;
}

int cuModuleLoadData(cuda_module **module, const void *image) {
    ENTER("cuModuleLoadData");
    if (standin_uncaptured()) return CUDA_CAPTURE_UNSUPPORTED;
    if (strncmp(image, ".version ", 9) == 0) {
        *module = calloc(1, sizeof **module);
        if (*module) (*module)->ptx = image;
        return *module ? 0 : CUDA_OUT_OF_MEMORY;
    }
    int file;
    void *handle = load_image(image, &file);
    if (!handle) return CUDA_INVALID_IMAGE;
    *module = calloc(1, sizeof **module);
    if (!*module) return CUDA_OUT_OF_MEMORY;
    (*module)->handle = handle;
    (*module)->file = file;
    (*module)->shim = dlsym(handle, "standin_shim");
    return (*module)->shim ? 0 : CUDA_INVALID_IMAGE;
}

int cuModuleGetFunction(cuda_function **function, cuda_module *module, const char *name) {
    char count[128], entry[128];
    snprintf(count, sizeof count, "standin_arguments_%s", name);
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const argument_kinds none = {0, 0, 0};
    const argument_kinds *its = module->handle               ? dlsym(module->handle, count)
                                : strstr(module->ptx, entry) ? &none
                                                             : NULL;
    ENTER("cuModuleGetFunction %s", name);
    if (!its || its->count > ARGUMENTS) return CUDA_NOT_FOUND;
    cuda_function *f = calloc(1, sizeof *f);
    if (!f) return CUDA_OUT_OF_MEMORY;
    if (module->handle) *(void **)&f->run = dlsym(module->handle, name);
    f->module = module;
    f->arguments = *its;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->next = module->functions;
    module->functions = f;
    *function = f;
    return f->run || !module->handle ? 0 : CUDA_NOT_FOUND;
}

int cuModuleUnload(cuda_module *module) {
    LOCK;
    standin_finish_all();
    while (module->functions) {
        cuda_function *next = module->functions->next;
        free(module->functions);
        module->functions = next;
    }
    if (module->handle) {
        dlclose(module->handle);
        close(module->file);
    }
    free(module);
    ENTER("cuModuleUnload");
    return 0;
}

typedef struct launch {
    cuda_function *function;
    unsigned grid, block;
    bool early;
    void *arguments[ARGUMENTS];
} launch;

/* The threads of a block are fibers, so that they can wait for each other. */
typedef struct fiber {
    ucontext_t context;
    bool done, waited;
    char *stack;
} fiber;

static struct {
    ucontext_t home;
    fiber *fibers;
    unsigned count, at;
    const launch *launch;
    bool rehearsing;
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

static void synchronize(void) {
    swapcontext(&block.fibers[block.at].context, &block.home);
}

static void wait(void) {
    block.fibers[block.at].waited = true;
    if (block.rehearsing) swapcontext(&block.fibers[block.at].context, &block.home);
}

static void prepare_fiber(fiber *f) {
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = &block.home;
    f->done = f->waited = false;
    makecontext(&f->context, run_fiber, 0);
}

/* Runs the threads one after another from barrier to barrier, until all are done or, in a
 * rehearsal, wait for previous kernels. */
static void run_block(shim *s) {
    for (unsigned i = 0; i < block.count; i++) prepare_fiber(&block.fibers[i]);
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < block.count; i++) {
            if (block.fibers[i].done || (block.rehearsing && block.fibers[i].waited)) continue;
            block.at = i;
            s->thread.x = i;
            swapcontext(&block.home, &block.fibers[i].context);
            more |= !block.fibers[i].done;
        }
    }
    for (unsigned i = 0; i < block.count; i++)
        if (block.launch->early && !block.fibers[i].waited)
            standin_note("early kernel %s: a thread never waits", block.launch->function->name);
}

static void run_launch(void *argument) {
    const launch *l = argument;
    shim *s = l->function->module->shim;
    if (!l->function->run) return;
    s->block_size = (indices){l->block, 1, 1};
    s->grid_size = (indices){l->grid, 1, 1};
    s->synchronize = synchronize;
    s->wait = wait;
    block.launch = l;
    block.count = l->block;
    block.fibers = calloc(l->block, sizeof *block.fibers);
    char *stacks = malloc((size_t)l->block * STACK);
    for (unsigned i = 0; i < l->block; i++) block.fibers[i].stack = stacks + (size_t)i * STACK;
    for (unsigned b = 0; b < l->grid;
         b += block.rehearsing && b + 1 < l->grid ? l->grid - 1 - b : 1) {
        s->block.x = b;
        run_block(s);
    }
    free(stacks);
    free(block.fibers);
    if (!block.rehearsing) standin_work(1);
}

static void refuse_access(int signal) {
    (void)signal;
    static const char text[] = "stand-in: an early kernel accesses memory before it waits\n";
    _exit(write(STDERR_FILENO, text, sizeof text - 1) > 0 ? 70 : 71);
}

/* Runs the first and the last block up to their wait, with arguments that point to inaccessible
 * memory. */
void standin_rehearse(const void *argument) {
    static char *nowhere;
    launch l = *(const launch *)argument;
    struct sigaction before, refuse = {.sa_handler = refuse_access};
    if (!nowhere)
        nowhere =
            mmap(NULL, NOWHERE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < ARGUMENTS; i++) l.arguments[i] = nowhere + NOWHERE / 2;
    sigaction(SIGSEGV, &refuse, &before);
    block.rehearsing = true;
    run_launch(&l);
    block.rehearsing = false;
    sigaction(SIGSEGV, &before, NULL);
}

typedef struct choosing {
    uint64_t handle;
    const void *value;
    uint32_t wanted, count;
} choosing;

/* Equivalent to the kernel of runtime/cuda/driver/graph.c. */
static void run_choose(void *argument) {
    const choosing *c = argument;
    uint32_t chosen;
    if (c->count) {
        memcpy(&chosen, c->value, sizeof chosen);
        if (chosen > c->count - 1) chosen = c->count - 1;
    } else {
        chosen = *(const unsigned char *)c->value != 0;
    }
    standin_set_conditional(c->handle, chosen == c->wanted);
}

static int launch_choose(cuda_stream *stream, void **arguments) {
    const choosing c = {*(uint64_t *)arguments[0], *(void **)arguments[1],
                        *(uint32_t *)arguments[2], *(uint32_t *)arguments[3]};
    if (!standin_allocated(c.value, c.count ? 4 : 1)) return CUDA_INVALID_VALUE;
    return standin_enqueue(stream, STANDIN_OTHER, run_choose, &c, sizeof c);
}

/* Returns true if two arguments are the same device memory, one of them is written, and one of them
 * must not be shared. */
static bool is_shared(const launch *l) {
    const argument_kinds *a = &l->function->arguments;
    for (int i = 0; i < a->count; i++)
        for (int j = i + 1; j < a->count; j++) {
            const unsigned long long pair = 1ull << i | 1ull << j;
            if (l->arguments[i] == l->arguments[j] && standin_allocated(l->arguments[i], 1) &&
                (a->read_only & pair) != pair && a->restricted & pair)
                return true;
        }
    return false;
}

/* Launches a kernel with a one-dimensional grid. */
static int launch_kernel(cuda_function *function, unsigned grid, unsigned block_size,
                         cuda_stream *stream, void **arguments, bool early) {
    if (grid == 0 || block_size == 0 || block_size > 1024) return CUDA_INVALID_VALUE;
    if (strcmp(function->name, "choose") == 0 && !function->run)
        return grid * block_size == 1 && !early ? launch_choose(stream, arguments)
                                                : CUDA_INVALID_VALUE;
    launch l = {function, grid, block_size, early && function->run, {0}};
    for (int i = 0; i < function->arguments.count; i++) l.arguments[i] = *(void **)arguments[i];
    if (is_shared(&l)) {
        standin_note("  a restricted pointer is another's, too");
        return CUDA_INVALID_VALUE;
    }
    return standin_enqueue(stream, early ? STANDIN_EARLY : STANDIN_KERNEL, run_launch, &l,
                           sizeof l);
}

int cuLaunchKernel(cuda_function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   cuda_stream *stream, void **arguments, void **extra) {
    ENTER("cuLaunchKernel %s grid %u block %u", function->name, grid_x, block_x);
    if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared_bytes || extra)
        return CUDA_INVALID_VALUE;
    return launch_kernel(function, grid_x, block_x, stream, arguments, false);
}

int cuLaunchKernelEx(const cuda_launch_config *c, cuda_function *function, void **arguments,
                     void **extra) {
    ENTER("cuLaunchKernelEx %s grid %u block %u", function->name, c->grid[0], c->block[0]);
    if (c->grid[1] != 1 || c->grid[2] != 1 || c->block[1] != 1 || c->block[2] != 1 ||
        c->shared_bytes || extra || c->attribute_count != 1 || c->attributes->reserved ||
        c->attributes->id != CUDA_LAUNCH_PROGRAMMATIC || c->attributes->value.allowed != 1 ||
        standin_sm() < 90)
        return CUDA_INVALID_VALUE;
    return launch_kernel(function, c->grid[0], c->block[0], c->stream, arguments, true);
}
