/* SPDX-License-Identifier: Apache-2.0 */
/* Tests DLPack tensors from buffers, and buffers from tensors. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "runtime/cuda/driver/library.h"
#include "runtime/exec/dlpack.h"
#include "tests/unit/runtime/buffer_fixture.h"

static int deleted;

static void delete_versioned(struct DLManagedTensorVersioned *self) {
    (void)self;
    deleted++;
}

static void delete_plain(struct DLManagedTensor *self) {
    (void)self;
    deleted++;
}

static void tensors_share_memory(void **state) {
    (void)state;
    fixture f = open_loop();
    struct DLManagedTensorVersioned *tensor;
    struct DLManagedTensor *plain;
    assert_int_equal(hlo_buffer_to_dlpack(f.in[1], NULL, &sink, &tensor), HLO_OK);
    assert_int_equal(tensor->major, 1);
    assert_int_equal(tensor->flags, 0);
    assert_int_equal(tensor->tensor.device_type, strcmp(backend, "cpu") ? 2 : 1);
    assert_int_equal(tensor->tensor.code, 2);
    assert_int_equal(tensor->tensor.bits, 32);
    assert_int_equal(tensor->tensor.strides[0], 1); /* {0,1} */
    assert_int_equal(tensor->tensor.strides[1], 2);
    assert_ptr_equal(tensor->tensor.data, hlo_buffer_array(f.in[1])->data);
    hlo_buffer_free(f.in[1]);
    assert_int_equal(hlo_buffer_from_dlpack(f.plan, 1, tensor, &sink, &f.in[1]), HLO_OK);
    assert_int_equal(hlo_buffer_to_dlpack_unversioned(f.in[0], NULL, &sink, &plain), HLO_OK);
    misused(run(&f, NULL, NULL), "a tensor shares its memory");
    plain->deleter(plain);
    runs(&f);
    reads(f.out[1], (const float[]){21}, 1);
    misused(hlo_buffer_to_dlpack(f.in[0], NULL, &sink, &tensor), "donated");
    close_all(&f);
}

static void tensors_have_owners(void **state) {
    (void)state;
    fixture f = open_loop();
    const hlo_array *array = hlo_buffer_array(f.in[0]);
    hlo_buffer *made = NULL;
    int64_t dims[] = {2, 3}, strides[] = {3, 1};
    struct DLManagedTensorVersioned t = {.major = 1, .deleter = delete_versioned};
    t.tensor = (dlpack_tensor){
        array->data, strcmp(backend, "cpu") ? 2 : 1, 0, 2, 2, 32, 1, dims, strides, 0};
    struct DLManagedTensor plain = {.tensor = t.tensor, .deleter = delete_plain};
#define REFUSED(change, back, why)                                                                 \
    change;                                                                                        \
    refused(hlo_buffer_from_dlpack(f.plan, 0, &t, &sink, &made), why);                             \
    assert_null(made);                                                                             \
    back
    deleted = 0;
    REFUSED(t.major = 2, t.major = 1, "DLPack version 2.0");
    REFUSED(t.tensor.device_type = 7, t.tensor.device_type = plain.tensor.device_type, "of type");
    REFUSED(t.tensor.device_id = 1, t.tensor.device_id = 0, "on device 1");
    REFUSED(t.tensor.code = 4, t.tensor.code = 2, "element type");
    REFUSED(t.tensor.bits = 16, t.tensor.bits = 32, "element type");
    REFUSED(t.tensor.lanes = 2, t.tensor.lanes = 1, "element type");
    REFUSED(dims[0] = 3, dims[0] = 2, "dimensions");
    REFUSED(strides[0] = 4, strides[0] = 3, "strides");
    REFUSED(t.tensor.byte_offset = 4, t.tensor.byte_offset = 0, "is not aligned to");
    REFUSED(t.tensor.data = NULL, t.tensor.data = plain.tensor.data, "has a NULL data pointer");
    assert_int_equal(deleted, 0);
    t.flags = 1;
    assert_int_equal(hlo_buffer_from_dlpack(f.plan, 0, &t, &sink, &made), HLO_OK);
    hlo_buffer *inputs[] = {made, f.in[1]};
    misused(hlo_plan_run_async(f.plan, inputs, 2, NULL, &sink, f.out, NULL), "read-only");
    hlo_buffer_free(made);
    assert_int_equal(deleted, 1);
    plain.tensor.strides = NULL;
    assert_int_equal(hlo_buffer_from_dlpack_unversioned(f.plan, 0, &plain, &sink, &made), HLO_OK);
    inputs[0] = made;
    assert_int_equal(hlo_plan_run_async(f.plan, inputs, 2, NULL, &sink, f.out, NULL), HLO_OK);
    reads(f.out[1], (const float[]){21}, 1);
    hlo_buffer_free(made);
    hlo_buffer_free(f.out[0]);
    hlo_buffer_free(f.out[1]);
    assert_int_equal(deleted, 2);
    plain.tensor.data = hlo_buffer_array(f.in[1])->data;
    plain.tensor.strides = strides;
    strides[0] = 1, strides[1] = 2; /* the layout of input 1 */
    assert_int_equal(hlo_buffer_from_dlpack_unversioned(f.plan, 1, &plain, &sink, &made), HLO_OK);
    inputs[0] = f.in[0], inputs[1] = made;
    assert_int_equal(hlo_plan_run_async(f.plan, inputs, 2, NULL, &sink, f.out, NULL), HLO_OK);
    hlo_buffer_free(made);
    assert_int_equal(deleted, 3);
    close_all(&f);
}

/* Absent strides mean row-major order, which may also be the order of the module's layout. */
static void strides_may_be_left_out(void **state) {
    (void)state;
    fixture f = open_with("HloModule m\n\n"
                          "ENTRY %e (a: f32[4,1], b: f32[2,2]) -> (f32[4,1], f32[2,2]) {\n"
                          "  %a = f32[4,1]{0,1} parameter(0)\n  %b = f32[2,2]{0,1} parameter(1)\n"
                          "  ROOT %t = (f32[4,1]{0,1}, f32[2,2]{0,1}) tuple(%a, %b)\n}\n",
                          NULL);
    static const int64_t dims[2][2] = {{4, 1}, {2, 2}};
    struct DLManagedTensorVersioned *tensor;
    hlo_buffer *made;
    for (size_t i = 0; i < 2; i++) {
        put(&f, i, HLO_TYPE_F32, 2, dims[i], numbers);
        assert_int_equal(hlo_buffer_to_dlpack(f.in[i], NULL, &sink, &tensor), HLO_OK);
        tensor->tensor.strides = NULL;
        const hlo_status status = hlo_buffer_from_dlpack(f.plan, i, tensor, &sink, &made);
        if (i == 1) {
            refused(status, "has different strides");
            tensor->deleter(tensor);
            continue;
        }
        assert_int_equal(status, HLO_OK);
        hlo_buffer_free(f.in[i]);
        f.in[i] = made;
    }
    runs(&f);
    reads(f.out[0], numbers, 4);
    close_all(&f);
}

/* The second input is a part of the memory of the first, which is donated. */
static void donated_memory_is_of_one_input(void **state) {
    (void)state;
    fixture f = open_with("HloModule m, input_output_alias={ {}: (0, {}) }\n\n"
                          "ENTRY %e (a: f32[128], b: f32[64]) -> f32[128] {\n"
                          "  %a = f32[128]{0} parameter(0)\n  %b = f32[64]{0} parameter(1)\n"
                          "  %c = f32[128]{0} concatenate(%b, %b), dimensions={0}\n"
                          "  ROOT %s = f32[128]{0} add(%a, %c)\n}\n",
                          NULL);
    struct DLManagedTensorVersioned *tensor;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(hlo_buffer_new(f.plan, i, NULL, &sink, &f.in[i]), HLO_OK);
    assert_int_equal(hlo_buffer_to_dlpack(f.in[1], NULL, &sink, &tensor), HLO_OK);
    struct DLManagedTensorVersioned half = *tensor;
    half.deleter = NULL;
    half.tensor.data = hlo_buffer_array(f.in[0])->data;
    half.tensor.byte_offset = 256;
    hlo_buffer_free(f.in[1]);
    assert_int_equal(hlo_buffer_from_dlpack(f.plan, 1, &half, &sink, &f.in[1]), HLO_OK);
    tensor->deleter(tensor);
    misused(run(&f, NULL, NULL), "input 1 shares its memory");
    close_all(&f);
}

static void narrow_types_have_codes(void **state) {
    (void)state;
    fixture f = open_with(NARROW, NULL);
    struct DLManagedTensorVersioned *tensor;
    struct DLManagedTensor *plain;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(hlo_buffer_new(f.plan, i, NULL, &sink, &f.in[i]), HLO_OK);
    assert_int_equal(hlo_buffer_to_dlpack(f.in[0], NULL, &sink, &tensor), HLO_OK);
    assert_int_equal(tensor->tensor.code, 10); /* kDLFloat8_e4m3fn */
    assert_int_equal(tensor->tensor.bits, 8);
    tensor->deleter(tensor);
    misused(hlo_buffer_to_dlpack_unversioned(f.in[1], NULL, &sink, &plain), "does not support s4");
    assert_int_equal(hlo_buffer_to_dlpack(f.in[1], NULL, &sink, &tensor), HLO_OK);
    assert_int_equal(tensor->tensor.bits, 4);
    assert_int_equal(tensor->flags, 4); /* padded */
    tensor->flags = 0;
    hlo_buffer *made;
    refused(hlo_buffer_from_dlpack(f.plan, 1, tensor, &sink, &made), "packed elements");
    tensor->deleter(tensor);
    close_all(&f);
}

/* A tensor for a stream that cannot be made to wait is rejected, and the next run is not
 * affected. */
static void a_stream_that_cannot_wait_has_no_tensor(void **state) {
    (void)state;
    struct DLManagedTensorVersioned *tensor;
    fixture f = open_loop();
    runs(&f);
    setenv("HLO_STANDIN_FAIL_ALL", "cuStreamWaitEvent", 1);
    const hlo_status status = hlo_buffer_to_dlpack(f.out[0], (void *)1, &sink, &tensor);
    unsetenv("HLO_STANDIN_FAIL_ALL");
    if (!getenv("HLO_TEST_DEVICE")) refused(status, "CUDA_ERROR_1");
    if (status == HLO_OK) tensor->deleter(tensor);
    hlo_buffer_free(f.in[0]);
    hlo_buffer_free(f.out[1]);
    f.in[0] = f.out[0];
    f.out[0] = f.out[1] = NULL;
    runs(&f);
    close_all(&f);
}

/* The memory of a released tensor is written only after the work on it is complete, even if the
 * driver has no event for that. */
static void work_on_a_tensor_may_go_on(void **state) {
    (void)state;
    cuda_library lib = {0};
    cuda_stream *stream;
    cuda_address copy;
    struct DLManagedTensorVersioned *tensor;
    float found = 0;
    fixture f = open_loop();
    assert_int_equal(cuda_library_load(&lib, CUDA_DRIVER, &sink), HLO_OK);
    assert_int_equal(lib.cuStreamCreate(&stream, 1), 0);
    assert_int_equal(lib.cuMemAlloc(&copy, sizeof found), 0);
    for (int step = 1; step <= 4; step++) {
        runs(&f);
        const void *data = hlo_buffer_array(f.out[1])->data;
        assert_int_equal(hlo_buffer_to_dlpack(f.out[1], stream, &sink, &tensor), HLO_OK);
        assert_int_equal(lib.cuMemcpyDtoDAsync(copy, (cuda_address)(uintptr_t)tensor->tensor.data,
                                               sizeof found, stream),
                         0);
        if (step > 2) setenv("HLO_STANDIN_FAIL_ALL", "cuEventCreate", 1);
        if (step % 2) tensor->deleter(tensor);
        hlo_buffer_free(f.out[1]);
        if (step % 2 == 0) tensor->deleter(tensor);
        unsetenv("HLO_STANDIN_FAIL_ALL");
        hlo_buffer_free(f.in[0]);
        f.in[0] = f.out[0];
        f.out[0] = f.out[1] = NULL;
        runs(&f); /* on the plan's own stream */
        assert_ptr_equal(hlo_buffer_array(f.out[1])->data, data);
        reads(f.out[1], (const float[]){6 + 15 * (float)(2 * step)}, 1);
        lib.cuMemcpyDtoHAsync(&found, copy, sizeof found, stream);
        lib.cuStreamSynchronize(stream);
        assert_float_equal(found, 6 + 15 * (float)(2 * step - 1), 0);
        hlo_buffer_free(f.in[0]);
        f.in[0] = f.out[0];
        hlo_buffer_free(f.out[1]);
        f.out[0] = f.out[1] = NULL;
    }
    lib.cuMemFree(copy);
    assert_int_equal(lib.cuStreamDestroy(stream), 0); /* the stream's context is that of the plan */
    close_all(&f);
    cuda_library_unload(&lib);
}

/* -------------------------------------------------------------------------------------- threads */

enum { HANDED = 16 };

typedef struct handed {
    hlo_buffer *buffer;
    struct DLManagedTensorVersioned *tensor;
    hlo_event *event;
} handed;

typedef struct queue {
    handed runs[HANDED];
    atomic_int count;
} queue;

/* Frees the outputs of runs while other threads continue. */
static void *free_handed(void *queue_) {
    queue *q = queue_;
    for (int i = 0; i < HANDED; i++) {
        while (atomic_load(&q->count) <= i) sched_yield();
        const handed *run = &q->runs[i];
        if (i % 3) hlo_event_wait(run->event, NULL);
        if (i % 2) hlo_buffer_free(run->buffer);
        run->tensor->deleter(run->tensor);
        if (i % 2 == 0) hlo_buffer_free(run->buffer);
        hlo_event_free(run->event);
    }
    return NULL;
}

/* Runs a separate plan on a thread. Returns NULL, or the error. */
static void *run_other(void *fixture_) {
    fixture *f = fixture_;
    float found[6];
    for (int i = 0; i < HANDED; i++) {
        if (hlo_plan_run_async(f->plan, f->in, 2, NULL, NULL, f->out, NULL) != HLO_OK)
            return "a run failed";
        if (hlo_buffer_read(f->out[1], found, sizeof *found, NULL) != HLO_OK || *found != 21)
            return "a value is wrong";
        for (int o = 0; o < 2; o++) hlo_buffer_free(f->out[o]);
        f->out[0] = f->out[1] = NULL;
        hlo_buffer_free(f->in[0]); /* donated to a run */
        f->in[0] = NULL;
        put(f, 0, HLO_TYPE_F32, 2, dims23, ones);
    }
    return NULL;
}

static void any_thread_may_free(void **state) {
    (void)state;
    fixture f = open_loop(), g = open_loop();
    pthread_t threads[2];
    queue q = {.count = 0};
    void *fault;
    assert_int_equal(pthread_create(&threads[0], NULL, free_handed, &q), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, run_other, &g), 0);
    for (int i = 0; i < HANDED; i++) {
        handed *run = &q.runs[i];
        void *stream = i % 4 == 3 ? (void *)2 : NULL; /* CU_STREAM_PER_THREAD */
        assert_int_equal(hlo_plan_run_async(f.plan, f.in, 2, NULL, NULL, f.out, &run->event), 0);
        assert_int_equal(hlo_buffer_to_dlpack(f.out[1], stream, NULL, &run->tensor), HLO_OK);
        run->buffer = f.out[1];
        hlo_buffer_free(f.in[0]);
        f.in[0] = f.out[0];
        f.out[0] = f.out[1] = NULL;
        atomic_fetch_add(&q.count, 1);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &fault), 0);
        if (fault) fail_msg("%s", (const char *)fault);
    }
    reads(f.in[0], (const float[]){1, 17, 33, 49, 65, 81}, 6);
    close_all(&f);
    close_all(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(tensors_share_memory),
        BOTH(tensors_have_owners),
        BOTH(strides_may_be_left_out),
        BOTH(donated_memory_is_of_one_input),
        BOTH(narrow_types_have_codes),
        {"a_stream_that_cannot_wait_has_no_tensor", a_stream_that_cannot_wait_has_no_tensor,
         on_cuda, NULL, NULL},
        BOTH(any_thread_may_free),
        {"work_on_a_tensor_may_go_on", work_on_a_tensor_may_go_on, on_cuda, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, set_up_all, NULL);
}
