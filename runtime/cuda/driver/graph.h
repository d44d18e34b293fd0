/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of cuda.h (CUDA 12.4 to 13.0) that recording in CUDA graphs needs. */
#ifndef HLO_RUNTIME_CUDA_DRIVER_GRAPH_H
#define HLO_RUNTIME_CUDA_DRIVER_GRAPH_H

#include "runtime/cuda/driver/cuda.h"
#include "runtime/cuda/driver/library.h"

/* Has the layout of CUDA_CONDITIONAL_NODE_PARAMS. */
typedef struct cuda_conditional_parameters {
    uint64_t handle;
    int type; /* CUDA_CONDITIONAL_... of number.def */
    unsigned size;
    struct cuda_graph **graphs; /* written by the driver: the graphs to fill */
    void *context;
} cuda_conditional_parameters;

/* Has the layout of CUgraphNodeParams. */
typedef struct cuda_node_parameters {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        cuda_conditional_parameters conditional;
    } u;
    long long reserved2;
} cuda_node_parameters;

/* Has the layout of CUlaunchAttribute. */
typedef struct cuda_launch_attribute {
    int id;
    int reserved;
    union {
        int allowed; /* value of CUDA_LAUNCH_PROGRAMMATIC */
        char reserved[64];
    } value;
} cuda_launch_attribute;

/* Has the layout of CUlaunchConfig. */
typedef struct cuda_launch_config {
    unsigned grid[3], block[3], shared_bytes;
    cuda_stream *stream;
    cuda_launch_attribute *attributes;
    unsigned attribute_count;
} cuda_launch_config;

#endif
