/* SPDX-License-Identifier: Apache-2.0 */
/* Compares runtime/ffi/abi.h with XLA's header, if jaxlib has one: offsets and sizes of members,
 * and numbers. All checks are at compile time. */
#include <stdio.h>

#include "runtime/ffi/abi.h"

#ifdef HLO_XLA_HEADER
/* Both headers have these two tags. */
#define XLA_FFI_CallFrame xla_call_frame
#define XLA_FFI_Error xla_error
#include HLO_XLA_HEADER
#undef XLA_FFI_CallFrame
#undef XLA_FFI_Error

#define SAME(ours, member, theirs, other)                                                          \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, other) &&                            \
                       sizeof(((ours *)NULL)->member) == sizeof(((theirs *)NULL)->other),          \
                   #ours "." #member)
#define EQUAL(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)

_Static_assert(FFI_MAJOR == XLA_FFI_API_MAJOR, "another major version");

SAME(ffi_extension, size, XLA_FFI_Extension_Base, struct_size);
SAME(ffi_extension, kind, XLA_FFI_Extension_Base, type);
SAME(ffi_extension, next, XLA_FFI_Extension_Base, next);
EQUAL(FFI_EXTENSION_METADATA, XLA_FFI_Extension_Metadata);
SAME(ffi_version, size, XLA_FFI_Api_Version, struct_size);
SAME(ffi_version, extensions, XLA_FFI_Api_Version, extension_start);
SAME(ffi_version, major, XLA_FFI_Api_Version, major_version);
SAME(ffi_version, minor, XLA_FFI_Api_Version, minor_version);
SAME(ffi_metadata, size, XLA_FFI_Metadata, struct_size);
SAME(ffi_metadata, version, XLA_FFI_Metadata, api_version);
SAME(ffi_metadata, traits, XLA_FFI_Metadata, traits);
SAME(ffi_metadata_extension, base, XLA_FFI_Metadata_Extension, extension_base);
SAME(ffi_metadata_extension, metadata, XLA_FFI_Metadata_Extension, metadata);

EQUAL(FFI_INVALID_ARGUMENT, XLA_FFI_Error_Code_INVALID_ARGUMENT);
EQUAL(FFI_RESOURCE_EXHAUSTED, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
EQUAL(FFI_FAILED_PRECONDITION, XLA_FFI_Error_Code_FAILED_PRECONDITION);

/* XLA's header does not have these types. */
#define XLA_FFI_DataType_OPAQUE FFI_TYPE_OPAQUE
#define XLA_FFI_DataType_TUPLE FFI_TYPE_TUPLE
#define XLA_FFI_DataType_F6E2M3FN FFI_TYPE_F6E2M3FN
#define XLA_FFI_DataType_F6E3M2FN FFI_TYPE_F6E3M2FN
#define HLO_TYPE(id, name, bits, class) EQUAL(FFI_TYPE_##id, XLA_FFI_DataType_##id);
#include "ir/table/type.def"
#undef HLO_TYPE

SAME(ffi_buffer, size, XLA_FFI_Buffer, struct_size);
SAME(ffi_buffer, type, XLA_FFI_Buffer, dtype);
SAME(ffi_buffer, data, XLA_FFI_Buffer, data);
SAME(ffi_buffer, rank, XLA_FFI_Buffer, rank);
SAME(ffi_buffer, dims, XLA_FFI_Buffer, dims);
SAME(ffi_list, size, XLA_FFI_Args, struct_size);
SAME(ffi_list, count, XLA_FFI_Args, size);
SAME(ffi_list, kinds, XLA_FFI_Args, types);
SAME(ffi_list, items, XLA_FFI_Args, args);
SAME(ffi_list, size, XLA_FFI_Rets, struct_size);
SAME(ffi_list, count, XLA_FFI_Rets, size);
SAME(ffi_list, kinds, XLA_FFI_Rets, types);
SAME(ffi_list, items, XLA_FFI_Rets, rets);
EQUAL(FFI_BUFFER, XLA_FFI_ArgType_BUFFER);
EQUAL(FFI_BUFFER, XLA_FFI_RetType_BUFFER);
SAME(ffi_span, bytes, XLA_FFI_ByteSpan, ptr);
SAME(ffi_span, size, XLA_FFI_ByteSpan, len);
SAME(ffi_attrs, size, XLA_FFI_Attrs, struct_size);
SAME(ffi_attrs, count, XLA_FFI_Attrs, size);
SAME(ffi_attrs, kinds, XLA_FFI_Attrs, types);
SAME(ffi_attrs, names, XLA_FFI_Attrs, names);
SAME(ffi_attrs, values, XLA_FFI_Attrs, attrs);
EQUAL(FFI_ATTR_ARRAY, XLA_FFI_AttrType_ARRAY);
EQUAL(FFI_ATTR_DICTIONARY, XLA_FFI_AttrType_DICTIONARY);
EQUAL(FFI_ATTR_SCALAR, XLA_FFI_AttrType_SCALAR);
EQUAL(FFI_ATTR_STRING, XLA_FFI_AttrType_STRING);
SAME(ffi_scalar, type, XLA_FFI_Scalar, dtype);
SAME(ffi_scalar, value, XLA_FFI_Scalar, value);
SAME(ffi_array, type, XLA_FFI_Array, dtype);
SAME(ffi_array, count, XLA_FFI_Array, size);
SAME(ffi_array, values, XLA_FFI_Array, data);

SAME(ffi_error_new, size, XLA_FFI_Error_Create_Args, struct_size);
SAME(ffi_error_new, message, XLA_FFI_Error_Create_Args, message);
SAME(ffi_error_new, code, XLA_FFI_Error_Create_Args, errc);
SAME(ffi_error_free, size, XLA_FFI_Error_Destroy_Args, struct_size);
SAME(ffi_error_free, error, XLA_FFI_Error_Destroy_Args, error);
SAME(ffi_stream_get, size, XLA_FFI_Stream_Get_Args, struct_size);
SAME(ffi_stream_get, context, XLA_FFI_Stream_Get_Args, ctx);
SAME(ffi_stream_get, stream, XLA_FFI_Stream_Get_Args, stream);
SAME(ffi_task, size, XLA_FFI_ThreadPool_Schedule_Args, struct_size);
SAME(ffi_task, context, XLA_FFI_ThreadPool_Schedule_Args, ctx);
SAME(ffi_task, run, XLA_FFI_ThreadPool_Schedule_Args, task);
SAME(ffi_task, data, XLA_FFI_ThreadPool_Schedule_Args, data);
SAME(ffi_thread_count, size, XLA_FFI_ThreadPool_NumThreads_Args, struct_size);
SAME(ffi_thread_count, context, XLA_FFI_ThreadPool_NumThreads_Args, ctx);
SAME(ffi_thread_count, count, XLA_FFI_ThreadPool_NumThreads_Args, num_threads);

SAME(ffi_api, size, XLA_FFI_Api, struct_size);
SAME(ffi_api, version, XLA_FFI_Api, api_version);
SAME(ffi_api, error_new, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(ffi_api, error_free, XLA_FFI_Api, XLA_FFI_Error_Destroy);
SAME(ffi_api, stream_get, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME(ffi_api, thread_schedule, XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule);
SAME(ffi_api, thread_count, XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads);

SAME(ffi_frame, size, struct xla_call_frame, struct_size);
SAME(ffi_frame, extensions, struct xla_call_frame, extension_start);
SAME(ffi_frame, api, struct xla_call_frame, api);
SAME(ffi_frame, context, struct xla_call_frame, ctx);
SAME(ffi_frame, stage, struct xla_call_frame, stage);
SAME(ffi_frame, operands, struct xla_call_frame, args);
SAME(ffi_frame, results, struct xla_call_frame, rets);
SAME(ffi_frame, attrs, struct xla_call_frame, attrs);
EQUAL(FFI_EXECUTE, XLA_FFI_ExecutionStage_EXECUTE);

int main(void) {
    puts("compared with " HLO_XLA_HEADER);
    return 0;
}
#else
int main(void) {
    puts("jaxlib has no header here");
    return 77;
}
#endif
