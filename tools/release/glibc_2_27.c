/* SPDX-License-Identifier: Apache-2.0 */
// Linked into the shared libraries and the program of a release: binds functions that glibc 2.28 to
// 2.36 changed or moved to their first versions, which every later glibc still has. The functions
// are hidden, so other libraries of the process do not use them.
struct stat;

#define FIRST_VERSION(name)                                                                        \
    __asm__(".symver first_" #name ", " #name "@GLIBC_2.2.5\n"                                     \
            ".globl " #name "\n.hidden " #name "\n.type " #name ", @function\n" #name              \
            ": jmp first_" #name "@PLT\n")

// Since 2.29 and 2.35 they do not call matherr(), which nothing here defines.
FIRST_VERSION(exp);
FIRST_VERSION(log);
FIRST_VERSION(log2);
FIRST_VERSION(pow);
FIRST_VERSION(hypot);
// Since 2.34 they are in libc.so.6, before in libdl.so.2 and libpthread.so.0.
FIRST_VERSION(dladdr);
FIRST_VERSION(dlclose);
FIRST_VERSION(dlerror);
FIRST_VERSION(dlopen);
FIRST_VERSION(dlsym);
FIRST_VERSION(pthread_create);
FIRST_VERSION(pthread_join);
FIRST_VERSION(pthread_once);
// Before 2.34 it does not call constructors of the program, which has none.
FIRST_VERSION(__libc_start_main);

// Before 2.33 stat() and fstat() were inline functions. 1 is the version of struct stat on x86-64.
__asm__(".symver first_stat, __xstat@GLIBC_2.2.5\n.symver first_fstat, __fxstat@GLIBC_2.2.5");
int first_stat(int version, const char *path, struct stat *to);
int first_fstat(int version, int file, struct stat *to);

__attribute__((visibility("hidden"))) int stat(const char *path, struct stat *to) {
    return first_stat(1, path, to);
}

__attribute__((visibility("hidden"))) int fstat(int file, struct stat *to) {
    return first_fstat(1, file, to);
}
