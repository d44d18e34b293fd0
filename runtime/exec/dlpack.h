/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of dlpack.h 1.1, under other names, so that its header is not needed. */
#ifndef HLO_RUNTIME_EXEC_DLPACK_H
#define HLO_RUNTIME_EXEC_DLPACK_H

#include <stdint.h>

enum {
    DLPACK_MAJOR = 1,
    DLPACK_MINOR = 1,
    DLPACK_CUDA = 2, /* DLDeviceType, as hlo_backend.memory_kind */
    DLPACK_CUDA_MANAGED = 13,
    DLPACK_CUDA_HOST = 3,
    DLPACK_READ_ONLY = 1, /* flags */
    DLPACK_PADDED = 4
};

typedef struct dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *dims;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} dlpack_tensor;

struct DLManagedTensor {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self); /* NULL: nothing to free */
};

struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self); /* as above */
    uint64_t flags;
    dlpack_tensor tensor;
};

#endif
