/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that remain in device memory between runs, and asynchronous runs.
 *
 *     hlo_plan_new() with `resident` -> hlo_buffer_new() ... -> hlo_plan_run_async() ...
 *                                    -> hlo_buffer_read() -> hlo_buffer_free(), hlo_plan_free()
 *
 * A run reads one buffer for each input of the plan, and creates one buffer for each output. If a
 * program uses outputs as inputs of the next run, nothing is copied.
 *
 * A donated input transfers its memory to an output. If no step reads the input after the output is
 * written, the output is computed in place. Otherwise, the memory is released after the run, and
 * outputs of later runs reuse it. Inputs are donated according to the `input_output_alias` of the
 * module and hlo_plan_options.donations.
 *
 * A buffer belongs to a device, not to the plan for which it was created. It may be an input of any
 * plan for this device, and may outlive the plan. Only one thread at a time may use a plan and the
 * buffers of its runs. hlo_buffer_free() and the deleters of tensors may be called on any thread.
 *
 * If the backend is "cuda", the primary context of the device is current in the calling thread
 * after a function returns. If the backend is "cpu", buffers are in memory of the CPU, and all work
 * is complete when a function returns. */
#ifndef HLO_BUFFER_H
#define HLO_BUFFER_H

#include "hlo/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Returns the number of inputs of a plan. */
size_t hlo_plan_input_count(const hlo_plan *plan);

/* Returns the number of outputs of a plan. */
size_t hlo_plan_output_count(const hlo_plan *plan);

/* Returns the index of the input that is donated to an output, or SIZE_MAX if no input is. A caller
 * that runs the plan in a loop passes the output as this input of the next run. `output` must be
 * less than hlo_plan_output_count(). */
size_t hlo_plan_donated_input(const hlo_plan *plan, size_t output);

/* -------------------------------------------------------------------------------------- buffers */

/* An array in the memory of a device. */
typedef struct hlo_buffer hlo_buffer;

/* Creates a buffer for the input `input` of a plan, and copies `array` to it. If `array` is NULL,
 * all elements are zero. The caller must free *out_buffer with hlo_buffer_free().
 *
 * Returns HLO_INVALID_USAGE if the plan is not `resident`. Returns HLO_INVALID_INPUT, with an error
 * in `sink`, if the input does not exist, if the type or the dimensions of `array` do not match it,
 * or if the device fails. Returns HLO_OUT_OF_MEMORY if memory of the CPU or the device cannot be
 * allocated. */
hlo_status hlo_buffer_new(hlo_plan *plan, size_t input, const hlo_array *array,
                          const hlo_diag_sink *sink, hlo_buffer **out_buffer);

/* Frees a buffer. Its memory is released when all runs that use it are complete and the deleters of
 * all tensors that share it (hlo_buffer_to_dlpack()) were called. `buffer` may be NULL. */
void hlo_buffer_free(hlo_buffer *buffer);

/* Returns the type, the dimensions and the size of a buffer, and its address on the device as
 * `data`. The elements are in the layout of the input or output for which the buffer was created.
 * The array is borrowed from the buffer. `data` is NULL after the buffer was donated. */
const hlo_array *hlo_buffer_array(const hlo_buffer *buffer);

/* Waits for the runs that use a buffer, and copies its elements in row-major order to `out_data`,
 * which has `size` bytes.
 *
 * Returns HLO_INVALID_USAGE, with an error in `sink`, if `size` is not the size of the array, or if
 * the buffer was donated. Returns HLO_INVALID_INPUT, with an error in `sink`, if a run failed. */
hlo_status hlo_buffer_read(const hlo_buffer *buffer, void *out_data, size_t size,
                           const hlo_diag_sink *sink);

/* ----------------------------------------------------------------------------------------- runs */

/* An event that is signaled when a run completes. */
typedef struct hlo_event hlo_event;

/* Starts a run of a `resident` plan. `inputs` is an array of `input_count` buffers, one for each
 * input.
 *
 * `stream` is a CUstream of the primary context of the device, CU_STREAM_LEGACY or
 * CU_STREAM_PER_THREAD. The run is executed after the work that is already enqueued on the stream.
 * If `stream` is NULL, the run uses the stream of the plan. On any stream, a run waits for earlier
 * runs that use the same buffers or the same plan.
 *
 * The function returns after the run is complete if the backend is "cpu", or if the CPU takes part
 * in the run: if `values`, `check_finite`, `profile` or `progress` is set, if an instruction runs
 * on the CPU because of `host_fallback`, or if the device cannot execute the control flow of a loop
 * or conditional.
 *
 * On success, `out_outputs`, an array with one element for each output, contains new buffers. The
 * caller owns them and must free each of them with hlo_buffer_free(). The caller also owns
 * *out_event and must free it with hlo_event_free(). `out_event` may be NULL if the event is not
 * needed. The buffers of donated inputs are still owned by the caller, who must free them, and may
 * not use them in any other way. On failure, there are no outputs and no event.
 *
 * Returns HLO_INVALID_USAGE, with an error in `sink` and before any input is donated, if the plan
 * is not `resident`; if an input was donated to an earlier run; if an input that would be donated
 * is given twice, is read-only, or shares its memory with another input or with a tensor; or if the
 * stream belongs to a different context.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the number of inputs, or the device, type,
 * dimensions or layout of an input, does not match the plan. In this case, no input is donated.
 * Also returns HLO_INVALID_INPUT if the device fails, or failed in an earlier run.
 *
 * Returns HLO_STOPPED if hlo_plan_options.progress returned false; the inputs are already donated
 * then. */
hlo_status hlo_plan_run_async(hlo_plan *plan, hlo_buffer *const *inputs, size_t input_count,
                              void *stream, const hlo_diag_sink *sink, hlo_buffer **out_outputs,
                              hlo_event **out_event);

/* Blocks the calling thread until the run is complete.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the device failed. */
hlo_status hlo_event_wait(const hlo_event *event, const hlo_diag_sink *sink);

/* Returns whether the run is complete or has failed. */
bool hlo_event_is_done(const hlo_event *event);

/* Returns a CUevent for which streams of the caller can wait, or NULL if the backend is "cpu". It
 * is borrowed from the event. */
void *hlo_event_handle(const hlo_event *event);

/* Frees an event. `event` may be NULL. */
void hlo_event_free(hlo_event *event);

/* --------------------------------------------------------------------------------------- DLPack */

/* Structs that dlpack.h defines. This header does not include dlpack.h. Elements of types of fewer
 * than 8 bits occupy one byte each. Tensors of these types must have the DLPack flag for padded
 * elements, which DLManagedTensor does not support. */
struct DLManagedTensorVersioned;
struct DLManagedTensor;

/* Creates a tensor (DLPack 1.1) that shares the memory of a buffer. The memory remains valid until
 * the deleter of the tensor is called, and cannot be donated until then. The caller owns the
 * tensor, and must call its deleter or transfer the ownership.
 *
 * `stream` is a stream as in hlo_plan_run_async(), which must exist until the deleter is called.
 * Work that is enqueued on the stream after this function returns sees the value of the buffer.
 * Work that is on the stream when the deleter is called may still use the memory. If `stream` is
 * NULL, the function waits until the value is computed, and all work on the tensor must be complete
 * when the deleter is called.
 *
 * Returns HLO_INVALID_USAGE, with an error in `sink`, if the buffer was donated or DLPack does not
 * support its element type. Returns HLO_INVALID_INPUT, with an error in `sink`, if a run failed. */
hlo_status hlo_buffer_to_dlpack(const hlo_buffer *buffer, void *stream, const hlo_diag_sink *sink,
                                struct DLManagedTensorVersioned **out_tensor);

/* Creates a tensor for DLPack before 1.0, like hlo_buffer_to_dlpack(). Such a tensor cannot be
 * marked as read-only. */
hlo_status hlo_buffer_to_dlpack_unversioned(const hlo_buffer *buffer, void *stream,
                                            const hlo_diag_sink *sink,
                                            struct DLManagedTensor **out_tensor);

/* Creates a buffer for the input `input` of a plan that shares the memory of a tensor. The caller
 * must ensure that the value is available on the stream of the first run that reads it.
 *
 * On success, the buffer owns the tensor and calls its deleter, and the caller owns *out_buffer and
 * must free it with hlo_buffer_free(). On failure, the caller still owns the tensor.
 *
 * Returns HLO_INVALID_USAGE if the plan is not `resident`. Returns HLO_INVALID_INPUT, with an error
 * in `sink`, if the tensor has a different major version of DLPack, device, type, dimensions or
 * strides than the input, or if its address is NULL although it has elements, or not aligned to 256
 * bytes (cuda) or 64 bytes (cpu). */
hlo_status hlo_buffer_from_dlpack(hlo_plan *plan, size_t input,
                                  struct DLManagedTensorVersioned *tensor,
                                  const hlo_diag_sink *sink, hlo_buffer **out_buffer);

/* Creates a buffer from a tensor for DLPack before 1.0, like hlo_buffer_from_dlpack(). */
hlo_status hlo_buffer_from_dlpack_unversioned(hlo_plan *plan, size_t input,
                                              struct DLManagedTensor *tensor,
                                              const hlo_diag_sink *sink, hlo_buffer **out_buffer);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
