/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a call from XLA: checks its frame, and converts the frame to text, to an instruction and
 * to a job. */
#include "runtime/ffi/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hlo/ffi.h"
#include "ir/eval/eval.h"
#include "matmul/config.h"

static const int type_numbers[HLO_TYPE_COUNT] = {
#define HLO_TYPE(id, name, bits, class) [HLO_TYPE_##id] = FFI_TYPE_##id,
#include "ir/table/type.def"
#undef HLO_TYPE
};

/* Returns the type with that number; HLO_TYPE_INVALID if unknown or without elements. */
static hlo_type type_of(int number) {
    for (int type = 0; type < HLO_TYPE_COUNT; type++)
        if (type_numbers[type] == number && hlo_types[type].bytes) return (hlo_type)type;
    return HLO_TYPE_INVALID;
}

size_t ffi_type_bytes(int number) {
    const hlo_type type = type_of(number);
    return type == HLO_TYPE_INVALID ? 0 : hlo_types[type].bytes;
}

/* ------------------------------------------------------------------------------------- checking */

static const char *check_size(hlo_arena *arena, const char *what, size_t size, size_t least) {
    if (size >= least) return NULL;
    return hlo_arena_format(
        arena, "has %s of %zu bytes, but version %d.%d of XLA's FFI requires at least %zu", what,
        size, FFI_MAJOR, FFI_MINOR, least);
}

static const char *check_buffer(hlo_arena *arena, const char *what, const ffi_buffer *buffer) {
    const char *why = check_size(arena, what, buffer->size, FFI_SIZE(ffi_buffer, dims));
    if (why) return why;
    const hlo_type type = type_of(buffer->type);
    if (type == HLO_TYPE_INVALID)
        return hlo_arena_format(arena, "has %s with unknown element type %d", what, buffer->type);
    if (buffer->rank < 0 || buffer->rank > HLO_EVAL_MAX_RANK)
        return hlo_arena_format(arena, "has %s with %lld dimensions", what,
                                (long long)buffer->rank);
    if (buffer->rank && !buffer->dims)
        return hlo_arena_format(arena, "has %s with NULL dimensions", what);
    int64_t count = 1;
    bool valid = true, empty = false;
    for (int64_t i = 0; i < buffer->rank && valid; i++) {
        const int64_t dim = buffer->dims[i];
        empty |= dim == 0;
        valid = dim >= 0 && (!dim || !__builtin_mul_overflow(count, dim, &count));
    }
    if (!valid || (!empty && count > INT64_MAX / 16)) /* the size would exceed the address space */
        return hlo_arena_format(arena, "has %s with invalid dimensions", what);
    if (!empty && !buffer->data) return hlo_arena_format(arena, "has %s with NULL data", what);
    if ((uintptr_t)buffer->data % hlo_types[type].bytes)
        return hlo_arena_format(arena, "has %s whose data is not aligned for %s", what,
                                hlo_types[type].name);
    return NULL;
}

/* Checks that `size` is the expected size of a struct inside the frame. Such a struct cannot have
 * grown in a newer version, because members after it would have moved. */
static const char *check_inside(hlo_arena *arena, const char *what, size_t size, size_t wanted) {
    if (size == wanted) return NULL;
    return hlo_arena_format(
        arena, "has a list of %s of %zu bytes, but version %d.%d of XLA's FFI requires %zu", what,
        size, FFI_MAJOR, FFI_MINOR, wanted);
}

static const char *check_list(hlo_arena *arena, const char *what, const ffi_list *list) {
    enum { MAX = 64 };
    if (list->count < 0 || list->count > MAX)
        return hlo_arena_format(arena, "has %lld %ss", (long long)list->count, what);
    if (list->count && (!list->kinds || !list->items))
        return hlo_arena_format(arena, "has a NULL list of %ss", what);
    for (int64_t i = 0; i < list->count; i++) {
        const char *name = hlo_arena_format(arena, "%s %lld", what, (long long)i);
        if (list->kinds[i] != FFI_BUFFER || !list->items[i])
            return hlo_arena_format(arena, "has %s that is not an array", name);
        const char *why = check_buffer(arena, name, list->items[i]);
        if (why) return why;
    }
    return NULL;
}

static bool span_good(const ffi_span *span) {
    return span && (span->bytes || !span->size);
}

/* Checks the sizes and pointers of a frame, so that all of it can be read. Returns why the frame is
 * invalid, or NULL. */
static const char *check_frame(const ffi_frame *frame, hlo_arena *arena) {
    const char *why =
        check_size(arena, "a call frame", frame->size, FFI_SIZE(struct XLA_FFI_CallFrame, attrs));
    if (why) return why;
    const ffi_version *version = &frame->api->version;
    if (version->major != FFI_MAJOR)
        return hlo_arena_format(arena,
                                "is called by version %d.%d of XLA's FFI, but supports only %d.%d",
                                version->major, version->minor, FFI_MAJOR, FFI_MINOR);
    if (frame->stage != FFI_EXECUTE)
        return hlo_arena_format(arena, "is called at stage %d, but supports only execution",
                                frame->stage);
    const size_t list = FFI_SIZE(ffi_list, items);
    why = check_inside(arena, "operands", frame->operands.size, list);
    if (!why) why = check_inside(arena, "results", frame->results.size, list);
    if (!why)
        why = check_inside(arena, "attributes", frame->attrs.size, FFI_SIZE(ffi_attrs, values));
    if (!why) why = check_list(arena, "operand", &frame->operands);
    if (!why) why = check_list(arena, "result", &frame->results);
    if (why) return why;
    enum { MAX = 1024 };
    if (frame->attrs.count < 0 || frame->attrs.count > MAX)
        return hlo_arena_format(arena, "has %lld attributes", (long long)frame->attrs.count);
    if (frame->attrs.count && (!frame->attrs.kinds || !frame->attrs.names || !frame->attrs.values))
        return "has a NULL list of attributes";
    for (int64_t i = 0; i < frame->attrs.count; i++) {
        if (!span_good(frame->attrs.names[i]))
            return hlo_arena_format(arena, "has attribute %lld with a NULL name", (long long)i);
        const void *value = frame->attrs.values[i];
        const int kind = frame->attrs.kinds[i];
        const ffi_array *array = value;
        if (!value || (kind == FFI_ATTR_ARRAY && !array->values && array->count) ||
            (kind == FFI_ATTR_SCALAR && !((const ffi_scalar *)value)->value) ||
            (kind == FFI_ATTR_STRING && !span_good(value)))
            return hlo_arena_format(arena, "has attribute %lld with a NULL value", (long long)i);
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------- text */

typedef enum reader_kind {
    FFI_FOR_READING, /* for matmul/json.h to parse: floats as bits, independent of the locale */
    FFI_FOR_PEOPLE   /* for messages: floats in decimal, unknown values as `?`, long texts
                      * truncated */
} reader_kind;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Returns the bytes in quotes, with escapes; for people, at most MAX bytes. */
static const char *quote(const ffi_span *span, hlo_arena *arena, reader_kind reader) {
    enum { MAX = 80 };
    size_t size = reader == FFI_FOR_PEOPLE && span->size > MAX ? MAX : span->size;
    char *text = hlo_arena_array(arena, size + 2, 3), *to = text;
    *to++ = '"';
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)span->bytes[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            *to++ = (char)c;
        else
            to += snprintf(to, 4, "\\%02X", c);
    }
    *to++ = '"';
    *to = '\0';
    return text;
}

/* Returns the name, in quotes if necessary. */
static const char *format_name(const ffi_span *name, hlo_arena *arena, reader_kind reader) {
    bool plain = name->size > 0 && name->size < 80 && is_letter(name->bytes[0]);
    for (size_t i = 0; plain && i < name->size; i++)
        plain = is_letter(name->bytes[i]) || (name->bytes[i] >= '0' && name->bytes[i] <= '9');
    return plain ? hlo_arena_format(arena, "%.*s", (int)name->size, name->bytes)
                 : quote(name, arena, reader);
}

static const char *format_float(double value, hlo_arena *arena, reader_kind reader) {
    if (reader == FFI_FOR_PEOPLE) return hlo_arena_format(arena, "%.9g", value);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return hlo_arena_format(arena, "0x%016" PRIX64 " : f64", bits);
}

/* The integer types: XLA's number, and the C type. */
#define INTEGERS(ROW)                                                                              \
    ROW(FFI_TYPE_S8, int8_t)                                                                       \
    ROW(FFI_TYPE_S16, int16_t)                                                                     \
    ROW(FFI_TYPE_S32, int32_t)                                                                     \
    ROW(FFI_TYPE_S64, int64_t)                                                                     \
    ROW(FFI_TYPE_U8, uint8_t)                                                                      \
    ROW(FFI_TYPE_U16, uint16_t)                                                                    \
    ROW(FFI_TYPE_U32, uint32_t)                                                                    \
    ROW(FFI_TYPE_U64, uint64_t)

/* Returns integer `index` of an array as text, or NULL if `type` is not an integer type. */
static const char *format_integer(int type, const void *values, size_t index, hlo_arena *arena) {
    switch (type) {
#define ROW(number, c_type)                                                                        \
    case number: {                                                                                 \
        c_type value;                                                                              \
        memcpy(&value, (const char *)values + index * sizeof value, sizeof value);                 \
        if (value > 0) return hlo_arena_format(arena, "%" PRIu64, (uint64_t)value);                \
        return hlo_arena_format(arena, "%" PRId64, (int64_t)value);                                \
    }
        INTEGERS(ROW)
#undef ROW
    default: return NULL;
    }
}

/* Returns the texts as one text, separated by commas. */
static const char *join(hlo_arena *arena, const char *const *texts, size_t count) {
    size_t size = 1;
    for (size_t i = 0; i < count; i++) size += strlen(texts[i]) + 2;
    char *text = hlo_arena_alloc(arena, size), *to = text;
    *to = '\0';
    for (size_t i = 0; i < count; i++) to = stpcpy(stpcpy(to, i ? ", " : ""), texts[i]);
    return text;
}

/* Returns an array of integers as text. An empty array may have any element type. */
static const char *format_array(const ffi_array *array, hlo_arena *arena, reader_kind reader) {
    enum { MAX = 32, LIMIT = 1 << 16 };
    if (reader == FFI_FOR_READING && array->count > LIMIT) return NULL;
    const bool whole = reader == FFI_FOR_READING || array->count <= MAX;
    const size_t shown = whole ? array->count : MAX;
    const char **values = hlo_arena_array(arena, shown, sizeof *values);
    for (size_t i = 0; i < shown; i++) {
        values[i] = format_integer(array->type, array->values, i, arena);
        if (!values[i]) return NULL;
    }
    return hlo_arena_format(arena, "array<i64%s%s%s>", shown ? ": " : "",
                            join(arena, values, shown), whole ? "" : ", ...");
}

/* Returns checked attributes as text, in order, separated by commas. If an attribute has a kind of
 * value that matmul/json.h does not support, returns NULL and sets *why as in call.h. `why` may be
 * NULL with FFI_FOR_PEOPLE. */
static const char *format_attributes(const ffi_attrs *attrs, hlo_arena *arena, reader_kind reader,
                                     const char **why) {
    const char **texts = hlo_arena_array(arena, (size_t)attrs->count, sizeof *texts);
    for (int64_t i = 0; i < attrs->count; i++) {
        const char *name = format_name(attrs->names[i], arena, reader);
        const char *value = NULL;
        if (attrs->kinds[i] == FFI_ATTR_ARRAY) {
            value = format_array(attrs->values[i], arena, reader);
        } else if (attrs->kinds[i] == FFI_ATTR_STRING) {
            value = quote(attrs->values[i], arena, reader);
        } else if (attrs->kinds[i] == FFI_ATTR_SCALAR) {
            const ffi_scalar *scalar = attrs->values[i];
            float narrow;
            double wide;
            switch (scalar->type) {
            case FFI_TYPE_PRED: value = *(const char *)scalar->value ? "true" : "false"; break;
            case FFI_TYPE_F32:
                memcpy(&narrow, scalar->value, sizeof narrow);
                value = format_float((double)narrow, arena, reader);
                break;
            case FFI_TYPE_F64:
                memcpy(&wide, scalar->value, sizeof wide);
                value = format_float(wide, arena, reader);
                break;
            default: value = format_integer(scalar->type, scalar->value, 0, arena);
            }
        }
        if (!value && reader == FFI_FOR_READING) {
            *why = hlo_arena_format(
                arena, "has attribute %s, which is not a string, flag, number or array of integers",
                format_name(attrs->names[i], arena, FFI_FOR_PEOPLE));
            return NULL;
        }
        texts[i] = hlo_arena_format(arena, "%s = %s", name, value ? value : "?");
    }
    return join(arena, texts, (size_t)attrs->count);
}

static const char *format_list(hlo_arena *arena, const ffi_list *list) {
    const char **texts = hlo_arena_array(arena, (size_t)list->count, sizeof *texts);
    for (int64_t i = 0; i < list->count; i++) {
        const ffi_buffer *buffer = ffi_buffer_at(list, i);
        const char *dims = "";
        for (int64_t d = 0; d < buffer->rank; d++)
            dims =
                hlo_arena_format(arena, "%s%s%lld", dims, d ? "," : "", (long long)buffer->dims[d]);
        texts[i] = hlo_arena_format(arena, "%s[%s]", hlo_types[type_of(buffer->type)].name, dims);
    }
    return join(arena, texts, (size_t)list->count);
}

/* ------------------------------------------------------------------------------------- the call */

typedef struct reader {
    hlo_module *module;
    const hlo_config_layouts *layouts;
    uint32_t at; /* position in `layouts` */
    const char *wrong;
} reader;

/* Returns the shape of an array, with the next layout of the config. Uses the row-major layout if
 * the config has no layouts, or if the next layout is invalid, which sets r->wrong. */
static const hlo_shape *read_shape(reader *r, const ffi_buffer *buffer) {
    const uint32_t rank = (uint32_t)buffer->rank;
    const int64_t *order = NULL;
    if (r->layouts->count) {
        order = r->layouts->v + r->at;
        uint64_t seen = 0;
        bool good = rank <= r->layouts->count - r->at;
        for (uint32_t i = 0; good && i < rank; i++) {
            good = order[i] >= 0 && order[i] < rank && !(seen >> order[i] & 1);
            if (good) seen |= UINT64_C(1) << order[i];
        }
        if (!good) {
            r->wrong = "has operand_layouts or result_layouts that do not match its arrays";
            order = NULL;
        } else {
            r->at += rank;
        }
    }
    return hlo_shape_with_layout(r->module, type_of(buffer->type), rank, buffer->dims, order);
}

hlo_instruction *ffi_frame_read(const ffi_frame *frame, hlo_module *module, const char **why) {
    const char *text = format_attributes(&frame->attrs, module->arena, FFI_FOR_READING, why);
    if (!text) return NULL;
    text = hlo_arena_format(module->arena, "{%s}", text);
    hlo_config config;
    *why = hlo_config_read(module->arena, text, true, &config);
    if (*why) {
        *why = hlo_arena_format(module->arena, "is not a valid matmul call: %s", *why);
        return NULL;
    }
    reader r = {.module = module, .layouts = &config.operand_layouts};
    const int64_t count = frame->operands.count, results = frame->results.count;
    hlo_computation *comp = module->entry = hlo_comp_new(module, "call");
    hlo_instruction **operands =
        hlo_arena_array(module->arena, (size_t)count + 1, sizeof *operands);
    const hlo_shape **shapes = hlo_arena_array(module->arena, (size_t)results + 1, sizeof *shapes);
    for (int64_t i = 0; i < count; i++) {
        const hlo_shape *shape = read_shape(&r, ffi_buffer_at(&frame->operands, i));
        operands[i] = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, shape, 0, NULL, NULL);
        hlo_instr_set_parameter(operands[i], comp->parameter_count);
    }
    r.layouts = &config.result_layouts;
    r.at = 0;
    for (int64_t i = 0; i < results; i++)
        shapes[i] = read_shape(&r, ffi_buffer_at(&frame->results, i));
    *why = r.wrong;
    if (*why) return NULL;
    hlo_instruction *call = hlo_instr_new(comp, NULL, HLO_OP_CUSTOM_CALL,
                                          hlo_shape_tuple(module, (uint32_t)results, shapes),
                                          (uint32_t)count, operands, NULL);
    hlo_comp_set_root(comp, call);
    hlo_instr_set_str(call, HLO_ATTR_CUSTOM_CALL_TARGET, hlo_matmul_typed_target);
    hlo_instr_set_str(call, HLO_ATTR_BACKEND_CONFIG, text);
    return call;
}

/* -------------------------------------------------------------------------------------- running */

static bool can_fail(const ffi_frame *frame) {
    return frame && FFI_HAS(frame, struct XLA_FFI_CallFrame, api) && frame->api &&
           FFI_HAS(frame->api, ffi_api, error_new) && frame->api->error_new;
}

static ffi_error *fail(const ffi_frame *frame, int code, const char *message) {
    ffi_error_new arguments = {
        .size = FFI_SIZE(ffi_error_new, code), .message = message, .code = code};
    return frame->api->error_new(&arguments);
}

/* If the frame is a query of the function's properties, answers it and returns true. Reports the
 * version of abi.h, or that of an older XLA, whose structs have the same used members. */
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

/* A call, and state that must survive a longjmp() to the recovery point. */
typedef struct run {
    ffi_call call;
    bool checked;
    const char *why;
} run;

static hlo_status attempt(run *r, ffi_execute *execute) {
    r->why = check_frame(r->call.frame, r->call.arena);
    if (r->why) return HLO_INVALID_INPUT;
    r->checked = true;
    return execute(&r->call, &r->why);
}

/* Returns the call as text, `(f8e4m3fn[16,32], f32[]) -> (bf16[16,48]) {beta = 0, ...}`. The text
 * is empty if the frame is invalid or memory runs out. */
static const char *text_of(const run *r) {
    if (!r->checked || setjmp(*r->call.recover)) return "";
    const ffi_frame *frame = r->call.frame;
    hlo_arena *arena = r->call.arena;
    return hlo_arena_format(arena, "(%s) -> (%s) {%s}", format_list(arena, &frame->operands),
                            format_list(arena, &frame->results),
                            format_attributes(&frame->attrs, arena, FFI_FOR_PEOPLE, NULL));
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
    ffi_error *error = NULL;
    if (status != HLO_OK) {
        enum { MAX = 3000 }; /* maximum bytes of the call's text; more would cut the reason */
        char message[MAX + 1100];
        const bool starved = status == HLO_OUT_OF_MEMORY;
        const char *text = text_of(r);
        snprintf(message, sizeof message, HLO_FFI_TARGET "%.*s%s %s", MAX, text,
                 strlen(text) > MAX ? "..." : "", starved ? "ran out of memory" : r->why);
        error = fail(frame, starved ? FFI_RESOURCE_EXHAUSTED : r->call.code, message);
    }
    hlo_module_free(r->call.module);
    hlo_arena_free(r->call.arena);
    return error;
}

hlo_job *ffi_call_job(ffi_call *call, const char **why) {
    call->module = hlo_module_make(call->recover);
    if (!call->module) hlo_arena_exhausted(call->arena);
    const hlo_instruction *instr = ffi_frame_read(call->frame, call->module, why);
    if (!instr) return NULL;
    hlo_arena *arena = call->module->arena;
    const uint32_t operands = instr->operand_count, results = instr->shape->rank;
    hlo_job *job = hlo_arena_zero(arena, sizeof *job);
    const hlo_instruction **inputs = hlo_arena_array(arena, operands + 1u, sizeof *inputs);
    const hlo_instruction **members = hlo_arena_copy(arena, &instr, sizeof instr);
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
        job->operands[i] = hlo_view_in_layout(arena, inputs[i]->shape);
    }
    for (uint32_t i = 0; i < results; i++)
        job->results[i] = hlo_view_in_layout(arena, instr->shape->elements[i]);
    return job;
}
