/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes, and the conventions that all functions of the library follow.
 *
 * Status: a function that can fail returns an hlo_status. A status has no details; the function
 * reports them as diagnostics (diag.h) to the sink that is passed to it. The first five values are
 * also the exit statuses of the programs. All of these functions return HLO_OUT_OF_MEMORY if memory
 * cannot be allocated.
 *
 * Options: an options struct begins with `struct_size`, its own size in bytes, which its _init
 * function sets. Patch releases of the library only append fields. A program that was compiled
 * against an older header passes a smaller struct, and the fields that are missing have their
 * default values. A function returns HLO_INVALID_USAGE, with an error in the sink, if `struct_size`
 * is 0, larger than the struct of the library, or not a multiple of the size of a size_t. If the
 * sink itself is a field of the options, it receives the error only if `struct_size` covers that
 * field.
 *
 * Other structs: a struct that the library fills also begins with `struct_size`, which is the size
 * of the struct in the library. Patch releases append fields to it, so read it only through the
 * pointer that the library returns or passes, and do not copy it or put it in an array. A field
 * exists if `struct_size` covers it, which is always true if the library is not older than the
 * header. If the caller allocates such a struct, its _init function must be called first, like for
 * options. Structs without `struct_size` never change, as their documentation says.
 *
 * NULL: a pointer argument must not be NULL unless its function documents otherwise. Two kinds of
 * arguments may always be NULL: a sink, which discards diagnostics, and an array without elements.
 *
 * Ownership: arguments are borrowed for the duration of the call, and the library copies what it
 * keeps, unless a function documents otherwise. An object that a function stores in an `out_`
 * argument is owned by the caller, who must free it with the function that its documentation names.
 * If the function fails, it stores NULL. An object that is returned by pointer is borrowed from the
 * object on which the function was called.
 *
 * Output: a function that prints has an hlo_writer (writer.h) as its last argument. It returns
 * HLO_INVALID_INPUT, without a diagnostic, if the writer fails.
 *
 * Threads: different threads may use different objects at the same time. Only one thread at a time
 * may use an object, or objects that are borrowed from it. */
#ifndef HLO_STATUS_H
#define HLO_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The status of a call. */
typedef enum hlo_status {
    /* The call succeeded. */
    HLO_OK = 0,
    /* The input or the environment is invalid. For example, a module cannot be parsed or verified,
     * a file cannot be read or written, or a backend does not support an opcode. */
    HLO_INVALID_INPUT = 1,
    /* An argument or an option is outside of its documented range. */
    HLO_INVALID_USAGE = 2,
    /* The call succeeded, but a comparison found differences or a gate is not satisfied. */
    HLO_MISMATCH = 3,
    /* A built-in pass or rule failed: for example, its output is not valid, or it does not
     * terminate. This is a bug of the library. */
    HLO_INTERNAL = 4,
    /* Memory could not be allocated, or the result would exceed a documented limit. */
    HLO_OUT_OF_MEMORY = 5,
    /* A callback stopped the run. See hlo_plan_options.progress. */
    HLO_STOPPED = 6
} hlo_status;

/* Returns a short English name of `status`, such as "invalid input". The string is static. The
 * result is not NULL, even if `status` is not a valid hlo_status. */
const char *hlo_status_name(hlo_status status);

/* Returns the exit status with which a program should report `status`. It equals `status`, except
 * for HLO_OUT_OF_MEMORY and HLO_STOPPED, for which it is 1. */
int hlo_status_exit(hlo_status status);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
