/* SPDX-License-Identifier: Apache-2.0 */
/* Marks for compilers, which make vectors of the loops so marked. A cloned function is compiled for
 * several processors of one family; the best is chosen when the program is loaded. Every clone
 * computes the same bits: nothing is contracted or reassociated. */
#ifndef HLO_IR_FLOAT_CLONES_H
#define HLO_IR_FLOAT_CLONES_H

#include <limits.h> /* defines __GLIBC__ where the C library is glibc */

/* clang has other names for the levels. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ &&           \
    __GNUC__ >= 12
/* Compiles a function for one level, v3 or v4, which the caller has seen that the processor has. */
#define HLO_LEVEL(level) __attribute__((target("arch=x86-64-" #level)))
#endif

/* Sanitizers do not run before the choice is made. */
#if defined HLO_LEVEL && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define HLO_CLONED __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define HLO_CLONED
#endif

/* Keeps sanitizers out of an inner loop, which they would make a hundred times slower. */
#define HLO_UNCHECKED __attribute__((no_sanitize("address", "undefined", "thread")))

/* Marks a loop that writes an element only after it has read those of the same index: arrays may
 * be the same, and do not overlap otherwise. */
#if defined __GNUC__ && !defined __clang__
#define HLO_IN_PLACE _Pragma("GCC ivdep")
#else
#define HLO_IN_PLACE
#endif

#endif
