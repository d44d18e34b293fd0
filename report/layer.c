/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the layer of a matmul from its op_name, and folds the indices of layers. */
#include "report/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* True if `text` has the form `word`, in which `#` is a number, and `*` at the end is any text. */
static bool has_form(const char *word, const char *text, size_t length) {
    const char *end = text + length;
    for (; *word && *word != '*'; word++) {
        const char *start = text;
        while (*word == '#' && text < end && *text >= '0' && *text <= '9') text++;
        if (*word != '#') text += text < end && *text == *word;
        if (text == start) return false;
    }
    return *word || text == end;
}

/* Returns the index of the form of `text` in `words`, or -1. */
static int find_word(const char *const *words, size_t count, const char *text, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (has_form(words[i], text, length)) return (int)i;
    return -1;
}

#define FIND_WORD(words, text, length) find_word(words, sizeof words / sizeof *words, text, length)

/* Components NAME(INNER) of an op_name: functions, which are not layers, and transformations of
 * INNER. */
static const char *const functions[] = {"jit", "pjit", "pmap", "xla_pmap", "xmap"};
static const char *const transformations[] = {"transpose", "jvp",        "vmap",       "checkpoint",
                                              "remat",     "custom_jvp", "custom_vjp", "shard_map"};
enum { TRANSPOSE, JVP };

/* Components that are not layers: recomputation, TensorFlow's gradients, control flow, calls, and
 * wrappers of a matmul. */
static const char *const wrappers[] = {"rematted_computation",
                                       "gradient_tape",
                                       "gradients",
                                       "gradients_#",
                                       "while",
                                       "branch_#_fun",
                                       "scan",
                                       "checkpoint",
                                       "remat",
                                       "remat#",
                                       "closed_call",
                                       "core_call",
                                       "named_call",
                                       "pjit",
                                       "shard_map",
                                       "custom_jvp_call*",
                                       "custom_vjp_call*",
                                       "xla_call",
                                       "PartitionedCall",
                                       "PartitionedCall_#",
                                       "StatefulPartitionedCall",
                                       "StatefulPartitionedCall_#",
                                       "Fp8DotGeneral*"};
enum { RECOMPUTED, FIRST_GRADIENT, LAST_GRADIENT = FIRST_GRADIENT + 2, LOOP };

/* Operations, which are the last component. */
static const char *const primitives[] = {"dot_general", "dot",         "conv_general_dilated",
                                         "convolution", "ragged_dot*", "scaled_dot*",
                                         "einsum",      "matmul",      "transpose",
                                         "reshape",     "bmm",         "mm",
                                         "addmm",       "MatMul",      "BatchMatMul*",
                                         "Einsum",      "Conv2D*",     "convert_element_type",
                                         "aten__*",     "aten.*"};

static const char *const directions[] = {"", " (recomputed)", " (backward)", " (forward)"};
enum { NO_DIRECTION, AGAIN, BACKWARD, FORWARD, DIRECTIONS };

size_t report_layer_length(const char *layer) {
    const size_t length = strlen(layer);
    for (int i = AGAIN; i < DIRECTIONS; i++) {
        const size_t size = strlen(directions[i]);
        if (length > size && strcmp(layer + length - size, directions[i]) == 0)
            return length - size;
    }
    return length;
}

/* Returns the length of the component at `at`: up to a `/` outside of parentheses. */
static size_t component(const char *at) {
    const char *end = at;
    for (long depth = 0; *end && (depth > 0 || *end != '/'); end++)
        depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
    return (size_t)(end - at);
}

/* Returns the layer in an op_name, or NULL if it names none, and in either case the direction. */
static char *layer_of_name(hlo_arena *arena, const char *op_name, const char **out_direction) {
    bool seen[LAST_GRADIENT + 1] = {false}, transformed[JVP + 1] = {false};
    char *layer = hlo_arena_alloc(arena, strlen(op_name) + 1), *to = layer;
    bool loop = false; /* the component before is `while` */
    for (const char *at = op_name; *at;) {
        const size_t size = component(at);
        const char *text = at, *end = at + size;
        at = end + (*end == '/');
        for (const char *open;
             text < end && end[-1] == ')' && (open = memchr(text, '(', (size_t)(end - text)));) {
            const size_t length = (size_t)(open - text);
            if (FIND_WORD(functions, text, length) >= 0) end = text;
            const int found = FIND_WORD(transformations, text, length);
            if (end == text || found < 0) break;
            if (found <= JVP) transformed[found] = true;
            text = open + 1;
            end--;
        }
        const size_t length = (size_t)(end - text);
        int wrapper = FIND_WORD(wrappers, text, length);
        /* In JAX's names, `body` and `cond` are parts of a loop, and `cond` is a conditional. */
        if ((loop && (has_form("body", text, length) || has_form("cond", text, length))) ||
            (has_form("cond", text, length) && has_form("branch_#_fun", at, component(at))))
            wrapper = LOOP;
        loop = wrapper == LOOP && has_form("while", text, length);
        if (wrapper >= 0 && wrapper <= LAST_GRADIENT) seen[wrapper] = true;
        if (!length || wrapper >= 0 || (!*at && FIND_WORD(primitives, text, length) >= 0)) continue;
        if (to != layer) *to++ = '/';
        memcpy(to, text, length);
        to += length;
    }
    *to = '\0';
    *out_direction =
        directions[seen[RECOMPUTED] ? AGAIN
                   : seen[FIRST_GRADIENT] || seen[LAST_GRADIENT] || transformed[TRANSPOSE]
                       ? BACKWARD
                   : transformed[JVP] ? FORWARD
                                      : NO_DIRECTION];
    return *layer ? layer : NULL;
}

const char *report_shape_of(hlo_arena *arena, const hlo_verdict *v) {
    const char *dims = strchr(v->input_shape, '[');
    if (!dims || !strstr(v->operation, "dot") || v->flops == 0) return v->input_shape;
    double elements = 2;
    for (char *end; *dims && *dims != ']'; dims = end) {
        elements *= strtod(dims + 1, &end);
        if (end == dims + 1) break;
    }
    const double length = elements > 0 ? v->flops / elements : 0;
    if (*dims != ']' || length < 1 || length != floor(length)) return v->input_shape;
    return hlo_arena_format(arena, "%s k=%.0f", v->input_shape, length);
}

const char *report_layer_of(hlo_arena *arena, const hlo_verdict *v, bool *out_named) {
    const char *direction = "";
    const char *name = v->op_name ? layer_of_name(arena, v->op_name, &direction) : NULL;
    *out_named = name;
    if (name) return hlo_arena_format(arena, "%s%s", name, direction);
    if (!v->source_file)
        return hlo_arena_format(arena, "%s %s%s", v->operation, report_shape_of(arena, v),
                                direction);
    return hlo_arena_format(arena, "%s:%ld%s", v->source_file, v->source_line, direction);
}

static size_t index_length(const char *text) {
    return *text == '*' ? 1 : strspn(text, "0123456789");
}

char *report_fold(hlo_arena *arena, const char *name) {
    char *folded = hlo_arena_format(arena, "%s", name), *to = folded;
    for (const char *at = folded; *at;) {
        const size_t length = index_length(at);
        *to++ = length ? '*' : *at;
        at += length ? length : 1;
    }
    *to = '\0';
    return folded;
}

void report_fold_differences(char *name, const char *other) {
    char *to = name;
    for (const char *at = name; *at;) {
        size_t length = index_length(at), size = index_length(other);
        if (length && (length != size || memcmp(at, other, size) != 0)) {
            *to++ = '*';
        } else {
            if (!length) length = size = 1;
            memmove(to, at, length);
            to += length;
        }
        at += length;
        other += size;
    }
    *to = '\0';
}
