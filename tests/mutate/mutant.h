/* SPDX-License-Identifier: Apache-2.0 */
/* A mutated source includes this header: HLO_MUTANT(n) is true if HLO_MUTANT in the environment is
 * n, or a list that contains n, such as 3,17. With HLO_MUTANT_LOG=FILE, the number of each mutant
 * that a process reaches is appended to FILE immediately, so that the number is not lost if the
 * process aborts. Only system calls are used, because a test may replace malloc or functions that
 * write files. These definitions are weak and hidden: each program and each shared library has one
 * copy. */
#ifndef HLO_MUTANT
#include <asm/unistd.h>

char *getenv(const char *name);
long syscall(long number, ...);
int *__errno_location(void);

#define HLO_MUTANTS 4096
enum { HLO_MUTANT_UNKNOWN, HLO_MUTANT_OFF, HLO_MUTANT_ON };

__attribute__((weak, visibility("hidden"))) unsigned char hlo_mutant_state[HLO_MUTANTS] = {0};

__attribute__((weak, visibility("hidden"), noinline)) int hlo_mutant_ask(int wanted) {
    int saved = *__errno_location();
    const char *chosen = getenv("HLO_MUTANT"), *log = getenv("HLO_MUTANT_LOG");
    int on = 0;
    while (chosen && *chosen) {
        int number = 0;
        for (; *chosen && *chosen != ','; chosen++) number = number * 10 + (*chosen - '0');
        on |= number == wanted;
        chosen += *chosen == ',';
    }
    __atomic_store_n(&hlo_mutant_state[wanted], on ? HLO_MUTANT_ON : HLO_MUTANT_OFF,
                     __ATOMIC_RELAXED);
    if (log) {
        char line[8];
        int at = sizeof line;
        line[--at] = '\n';
        for (int left = wanted; at == sizeof line - 1 || left; left /= 10)
            line[--at] = (char)('0' + left % 10);
        long file =
            syscall(__NR_openat, -100 /* AT_FDCWD */, log, 02001 /* O_WRONLY | O_APPEND */, 0);
        if (file >= 0) {
            syscall(__NR_write, file, line + at, sizeof line - (unsigned long)at);
            syscall(__NR_close, file);
        }
    }
    *__errno_location() = saved;
    return on;
}

static inline int hlo_mutant(int wanted) {
    unsigned char state = __atomic_load_n(&hlo_mutant_state[wanted], __ATOMIC_RELAXED);
    return state == HLO_MUTANT_UNKNOWN ? hlo_mutant_ask(wanted) : state == HLO_MUTANT_ON;
}
#define HLO_MUTANT(n) hlo_mutant(n)
#endif
