/* Structs of cuda.h for conditional nodes (CUDA 12.4 to 13.0). */
#ifndef HLO_RUNTIME_CUDA_GRAPH_H
#define HLO_RUNTIME_CUDA_GRAPH_H

#include <stdint.h>

/* CUDA_CONDITIONAL_NODE_PARAMS. */
typedef struct cuda_conditional_parameters {
    uint64_t handle;
    int type; /* CUDA_CONDITIONAL_... of number.def */
    unsigned size;
    struct cuda_graph **graphs; /* the driver's: the graph to be filled */
    void *context;
} cuda_conditional_parameters;

/* CUgraphNodeParams. */
typedef struct cuda_node_parameters {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        cuda_conditional_parameters conditional;
    } u;
    long long reserved2;
} cuda_node_parameters;

#endif
