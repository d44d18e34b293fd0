/* SPDX-License-Identifier: Apache-2.0 */
/* The status that every fallible function of the library returns, and the rule of its options.
 *
 * The first five values are also the exit statuses of the two programs. Details of a failure never
 * travel in the status: they go to the diagnostics sink (diag.h) of the call that failed.
 *
 * A struct of options begins with its own size in bytes, `struct_size`, which its _init function
 * sets to that of the program's header. Releases add fields at the end only: a program that was
 * compiled against an older header passes a smaller struct, and gets the defaults of the fields
 * that it does not know. A size that no release had is HLO_INVALID_USAGE, with an error in the
 * sink. (A sink that is itself in the options is told if `struct_size` covers it.)
 *
 * A pointer is not NULL unless the comment of its function says that it may be. Everywhere may be
 * NULL: a sink, and an array of no elements. A function that fails stores NULL where it would have
 * stored a new object. */
#ifndef HLO_STATUS_H
#define HLO_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum hlo_status {
    HLO_OK = 0,
    /* The input or the environment is at fault: a module that does not parse or verify, a file that
     * cannot be read or written, an opcode that a backend does not run. */
    HLO_INVALID_INPUT = 1,
    /* The caller is at fault: an option or an argument outside its documented range. */
    HLO_INVALID_USAGE = 2,
    /* Everything ran, and a comparison or a gate did not hold. */
    HLO_MISMATCH = 3,
    /* A bug of the library: the output of a pass failed to verify. */
    HLO_INTERNAL = 4,
    /* Memory ran out, or the result would pass a limit that the call documents. */
    HLO_OUT_OF_MEMORY = 5,
    /* A callback of the caller stopped the run: hlo_plan_options.progress. */
    HLO_STOPPED = 6
} hlo_status;

/* A short English phrase for `status`, e.g. "invalid input". Static storage; never NULL. */
const char *hlo_status_name(hlo_status status);

/* Returns the exit status of a program that ends with `status`: 1 for HLO_OUT_OF_MEMORY and
 * HLO_STOPPED. */
int hlo_status_exit(hlo_status status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
