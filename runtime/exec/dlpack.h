/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of dlpack.h 1.1, under other names, so that the build does not need that header. */
#ifndef HLO_RUNTIME_EXEC_DLPACK_H
#define HLO_RUNTIME_EXEC_DLPACK_H

#include <stdint.h>

enum {
    DLPACK_MAJOR = 1,
    DLPACK_MINOR = 1,
    DLPACK_CUDA = 2, /* values of DLDeviceType, for hlo_backend.memory_kind */
    DLPACK_CUDA_MANAGED = 13,
    DLPACK_CUDA_HOST = 3,
    DLPACK_READ_ONLY = 1, /* bits of `flags` */
    DLPACK_PADDED = 4
};

typedef struct dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *dims;
    int64_t *strides; /* in elements; NULL for a row-major array */
    uint64_t byte_offset;
} dlpack_tensor;

struct DLManagedTensor {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self); /* NULL if nothing must be freed */
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self); /* NULL if nothing must be freed */
    uint64_t flags;
    dlpack_tensor tensor;
};

#endif
