/* SPDX-License-Identifier: Apache-2.0 */
/* The part of XLA's xla/pjrt/c/pjrt_c_api.h that examples/pjrt_compile.cc uses, with the same names
 * and the layout of version 0.90. The test can therefore compile the example without XLA's sources.
 */
#ifndef HLO_TESTS_EMBED_PJRT_XLA_PJRT_C_PJRT_C_API_H
#define HLO_TESTS_EMBED_PJRT_XLA_PJRT_C_PJRT_C_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct PJRT_Error PJRT_Error;
typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_Buffer PJRT_Buffer;

/* Declares a struct of arguments, which begins with its size and a list of extensions. */
#define HLO_PJRT_STRUCT(name, members)                                                             \
    typedef struct name {                                                                          \
        size_t struct_size;                                                                        \
        void *extension_start;                                                                     \
        members                                                                                    \
    } name;

HLO_PJRT_STRUCT(PJRT_Error_Message_Args, const PJRT_Error *error; const char *message;
                size_t message_size;)
HLO_PJRT_STRUCT(PJRT_Event_Await_Args, PJRT_Event *event;)
HLO_PJRT_STRUCT(PJRT_Event_Destroy_Args, PJRT_Event *event;)
HLO_PJRT_STRUCT(PJRT_Plugin_Initialize_Args, )
HLO_PJRT_STRUCT(PJRT_Client_Create_Args, const void *create_options; size_t num_options;
                void *kv_callbacks[4]; PJRT_Client * client; void *kv_try_get[2];)
HLO_PJRT_STRUCT(PJRT_Client_AddressableDevices_Args, PJRT_Client *client;
                PJRT_Device *const *addressable_devices; size_t num_addressable_devices;)
HLO_PJRT_STRUCT(PJRT_Program, char *code; size_t code_size; const char *format; size_t format_size;)
HLO_PJRT_STRUCT(PJRT_Client_Compile_Args, PJRT_Client *client; const PJRT_Program *program;
                const char *compile_options; size_t compile_options_size;
                PJRT_LoadedExecutable * executable;)

typedef enum PJRT_Buffer_Type {
    PJRT_Buffer_Type_INVALID = 0,
    PJRT_Buffer_Type_F32 = 11,
    PJRT_Buffer_Type_BF16 = 13,
    PJRT_Buffer_Type_F8E5M2 = 16,
    PJRT_Buffer_Type_F8E4M3FN = 17
} PJRT_Buffer_Type;
typedef enum PJRT_HostBufferSemantics {
    PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0
} PJRT_HostBufferSemantics;
HLO_PJRT_STRUCT(PJRT_Client_BufferFromHostBuffer_Args, PJRT_Client *client; const void *data;
                PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims;
                const int64_t *byte_strides; size_t num_byte_strides;
                PJRT_HostBufferSemantics host_buffer_semantics; PJRT_Device * device; void *memory;
                void *device_layout; PJRT_Event * done_with_host_buffer; PJRT_Buffer * buffer;)
HLO_PJRT_STRUCT(PJRT_Buffer_ToHostBuffer_Args, PJRT_Buffer *src; void *host_layout; void *dst;
                size_t dst_size; PJRT_Event * event;)
HLO_PJRT_STRUCT(PJRT_Buffer_Destroy_Args, PJRT_Buffer *buffer;)
HLO_PJRT_STRUCT(PJRT_ExecuteOptions, void *members[12];)
HLO_PJRT_STRUCT(PJRT_LoadedExecutable_Execute_Args, PJRT_LoadedExecutable *executable;
                PJRT_ExecuteOptions * options; PJRT_Buffer *const *const *argument_lists;
                size_t num_devices; size_t num_args; PJRT_Buffer * *const *output_lists;
                PJRT_Event * *device_complete_events; PJRT_Device * execute_device;)
HLO_PJRT_STRUCT(PJRT_Api_Version, int major_version; int minor_version;)

/* Fields whose names begin with `other` are functions that the example does not call. */
typedef struct PJRT_Api {
    size_t struct_size;
    void *extension_start;
    PJRT_Api_Version pjrt_api_version;
    void *other_0;
    void (*PJRT_Error_Message)(PJRT_Error_Message_Args *);
    void *other_2;
    PJRT_Error *(*PJRT_Plugin_Initialize)(PJRT_Plugin_Initialize_Args *);
    void *other_4;
    PJRT_Error *(*PJRT_Event_Destroy)(PJRT_Event_Destroy_Args *);
    void *other_6[2];
    PJRT_Error *(*PJRT_Event_Await)(PJRT_Event_Await_Args *);
    void *other_9;
    PJRT_Error *(*PJRT_Client_Create)(PJRT_Client_Create_Args *);
    void *other_11[5];
    PJRT_Error *(*PJRT_Client_AddressableDevices)(PJRT_Client_AddressableDevices_Args *);
    void *other_17[3];
    PJRT_Error *(*PJRT_Client_Compile)(PJRT_Client_Compile_Args *);
    void *other_21;
    PJRT_Error *(*PJRT_Client_BufferFromHostBuffer)(PJRT_Client_BufferFromHostBuffer_Args *);
    void *other_23[32];
    PJRT_Error *(*PJRT_LoadedExecutable_Execute)(PJRT_LoadedExecutable_Execute_Args *);
    void *other_56[2];
    PJRT_Error *(*PJRT_Buffer_Destroy)(PJRT_Buffer_Destroy_Args *);
    void *other_59[11];
    PJRT_Error *(*PJRT_Buffer_ToHostBuffer)(PJRT_Buffer_ToHostBuffer_Args *);
} PJRT_Api;

#endif
