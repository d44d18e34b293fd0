/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's libraries, opened at run time. The build requires neither headers nor libraries of
 * CUDA. */
#ifndef HLO_RUNTIME_CUDA_DRIVER_LIBRARY_H
#define HLO_RUNTIME_CUDA_DRIVER_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "hlo/diag.h"
#include "hlo/status.h"

typedef enum cuda_library_id {
#define CUDA_LIBRARY(id, what, variable, sonames, beside) CUDA_##id,
#include "runtime/cuda/driver/library.def"
#undef CUDA_LIBRARY
    CUDA_LIBRARY_COUNT
} cuda_library_id;

enum {
#define CUDA_NUMBER(name, value, constant) CUDA_##name = value,
#include "runtime/cuda/driver/number.def"
#undef CUDA_NUMBER
};

/* Types of the libraries' handles. For example, `cuda_stream *` is a CUstream. */
typedef struct cuda_context cuda_context;
typedef struct cuda_stream cuda_stream;
typedef struct cuda_event cuda_event;
typedef struct cuda_graph cuda_graph;
typedef struct cuda_graph_node cuda_graph_node;
struct cuda_node_parameters; /* graph.h */
struct cuda_launch_config;   /* graph.h */
typedef struct cuda_graph_exec cuda_graph_exec;
typedef struct cuda_module cuda_module;
typedef struct cuda_function cuda_function;
typedef struct lt_handle lt_handle;
typedef struct lt_desc lt_desc;
typedef struct lt_layout lt_layout;
typedef struct lt_preference lt_preference;
typedef struct nvrtc_program nvrtc_program;
typedef unsigned long long cuda_address; /* CUdeviceptr */

static inline cuda_address cuda_address_of(const void *memory) {
    return (cuda_address)(uintptr_t)memory;
}

/* Has the layout of cublasLtMatmulAlgo_t. A file may store it for later use with the same library
 * version. */
typedef struct lt_algo {
    uint64_t data[8];
} lt_algo;

/* Has the layout of cublasLtMatmulHeuristicResult_t. */
typedef struct lt_heuristic {
    lt_algo algo;
    size_t workspace; /* bytes of workspace that the algorithm requires */
    int state;        /* status; 0 if the algorithm is usable */
    float waves;
    int reserved[4];
} lt_heuristic;

/* A callback of cuBLASLt's log: level, function, message. */
typedef void (*lt_log_callback)(int level, const char *function, const char *message);

/* Functions of the loaded libraries; NULL if the function's library is not loaded. */
typedef struct cuda_library {
    void *handles[CUDA_LIBRARY_COUNT];
#define CUDA_SYMBOL(library, name, symbol, result, parameters) result(*name) parameters;
#include "runtime/cuda/driver/cublaslt.def"
#undef CUDA_SYMBOL
} cuda_library;

/* Opens a library and looks up every function that cublaslt.def lists for it. Does nothing if the
 * library is loaded. `lib` must initially be all zero. If the library is not found or lacks a
 * function, emits an error to `sink`, loads nothing and returns HLO_INVALID_INPUT. */
hlo_status cuda_library_load(cuda_library *lib, cuda_library_id id, const hlo_diag_sink *sink);
void cuda_library_unload(cuda_library *lib);

/* Writes "NAME (text)" for a nonzero CUresult, as the driver describes it, to `capacity`, which has
 * `size` bytes. Returns `capacity`. */
const char *cuda_error_text(const cuda_library *lib, int result, char *capacity, size_t size);

#endif
