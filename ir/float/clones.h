/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations that make compilers vectorize the marked loops. A cloned function is compiled for
 * several processors of one family, and the best clone is selected at load time. Every clone
 * computes the same bits: nothing is contracted or reassociated. */
#ifndef HLO_IR_FLOAT_CLONES_H
#define HLO_IR_FLOAT_CLONES_H

#include <limits.h> /* defines __GLIBC__ if the C library is glibc */

/* clang needs other names for the processor levels. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ &&           \
    __GNUC__ >= 12
/* Compiles a function for one level, v3 or v4. The caller must check that the processor supports
 * it. */
#define HLO_LEVEL(level) __attribute__((target("arch=x86-64-" #level)))
#endif

/* Clones a static function. The symbol of another function would be exported: GCC ignores its
 * visibility. Sanitizers do not work in the code that selects a clone at load time. */
#if defined HLO_LEVEL && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define HLO_CLONED __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define HLO_CLONED
#endif

/* Disables sanitizers in an inner loop. They would make the loop a hundred times slower. */
#define HLO_UNCHECKED __attribute__((no_sanitize("address", "undefined", "thread")))

/* Marks a loop that writes an element only after it has read the elements with the same index. Two
 * arrays may be identical, but must not overlap in part. */
#if defined __GNUC__ && !defined __clang__
#define HLO_IN_PLACE _Pragma("GCC ivdep")
#else
#define HLO_IN_PLACE
#endif

#endif
