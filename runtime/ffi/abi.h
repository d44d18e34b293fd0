/* SPDX-License-Identifier: Apache-2.0 */
/* XLA's C interface for handlers of typed custom calls, which XLA calls FFI: the numbers and struct
 * layouts that are used here. Source: xla/ffi/api/c_api.h in jaxlib's include folder, version 0.3;
 * tests/unit/runtime/test_runtime_ffi_abi.c compares this file with it.
 *
 * Each struct begins with its size in bytes in XLA's version. A member may be read only if it ends
 * within that size (FFI_HAS). */
#ifndef HLO_RUNTIME_FFI_ABI_H
#define HLO_RUNTIME_FFI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { FFI_MAJOR = 0, FFI_MINOR = 3 };

/* The number of bytes of a struct up to and including a member. */
#define FFI_SIZE(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))
#define FFI_HAS(object, type, member) ((object)->size >= FFI_SIZE(type, member))

typedef struct XLA_FFI_CallFrame ffi_frame;
typedef struct XLA_FFI_Error ffi_error; /* defined by XLA */
typedef struct ffi_context ffi_context; /* defined by XLA */

typedef struct ffi_extension {
    size_t size;
    int kind; /* FFI_EXTENSION_... */
    struct ffi_extension *next;
} ffi_extension;
enum { FFI_EXTENSION_METADATA = 1 };

typedef struct ffi_version {
    size_t size;
    ffi_extension *extensions;
    int major, minor;
} ffi_version;

/* The properties of the function, which XLA queries by an extension of a call frame. */
typedef struct ffi_metadata {
    size_t size;
    ffi_version version;
    uint32_t traits;
} ffi_metadata;
typedef struct ffi_metadata_extension {
    ffi_extension base;
    ffi_metadata *metadata;
} ffi_metadata_extension;

/* Status codes of errors. */
enum {
    FFI_INVALID_ARGUMENT = 3,
    FFI_RESOURCE_EXHAUSTED = 8,
    FFI_FAILED_PRECONDITION = 9,
    FFI_INTERNAL = 13
};

/* Element types, by the names of ir/table/type.def. */
enum {
    FFI_TYPE_PRED = 1,
    FFI_TYPE_S1 = 30,
    FFI_TYPE_S2 = 26,
    FFI_TYPE_S4 = 21,
    FFI_TYPE_S8 = 2,
    FFI_TYPE_S16 = 3,
    FFI_TYPE_S32 = 4,
    FFI_TYPE_S64 = 5,
    FFI_TYPE_U1 = 31,
    FFI_TYPE_U2 = 27,
    FFI_TYPE_U4 = 22,
    FFI_TYPE_U8 = 6,
    FFI_TYPE_U16 = 7,
    FFI_TYPE_U32 = 8,
    FFI_TYPE_U64 = 9,
    FFI_TYPE_F4E2M1FN = 32,
    FFI_TYPE_F8E3M4 = 29,
    FFI_TYPE_F8E4M3 = 28,
    FFI_TYPE_F8E4M3B11FNUZ = 23,
    FFI_TYPE_F8E4M3FN = 20,
    FFI_TYPE_F8E4M3FNUZ = 25,
    FFI_TYPE_F8E5M2 = 19,
    FFI_TYPE_F8E5M2FNUZ = 24,
    FFI_TYPE_F8E8M0FNU = 33,
    FFI_TYPE_F16 = 10,
    FFI_TYPE_BF16 = 16,
    FFI_TYPE_F32 = 11,
    FFI_TYPE_F64 = 12,
    FFI_TYPE_C64 = 15,
    FFI_TYPE_C128 = 18,
    FFI_TYPE_TOKEN = 17,
    FFI_TYPE_OPAQUE = -1, /* these two types never occur as operands */
    FFI_TYPE_TUPLE = -2,
    FFI_TYPE_F6E2M3FN = -3, /* these two types have no number in XLA's interface */
    FFI_TYPE_F6E3M2FN = -4
};

/* A dense array. The struct does not specify its layout. */
typedef struct ffi_buffer {
    size_t size;
    ffi_extension *extensions;
    int type;
    void *data;
    int64_t rank;
    int64_t *dims;
} ffi_buffer;

/* The operands or the results of a call. */
typedef struct ffi_list {
    size_t size;
    ffi_extension *extensions;
    int64_t count;
    int *kinds; /* FFI_BUFFER for each item */
    void **items;
} ffi_list;
enum { FFI_BUFFER = 1 };

typedef struct ffi_span {
    const char *bytes;
    size_t size;
} ffi_span;

typedef struct ffi_attrs {
    size_t size;
    ffi_extension *extensions;
    int64_t count;
    int *kinds; /* FFI_ATTR_... for each attribute */
    ffi_span **names;
    void **values; /* a struct that depends on the attribute's kind; for a string, an ffi_span */
} ffi_attrs;
enum { FFI_ATTR_ARRAY = 1, FFI_ATTR_DICTIONARY = 2, FFI_ATTR_SCALAR = 3, FFI_ATTR_STRING = 4 };

typedef struct ffi_scalar {
    int type;
    void *value;
} ffi_scalar;
typedef struct ffi_array {
    int type;
    size_t count;
    void *values;
} ffi_array;

/* The arguments of functions that XLA provides. */
typedef struct ffi_error_new {
    size_t size;
    ffi_extension *extensions;
    const char *message; /* the function copies the message */
    int code;
} ffi_error_new;
typedef struct ffi_error_free {
    size_t size;
    ffi_extension *extensions;
    ffi_error *error;
} ffi_error_free;
typedef struct ffi_stream_get {
    size_t size;
    ffi_extension *extensions;
    ffi_context *context;
    void *stream; /* output: the stream */
} ffi_stream_get;
typedef struct ffi_task {
    size_t size;
    ffi_extension *extensions;
    ffi_context *context;
    void (*run)(void *data);
    void *data;
} ffi_task;
typedef struct ffi_thread_count {
    size_t size;
    ffi_extension *extensions;
    ffi_context *context;
    int64_t *count; /* output: the address to write the count to */
} ffi_thread_count;

typedef void ffi_unused(void);
typedef struct ffi_api {
    size_t size;
    ffi_extension *extensions;
    ffi_version version;
    const void *inside;
    ffi_error *(*error_new)(ffi_error_new *arguments);
    ffi_unused *error_message;
    void (*error_free)(ffi_error_free *arguments);
    ffi_unused *handler_register;
    ffi_error *(*stream_get)(ffi_stream_get *arguments);
    ffi_unused *type_register, *context_get, *state_set, *state_get;
    ffi_unused *memory_allocate, *memory_free;
    ffi_error *(*thread_schedule)(ffi_task *arguments);
    ffi_error *(*thread_count)(ffi_thread_count *arguments);
} ffi_api;

/* A call, or a query of the function's properties. */
struct XLA_FFI_CallFrame {
    size_t size;
    ffi_extension *extensions;
    const ffi_api *api;
    ffi_context *context;
    int stage; /* FFI_EXECUTE for a call */
    ffi_list operands, results;
    ffi_attrs attrs;
};
enum { FFI_EXECUTE = 3 };

#endif
