/* SPDX-License-Identifier: Apache-2.0 */
/* A PJRT plugin with two devices, for api_calls.c and lit. It compiles a module whose result is its
 * first parameter, and executes it by copying. Its own allocations do not fail (failing.c).
 *
 * Environment:
 *  HLO_PLUGIN_OPTIONS  a file for the options with which a module is compiled, unmodified */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/pjrt/abi.h"

struct pjrt_executable {
    char *code;
    size_t size;
    bool configured; /* the program is returned with a configuration, as by XLA's GPU compiler */
};

struct pjrt_buffer {
    size_t size;
    char data[];
};

static void *copy_of(const void *data, size_t size) {
    void *copy = malloc(size + 1);
    if (!copy) abort();
    return memcpy(copy, data, size);
}

static pjrt_buffer *buffer_of(const void *data, size_t size) {
    pjrt_buffer *buffer = malloc(sizeof *buffer + size);
    if (!buffer) abort();
    buffer->size = size;
    memcpy(buffer->data, data, size);
    return buffer;
}

static pjrt_executable *executable_of(const void *code, size_t size) {
    pjrt_executable *made = malloc(sizeof *made);
    if (!made) abort();
    *made = (pjrt_executable){copy_of(code, size), size, false};
    return made;
}

static pjrt_error *succeed(void *arguments) {
    (void)arguments;
    return NULL;
}

/* Clients and topologies have no contents. */
static char nothing;

static pjrt_error *create_client(void *arguments) {
    ((pjrt_client_create_args *)arguments)->client = (pjrt_client *)&nothing;
    return NULL;
}

static pjrt_error *create_topology(void *arguments) {
    ((pjrt_topology_create_args *)arguments)->topology = (pjrt_topology *)&nothing;
    return NULL;
}

static pjrt_error *list_devices(void *arguments) {
    static pjrt_device *devices[2];
    pjrt_devices_args *args = arguments;
    args->devices = devices;
    args->count = 2;
    return NULL;
}

static void keep_options(const char *options, size_t size) {
    const char *name = getenv("HLO_PLUGIN_OPTIONS");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (!file) return;
    if (fwrite(options, 1, size, file) != size || fclose(file)) abort();
}

/* An executable consists only of its code. */
static pjrt_error *compile_on_client(void *arguments) {
    pjrt_client_compile_args *args = arguments;
    keep_options(args->options, args->options_size);
    args->loaded = (pjrt_loaded *)executable_of(args->program->code, args->program->code_size);
    return NULL;
}

static pjrt_error *get_executable(void *arguments) {
    pjrt_get_executable_args *args = arguments;
    const pjrt_executable *loaded = (const pjrt_executable *)args->loaded;
    args->executable = executable_of(loaded->code, loaded->size);
    return NULL;
}

static pjrt_error *compile_for_target(void *arguments) {
    pjrt_compile_args *args = arguments;
    args->executable = executable_of(args->program->code, args->program->code_size);
    args->executable->configured = true;
    return NULL;
}

static pjrt_error *free_executable(void *arguments) {
    pjrt_executable *executable = ((pjrt_object_args *)arguments)->object;
    free(executable->code);
    free(executable);
    return NULL;
}

static pjrt_error *give_program(void *arguments) {
    pjrt_optimized_program_args *args = arguments;
    const pjrt_executable *executable = args->executable;
    const size_t size = executable->size, lead = executable->configured ? 3 : 0;
    args->program->code_size = lead + size;
    args->program->format = lead ? "hlo_with_config" : "hlo";
    args->program->format_size = strlen(args->program->format);
    if (!args->program->code) return NULL;
    /* The tag and size of protobuf field 1, whose size has two bytes. */
    const char head[] = {1 << 3 | 2, (char)(size % 128 | 128), (char)(size / 128)};
    memcpy(args->program->code, head, lead);
    memcpy(args->program->code + lead, executable->code, size);
    return NULL;
}

static pjrt_error *count_outputs(void *arguments) {
    ((pjrt_num_outputs_args *)arguments)->count = 1;
    return NULL;
}

/* Copies an f32 input. */
static pjrt_error *send_buffer(void *arguments) {
    pjrt_buffer_from_host_args *args = arguments;
    size_t size = sizeof(float);
    for (size_t i = 0; i < args->dim_count; i++) size *= (size_t)args->dims[i];
    args->buffer = buffer_of(args->data, size);
    return NULL;
}

static pjrt_error *receive_buffer(void *arguments) {
    pjrt_buffer_to_host_args *args = arguments;
    if (args->data) memcpy(args->data, args->buffer->data, args->buffer->size);
    args->data_size = args->buffer->size;
    return NULL;
}

static pjrt_error *free_buffer(void *arguments) {
    free(((pjrt_object_args *)arguments)->object);
    return NULL;
}

static pjrt_error *execute(void *arguments) {
    pjrt_execute_args *args = arguments;
    for (size_t d = 0; d < args->device_count; d++)
        args->outputs[d][0] = buffer_of(args->arguments[d][0]->data, args->arguments[d][0]->size);
    return NULL;
}

/* A pjrt_api with a fixed number of functions. */
static struct {
    PJRT_HEAD;
    struct {
        PJRT_HEAD;
        int major, minor;
    } version;
    pjrt_call *functions[PJRT_COMPILE + 1];
} api = {.size = sizeof api,
         .functions = {[PJRT_PLUGIN_INITIALIZE] = succeed,
                       [PJRT_CLIENT_CREATE] = create_client,
                       [PJRT_CLIENT_DESTROY] = succeed,
                       [PJRT_CLIENT_ADDRESSABLE_DEVICES] = list_devices,
                       [PJRT_CLIENT_COMPILE] = compile_on_client,
                       [PJRT_CLIENT_BUFFER_FROM_HOST] = send_buffer,
                       [PJRT_EXECUTABLE_DESTROY] = free_executable,
                       [PJRT_EXECUTABLE_NUM_OUTPUTS] = count_outputs,
                       [PJRT_EXECUTABLE_OPTIMIZED_PROGRAM] = give_program,
                       [PJRT_LOADED_DESTROY] = free_executable,
                       [PJRT_LOADED_GET_EXECUTABLE] = get_executable,
                       [PJRT_LOADED_EXECUTE] = execute,
                       [PJRT_BUFFER_DESTROY] = free_buffer,
                       [PJRT_BUFFER_TO_HOST] = receive_buffer,
                       [PJRT_TOPOLOGY_CREATE] = create_topology,
                       [PJRT_TOPOLOGY_DESTROY] = succeed,
                       [PJRT_COMPILE] = compile_for_target}};

__attribute__((visibility("default"))) const void *GetPjrtApi(void);

const void *GetPjrtApi(void) {
    return &api;
}
