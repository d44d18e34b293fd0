/* Functions compiled for several processors of one family; the best is chosen when the program is
 * loaded. Every clone computes the same bits: nothing is contracted or reassociated. */
#ifndef HLO_IR_FLOAT_CLONES_H
#define HLO_IR_FLOAT_CLONES_H

#include <limits.h> /* defines __GLIBC__ where the C library is glibc */

/* Sanitizers do not run before the choice is made, and clang has other names for the levels. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ &&           \
    __GNUC__ >= 12 && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define HLO_CLONED __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define HLO_CLONED
#endif

#endif
