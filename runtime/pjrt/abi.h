/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the PJRT C API (major version 0) that this folder uses.
 *
 * A structure of arguments begins with its size and a list of extensions. A plugin reads the
 * members that it knows and that the size covers. A structure must not be smaller than in the
 * oldest version that the plugin supports. Therefore each structure here ends with room for members
 * of later versions, which are all zero. */
#ifndef HLO_RUNTIME_PJRT_ABI_H
#define HLO_RUNTIME_PJRT_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct pjrt_error pjrt_error;
typedef struct pjrt_event pjrt_event;
typedef struct pjrt_client pjrt_client;
typedef struct pjrt_device pjrt_device;
typedef struct pjrt_topology pjrt_topology;
typedef struct pjrt_executable pjrt_executable;
typedef struct pjrt_loaded pjrt_loaded; /* an executable on the devices of a client */
typedef struct pjrt_buffer pjrt_buffer;

/* Extensions of the function table, a linked list. */
typedef struct pjrt_extension {
    size_t size;
    int type;
    struct pjrt_extension *next;
} pjrt_extension;

/* The first members of each structure. */
#define PJRT_HEAD                                                                                  \
    size_t size;                                                                                   \
    pjrt_extension *extensions
/* Room for members of later versions, in words. */
#define PJRT_LATER void *later[8]

/* Indices in the function table. */
typedef enum pjrt_function {
    PJRT_ERROR_DESTROY = 0,
    PJRT_ERROR_MESSAGE = 1,
    PJRT_PLUGIN_INITIALIZE = 3,
    PJRT_EVENT_DESTROY = 5,
    PJRT_EVENT_AWAIT = 8,
    PJRT_CLIENT_CREATE = 10,
    PJRT_CLIENT_DESTROY = 11,
    PJRT_CLIENT_PLATFORM_NAME = 12,
    PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
    PJRT_CLIENT_COMPILE = 20,
    PJRT_CLIENT_BUFFER_FROM_HOST = 22,
    PJRT_EXECUTABLE_DESTROY = 40,
    PJRT_EXECUTABLE_NUM_OUTPUTS = 44,
    PJRT_EXECUTABLE_OPTIMIZED_PROGRAM = 48,
    PJRT_LOADED_DESTROY = 50,
    PJRT_LOADED_GET_EXECUTABLE = 51,
    PJRT_LOADED_EXECUTE = 55,
    PJRT_BUFFER_DESTROY = 58,
    PJRT_BUFFER_TO_HOST = 70,
    PJRT_TOPOLOGY_CREATE = 82,
    PJRT_TOPOLOGY_DESTROY = 83,
    PJRT_COMPILE = 89
} pjrt_function;

/* The function table. Functions return an error, or NULL for success. The functions that describe
 * or destroy an error return nothing. */
typedef pjrt_error *pjrt_call(void *arguments);
typedef struct pjrt_api {
    PJRT_HEAD;
    struct {
        PJRT_HEAD;
        int major, minor;
    } version;
    pjrt_call *functions[]; /* as many as `size` covers */
} pjrt_api;

typedef struct pjrt_error_args {
    PJRT_HEAD;
    pjrt_error *error;
    const char *message; /* output of PJRT_ERROR_MESSAGE; valid until the error is destroyed */
    size_t message_size;
    PJRT_LATER;
} pjrt_error_args;

/* Arguments of functions that take at most one object and have no output. */
typedef struct pjrt_object_args {
    PJRT_HEAD;
    void *object;
    PJRT_LATER;
} pjrt_object_args;

typedef enum pjrt_value_type { PJRT_STRING, PJRT_INT64 } pjrt_value_type;

/* A named value. Has no room for later members, because it is an element of arrays. */
typedef struct pjrt_named_value {
    PJRT_HEAD;
    const char *name;
    size_t name_size;
    pjrt_value_type type;
    union {
        const char *string;
        int64_t number;
    } value;
    size_t value_size; /* 1 for a number */
} pjrt_named_value;

typedef struct pjrt_client_create_args {
    PJRT_HEAD;
    const pjrt_named_value *options;
    size_t option_count;
    void *key_value_store[4];
    pjrt_client *client; /* output */
    PJRT_LATER;
} pjrt_client_create_args;

typedef struct pjrt_platform_name_args {
    PJRT_HEAD;
    pjrt_client *client;
    const char *name; /* output; valid as long as the client exists */
    size_t name_size;
    PJRT_LATER;
} pjrt_platform_name_args;

typedef struct pjrt_devices_args {
    PJRT_HEAD;
    pjrt_client *client;
    pjrt_device *const *devices; /* output; valid as long as the client exists */
    size_t count;
    PJRT_LATER;
} pjrt_devices_args;

/* A module. `format` is "hlo" for an HloModuleProto, or "hlo_with_config" for a message whose field
 * 1 is an HloModuleProto. */
typedef struct pjrt_program {
    PJRT_HEAD;
    char *code;
    size_t code_size;
    const char *format;
    size_t format_size;
} pjrt_program;

typedef struct pjrt_client_compile_args {
    PJRT_HEAD;
    pjrt_client *client;
    const pjrt_program *program;
    const char *options; /* a CompileOptionsProto */
    size_t options_size;
    pjrt_loaded *loaded; /* output */
    PJRT_LATER;
} pjrt_client_compile_args;

typedef struct pjrt_topology_create_args {
    PJRT_HEAD;
    const char *name;
    size_t name_size;
    const pjrt_named_value *options;
    size_t option_count;
    pjrt_topology *topology; /* output */
    PJRT_LATER;
} pjrt_topology_create_args;

typedef struct pjrt_compile_args {
    PJRT_HEAD;
    const pjrt_topology *topology;
    const pjrt_program *program;
    const char *options;
    size_t options_size;
    pjrt_client *client;
    pjrt_executable *executable; /* output */
    PJRT_LATER;
} pjrt_compile_args;

typedef struct pjrt_optimized_program_args {
    PJRT_HEAD;
    pjrt_executable *executable;
    pjrt_program *program; /* if `code` is NULL, only its size is queried */
    PJRT_LATER;
} pjrt_optimized_program_args;

typedef struct pjrt_get_executable_args {
    PJRT_HEAD;
    pjrt_loaded *loaded;
    pjrt_executable *executable; /* output; the caller destroys it */
    PJRT_LATER;
} pjrt_get_executable_args;

typedef struct pjrt_num_outputs_args {
    PJRT_HEAD;
    pjrt_executable *executable;
    size_t count; /* output */
    PJRT_LATER;
} pjrt_num_outputs_args;

/* A layout without tiles. */
typedef struct pjrt_layout {
    PJRT_HEAD;
    struct {
        PJRT_HEAD;
        const int64_t *minor_to_major;
        size_t minor_to_major_size;
        const int64_t *tile_dims;
        const size_t *tile_dim_sizes;
        size_t tile_count;
    } tiled;
    int type; /* 0 for a tiled layout */
} pjrt_layout;

typedef struct pjrt_buffer_from_host_args {
    PJRT_HEAD;
    pjrt_client *client;
    const void *data;
    int type; /* a number of runtime/pjrt/type.def */
    const int64_t *dims;
    size_t dim_count;
    const int64_t *byte_strides; /* strides of `data`; none for row-major */
    size_t byte_stride_count;
    int semantics; /* 1 if `data` does not change until `done` */
    pjrt_device *device;
    void *memory;
    const pjrt_layout *layout; /* layout on the device; NULL for row-major */
    pjrt_event *done;          /* output */
    pjrt_buffer *buffer;       /* output */
    PJRT_LATER;
} pjrt_buffer_from_host_args;

typedef struct pjrt_buffer_to_host_args {
    PJRT_HEAD;
    pjrt_buffer *buffer;
    const pjrt_layout *layout; /* layout on the host */
    void *data;                /* if NULL, `data_size` is queried */
    size_t data_size;
    pjrt_event *done; /* output */
    PJRT_LATER;
} pjrt_buffer_to_host_args;

/* Options of an execution. All members are zero here. */
typedef struct pjrt_execute_options {
    PJRT_HEAD;
    void *members[24];
} pjrt_execute_options;

typedef struct pjrt_execute_args {
    PJRT_HEAD;
    pjrt_loaded *loaded;
    pjrt_execute_options *options;
    pjrt_buffer *const *const *arguments; /* indexed by device, then by argument */
    size_t device_count, argument_count;
    pjrt_buffer **const *outputs; /* indexed by device, then by output */
    pjrt_event **done;            /* indexed by device */
    pjrt_device *device;          /* NULL for the executable's devices */
    PJRT_LATER;
} pjrt_execute_args;

/* The extension that registers handlers of typed custom calls. */
enum { PJRT_EXTENSION_FFI = 5, PJRT_FFI_REGISTER = 2 };
typedef struct pjrt_ffi_extension {
    pjrt_extension base;
    pjrt_call *functions[3];
} pjrt_ffi_extension;
typedef struct pjrt_ffi_register_args {
    size_t size; /* size of the struct, which has no list of extensions */
    const char *target;
    size_t target_size;
    void (*handler)(void);
    const char *platform;
    size_t platform_size;
    int traits;
} pjrt_ffi_register_args;

#endif
