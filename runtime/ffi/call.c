/* SPDX-License-Identifier: Apache-2.0 */
/* See call.h. */
#include "runtime/ffi/call.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------------------------------- errors */

static bool can_fail(const ffi_frame *frame) {
    return frame && FFI_HAS(frame, struct XLA_FFI_CallFrame, api) && frame->api &&
           FFI_HAS(frame->api, ffi_api, error_new) && frame->api->error_new;
}

static ffi_error *fail(const ffi_frame *frame, int code, const char *message) {
    ffi_error_new arguments = {
        .size = FFI_SIZE(ffi_error_new, code), .message = message, .code = code};
    return frame->api->error_new(&arguments);
}

/* ----------------------------------------------------------------------------------- properties */

/* Reports the version of the function: its own, or that of an older XLA whose structs have the same
 * members as far as they are used. */
static bool answers(const ffi_frame *frame) {
    if (!FFI_HAS(frame, struct XLA_FFI_CallFrame, extensions)) return false;
    for (ffi_extension *e = frame->extensions; e && FFI_HAS(e, ffi_extension, next); e = e->next) {
        if (e->kind != FFI_EXTENSION_METADATA ||
            e->size < FFI_SIZE(ffi_metadata_extension, metadata))
            continue;
        ffi_metadata *metadata = ((ffi_metadata_extension *)(void *)e)->metadata;
        if (!metadata || !FFI_HAS(metadata, ffi_metadata, traits)) continue;
        metadata->version = (ffi_version){
            .size = FFI_SIZE(ffi_version, minor), .major = FFI_MAJOR, .minor = FFI_MINOR};
        if (can_fail(frame) && frame->api->version.major == FFI_MAJOR &&
            frame->api->version.minor < FFI_MINOR)
            metadata->version.minor = frame->api->version.minor;
        metadata->traits = 0;
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------------------------------- calls */

/* A call, and the state that must be available after a jump back. */
typedef struct run {
    ffi_call call;
    bool checked;
    const char *why;
} run;

static hlo_status attempt(run *r, ffi_execute *execute) {
    r->why = ffi_frame_check(r->call.frame, r->call.arena);
    if (r->why) return HLO_INVALID_INPUT;
    r->checked = true;
    return execute(&r->call, &r->why);
}

/* Returns the call's text; an empty one if memory runs out, or if it cannot be read. */
static const char *text_of(const run *r) {
    if (!r->checked || setjmp(*r->call.recover)) return "";
    return ffi_frame_text(r->call.frame, r->call.arena);
}

static ffi_error *report(const run *r, hlo_status status) {
    enum {
        MOST = 3000
    }; /* maximum length of the call's text, so that the reason is never
        * truncated */
    char message[MOST + 1100];
    const bool starved = status == HLO_OUT_OF_MEMORY;
    const char *text = text_of(r);
    snprintf(message, sizeof message, HLO_FFI_TARGET "%.*s%s %s", MOST, text,
             strlen(text) > MOST ? "..." : "", starved ? "ran out of memory" : r->why);
    return fail(r->call.frame, starved ? FFI_RESOURCE_EXHAUSTED : r->call.code, message);
}

ffi_error *ffi_run(ffi_frame *frame, ffi_execute *execute) {
    if (!frame || answers(frame) || !can_fail(frame)) return NULL;
    jmp_buf recover;
    hlo_arena *arena;
    run *const r = hlo_arena_new_with(&recover, sizeof *r, &arena);
    if (!r) return fail(frame, FFI_RESOURCE_EXHAUSTED, HLO_FFI_TARGET " ran out of memory");
    r->call = (ffi_call){
        .frame = frame, .arena = arena, .recover = &recover, .code = FFI_INVALID_ARGUMENT};
    const hlo_status status = setjmp(recover) ? HLO_OUT_OF_MEMORY : attempt(r, execute);
    hlo_arena_set_recover(r->call.arena, &recover);
    ffi_error *error = status == HLO_OK ? NULL : report(r, status);
    hlo_module_free(r->call.module);
    hlo_arena_free(r->call.arena);
    return error;
}

/* ----------------------------------------------------------------------------------------- jobs */

static hlo_view view_of(const hlo_shape *shape, hlo_arena *arena) {
    int64_t *strides = hlo_arena_array(arena, shape->rank + 1u, sizeof *strides);
    hlo_shape_strides(shape, strides);
    return (hlo_view){shape->type, shape->rank, shape->dims, strides, NULL};
}

hlo_job *ffi_call_job(ffi_call *call, const char **why) {
    call->module = hlo_module_new(call->recover);
    if (!call->module) hlo_arena_exhausted(call->arena);
    const hlo_instr *instr = ffi_frame_read(call->frame, call->module, why);
    if (!instr) return NULL;
    hlo_arena *arena = call->module->arena;
    const uint32_t operands = instr->operand_count, results = instr->shape->rank;
    hlo_job *job = hlo_arena_zero(arena, sizeof *job);
    const hlo_instr **inputs = hlo_arena_array(arena, operands + 1u, sizeof *inputs);
    const hlo_instr **members = hlo_arena_copy(arena, &instr, sizeof instr);
    *job = (hlo_job){
        .instr = instr,
        .group = {1, 1, operands, members, members, inputs},
        .operand_count = operands,
        .result_count = results,
        .operands = hlo_arena_array(arena, operands + 1u, sizeof(hlo_view)),
        .results = hlo_arena_array(arena, results + 1u, sizeof(hlo_view)),
        .operand_sigmas = hlo_arena_zero(arena, (operands + 1u) * sizeof(hlo_view)),
        .result_sigmas = hlo_arena_zero(arena, (results + 1u) * sizeof(hlo_view)),
        .untouched = -1,
    };
    for (uint32_t i = 0; i < operands; i++) {
        inputs[i] = hlo_instr_operand(instr, i);
        job->operands[i] = view_of(inputs[i]->shape, arena);
    }
    for (uint32_t i = 0; i < results; i++)
        job->results[i] = view_of(instr->shape->elements[i], arena);
    return job;
}
