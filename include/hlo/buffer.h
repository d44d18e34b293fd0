/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that stay on the device between runs, and runs that do not wait.
 *
 *     hlo_plan_new() with `resident` -> hlo_buffer_new() ... -> hlo_plan_run_async() ...
 *                                    -> hlo_buffer_read() -> hlo_buffer_free(), hlo_plan_free()
 *
 * A run takes a buffer for each input of the plan and makes one for each output, so that a program
 * that hands outputs on as inputs copies nothing. A donated input gives its memory away: the
 * buffer of the output takes it, in place where nothing reads the input afterwards, else a later
 * output of the plan does. Inputs are donated by the module's `input_output_alias`, or by
 * hlo_plan_options.donations.
 *
 * A buffer is of a device, not of the plan that made it: any plan for that device may read it, and
 * it may outlive the plan. One thread at a time works on a plan and on the buffers that it uses;
 * hlo_buffer_free(), and the deleters of tensors made here, may be called on any.
 *
 * With the backend "cuda" the device's primary context is current in the thread when a function
 * returns. With the backend "cpu" memory is the host's, and everything is done when a function
 * returns. */
#ifndef HLO_BUFFER_H
#define HLO_BUFFER_H

#include "hlo/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The numbers of inputs and outputs of a plan. */
size_t hlo_plan_input_count(const hlo_plan *plan);
size_t hlo_plan_output_count(const hlo_plan *plan);
/* The input that is donated to output `output`, which is below the count: the one to replace by it
 * in the next run of a loop; SIZE_MAX: none is. */
size_t hlo_plan_donated_input(const hlo_plan *plan, size_t output);

/* -------------------------------------------------------------------------------------- buffers */

/* An array in memory of a device. */
typedef struct hlo_buffer hlo_buffer;

/* Copies an array to a buffer for input `input` of a plan; `array` NULL: zeros. On HLO_OK the
 * caller frees *out_buffer with hlo_buffer_free(). HLO_INVALID_USAGE: the plan is not `resident`.
 * HLO_INVALID_INPUT, with an error in `sink`: there is no such input, its type or its dimensions
 * differ from the array's, or the device failed. HLO_OUT_OF_MEMORY: of the host or the device. */
hlo_status hlo_buffer_new(hlo_plan *plan, size_t input, const hlo_array *array,
                          const hlo_diag_sink *sink, hlo_buffer **out_buffer);
/* Frees the buffer; its memory is free when the runs that use it are done, and when no tensor of
 * hlo_buffer_to_dlpack() is left. NULL is allowed. */
void hlo_buffer_free(hlo_buffer *buffer);
/* Returns the type, the dimensions, the address on the device (`data`) and the bytes of a buffer.
 * Elements are in the order of the layout of the input or output that it was made for. Borrowed
 * until the buffer is freed; `data` is NULL once the buffer was donated. */
const hlo_array *hlo_buffer_array(const hlo_buffer *buffer);
/* Waits for the runs that use the buffer, and copies it to the host, row-major. HLO_INVALID_USAGE,
 * with an error in `sink`: `size` is not that of the array, or the buffer was donated.
 * HLO_INVALID_INPUT: a run failed. HLO_OUT_OF_MEMORY. */
hlo_status hlo_buffer_read(const hlo_buffer *buffer, void *out_data, size_t size,
                           const hlo_diag_sink *sink);

/* ----------------------------------------------------------------------------------------- runs */

/* The completion of a run. */
typedef struct hlo_event hlo_event;

/* Queues a run of a `resident` plan. `inputs` has a buffer for each input. `stream` is a CUstream
 * of the device's primary context, behind whose work the run is done, also CU_STREAM_LEGACY and
 * CU_STREAM_PER_THREAD; NULL: the plan's own. On any stream a run waits for the runs before it that
 * use its buffers or its plan. It does not return before the run is done with the backend "cpu",
 * and where the host takes part in it: for `values`, `check_finite`, `profile`, `progress`, and
 * `host_fallback`, and at a loop or conditional whose course the device cannot follow by itself.
 *
 * On HLO_OK the caller frees each of out_outputs, which has an entry for each output, with
 * hlo_buffer_free(), and *out_event, unless `out_event` is NULL, with hlo_event_free(). The buffers
 * of donated inputs are freed by the caller, too; nothing else may be done with them. On failure
 * there are no outputs, and no event.
 *
 * HLO_INVALID_USAGE, with an error in `sink`, before anything is donated: the plan is not
 * `resident`; a buffer was donated before; it is to be donated, and is given twice, read-only, or
 * in the memory of another input or of a tensor that was made of it; the stream is of another
 * context. HLO_INVALID_INPUT, with an error in `sink`: before anything is donated: the number of
 * inputs, or the device, the type, the dimensions or the layout of one differ from the plan's;
 * behind that: the device failed, also in an earlier run. HLO_STOPPED: as for hlo_plan_run();
 * donated inputs are donated. HLO_OUT_OF_MEMORY. */
hlo_status hlo_plan_run_async(hlo_plan *plan, hlo_buffer *const *inputs, size_t input_count,
                              void *stream, const hlo_diag_sink *sink, hlo_buffer **out_outputs,
                              hlo_event **out_event);

/* Waits on the host. HLO_INVALID_INPUT, with an error in `sink`: the device failed. */
hlo_status hlo_event_wait(const hlo_event *event, const hlo_diag_sink *sink);
/* True if the run is done, or has failed. */
bool hlo_event_is_done(const hlo_event *event);
/* Returns the CUevent, for streams of the caller to wait for; NULL: the run is done. Borrowed. */
void *hlo_event_handle(const hlo_event *event);
void hlo_event_free(hlo_event *event); /* NULL is allowed */

/* --------------------------------------------------------------------------------------- DLPack */

/* As in dlpack.h, which is not needed here. Types of fewer than 8 bits take a byte for each
 * element: tensors of them need the flag of padded elements, which the older struct has not. */
struct DLManagedTensorVersioned;
struct DLManagedTensor;

/* Makes a tensor (DLPack 1.1) of the buffer's memory, which lives until the tensor's deleter is
 * called, and cannot be donated until then. Work behind `stream` sees the value (a CUstream, as for
 * hlo_plan_run_async(), which exists until the deleter is called); NULL: the function waits for it.
 * What is queued on `stream` when the deleter is called may go on with the memory; with NULL all
 * work on it is over then. The caller, or whom it is handed to, calls the deleter.
 * HLO_INVALID_USAGE, with an error in `sink`: the buffer was donated, or DLPack has no such type.
 * HLO_INVALID_INPUT: a run failed. HLO_OUT_OF_MEMORY. */
hlo_status hlo_buffer_to_dlpack(const hlo_buffer *buffer, void *stream, const hlo_diag_sink *sink,
                                struct DLManagedTensorVersioned **out_tensor);
/* Makes the struct of DLPack before 1.0, in the same way. It cannot say that memory is read-only.
 */
hlo_status hlo_buffer_to_dlpack_unversioned(const hlo_buffer *buffer, void *stream,
                                            const hlo_diag_sink *sink,
                                            struct DLManagedTensor **out_tensor);
/* Makes a buffer for input `input` of a plan of a tensor's memory, without a copy. The caller has
 * seen to it that the value is there for the stream of the first run that reads it. On HLO_OK the
 * buffer owns the tensor, and calls its deleter; the caller frees the buffer with
 * hlo_buffer_free(). Otherwise the tensor is still the caller's. HLO_INVALID_USAGE: the plan is not
 * `resident`. HLO_INVALID_INPUT, with an error in `sink`: the tensor is of another major version,
 * on another device, of another type or other dimensions than the input, its strides are not those
 * of the input's layout, or its address is NULL or no multiple of 256 (cuda) or 64 (cpu).
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_buffer_from_dlpack(hlo_plan *plan, size_t input,
                                  struct DLManagedTensorVersioned *tensor,
                                  const hlo_diag_sink *sink, hlo_buffer **out_buffer);
/* Takes the struct of DLPack before 1.0, in the same way. */
hlo_status hlo_buffer_from_dlpack_unversioned(hlo_plan *plan, size_t input,
                                              struct DLManagedTensor *tensor,
                                              const hlo_diag_sink *sink, hlo_buffer **out_buffer);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
