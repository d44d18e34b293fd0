/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: makes the Nth allocation of the program fail, or all from the Nth on.
 *
 * FAIL_AT      N, from 1; 0: no failure
 * FAIL_ON      1: all later allocations also fail
 * FAIL_TELL    a file that receives the numbers of allocations, and of those not freed at the end
 * Allocations are counted from main() on, except those of the libraries below. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *memory);

/* Allocations of these libraries do not fail. The dynamic linker ends the process if it has no
 * memory for a thread. A plugin's memory does not belong to the library. */
static const char *const exempt[] = {"ld-linux", "oom_plugin", NULL};

/* If zip_close() fails to allocate one block, it leaks another block. */
static const char *const leaky[] = {"libzip", NULL};

enum { SLOTS = 1 << 20 };
static void *live[SLOTS]; /* hash table by address, open addressing; removed entries are `gone` */
static char gone;
static long count, at, left;
static bool running, on;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t slot_of(const void *memory) {
    return ((uintptr_t)memory >> 4) * 0x9e3779b97f4a7c15U >> 44;
}

static bool is_of(const void *caller, const char *const *libraries) {
    Dl_info about;
    if (!dladdr(caller, &about) || !about.dli_fname) return false;
    for (; *libraries; libraries++)
        if (strstr(about.dli_fname, *libraries)) return true;
    return false;
}

static void *note(void *memory, const void *caller) {
    if (!memory || !running || is_of(caller, leaky)) return memory;
    pthread_mutex_lock(&lock);
    size_t i = slot_of(memory);
    while (live[i] && live[i] != &gone) i = (i + 1) % SLOTS;
    live[i] = memory;
    left++;
    pthread_mutex_unlock(&lock);
    return memory;
}

static void forget(const void *memory) {
    if (!memory || !running) return;
    pthread_mutex_lock(&lock);
    for (size_t i = slot_of(memory); live[i]; i = (i + 1) % SLOTS)
        if (live[i] == memory) {
            live[i] = &gone;
            left--;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static bool fails(const void *caller) {
    if (!running || is_of(caller, exempt)) return false;
    const long number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (!at || (on ? number < at : number != at)) return false;
    errno = ENOMEM;
    return true;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size) {
    return fails(CALLER) ? NULL : note(__libc_malloc(size), CALLER);
}

void *calloc(size_t number, size_t size) {
    return fails(CALLER) ? NULL : note(__libc_calloc(number, size), CALLER);
}

void *realloc(void *memory, size_t size) {
    if (fails(CALLER)) return NULL;
    forget(memory);
    void *moved = __libc_realloc(memory, size);
    return note(moved ? moved : memory, CALLER);
}

void *aligned_alloc(size_t align, size_t size) {
    return fails(CALLER) ? NULL : note(__libc_memalign(align, size), CALLER);
}

int posix_memalign(void **out, size_t align, size_t size) {
    *out = fails(CALLER) ? NULL : note(__libc_memalign(align, size), CALLER);
    return *out ? 0 : ENOMEM;
}

void free(void *memory) {
    forget(memory);
    __libc_free(memory);
}

/* Lets the program itself select failures, through dlsym(): from now on allocation `number` fails
 * (0: none) and, with `all`, all later ones. Both return the number of live allocations. */
long failing_begin(long number, bool all);
long failing_end(long *out_count);

long failing_begin(long number, bool all) {
    at = number;
    on = all;
    count = 0;
    return left;
}

long failing_end(long *out_count) {
    at = 0;
    *out_count = count;
    return left;
}

static void tell(void) {
    char text[64];
    const char *path = getenv("FAIL_TELL");
    running = false;
    const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file < 0) return;
    const int size = snprintf(text, sizeof text, "%ld %ld\n", count, left);
    if (write(file, text, (size_t)size) != size) abort();
    close(file);
}

typedef int main_function(int argc, char **argv, char **environment);
static main_function *real_main;

static int counted_main(int argc, char **argv, char **environment) {
    const char *number = getenv("FAIL_AT"), *all = getenv("FAIL_ON");
    at = number ? strtol(number, NULL, 10) : 0;
    on = all && *all == '1';
    atexit(tell);
    running = true;
    return real_main(argc, argv, environment);
}

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*end)(void), void *stack) {
    typedef int start(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
                      void *);
    start *next;
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return next(counted_main, argc, argv, init, fini, end, stack);
}
