/* SPDX-License-Identifier: Apache-2.0 */
/* Makes attribute.def, word.def and part.def available as data, and prints a problem. */
#include "runtime/cuda/cublaslt/matmul.h"

static const lt_attribute attributes[] = {
#define LT_ATTRIBUTE(object, name, number, bytes, kind)                                            \
    {LT_##object, #name, number, bytes, LT_##kind},
#include "runtime/cuda/cublaslt/attribute.def"
#undef LT_ATTRIBUTE
};

const lt_attribute *lt_attribute_find(lt_object object, int number) {
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].object == object && attributes[i].number == number) return &attributes[i];
    return NULL;
}

typedef struct word {
    lt_kind kind;
    const char *name;
    int number;
} word;

static const word words[] = {
#define LT_WORD(kind, name, number) {LT_##kind, #name, number},
#include "runtime/cuda/cublaslt/word.def"
#undef LT_WORD
#define HLO_SCALE_MODE(id, name, value, across, along, type, tiled) {LT_MODE, name, value},
#include "matmul/table/scale.def"
#undef HLO_SCALE_MODE
};

const char *lt_word(lt_kind kind, int64_t number) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].kind == kind && words[i].number == number) return words[i].name;
    return "?";
}

static const lt_type types[] = {
    {LT_TYPE_32F, HLO_TYPE_F32, 0x1p-20},         {LT_TYPE_64F, HLO_TYPE_F64, 0x1p-20},
    {LT_TYPE_16F, HLO_TYPE_F16, 0x1p-10},         {LT_TYPE_16BF, HLO_TYPE_BF16, 0x1p-7},
    {LT_TYPE_8F_E4M3, HLO_TYPE_F8E4M3FN, 0x1p-3}, {LT_TYPE_8F_E5M2, HLO_TYPE_F8E5M2, 0x1p-2},
    {LT_TYPE_4F_E2M1, HLO_TYPE_F4E2M1FN, 0x1p-1},
};

const lt_type *lt_type_find(int number) {
    size_t i = sizeof types / sizeof *types - 1;
    while (i && types[i].word != number) i--;
    return &types[i];
}

int lt_type_word(hlo_type type) {
    size_t i = sizeof types / sizeof *types - 1;
    while (i && types[i].type != type) i--;
    return types[i].word;
}

static const char *const part_names[LT_PART_COUNT] = {
#define LT_PART(id, name) name,
#include "runtime/cuda/cublaslt/part.def"
#undef LT_PART
};

const char *lt_part_name(lt_part part) {
    return part_names[part];
}

static void print_pointer(const cuda_pointer *at, FILE *out) {
    if (at->kind == CUDA_SCRATCH)
        fprintf(out, "scratch+%zu", at->offset);
    else
        fprintf(out, "%s %u", at->kind == CUDA_OPERAND ? "operand" : "result", at->index);
}

static void print_place(const cuda_matmul *p, lt_part part, FILE *out) {
    if (p->present >> part & 1)
        print_pointer(&p->places[part], out);
    else
        fputs("none", out);
}

const char *cuda_matmul_key(const cuda_matmul *p, hlo_arena *arena) {
    const char *text = hlo_arena_format(
        arena, "m=%lld n=%lld k=%lld batch=%lld compute=%s scale=%s beta=%d", (long long)p->m,
        (long long)p->n, (long long)p->k, (long long)p->batch, lt_word(LT_COMPUTE, p->compute),
        lt_word(LT_TYPE, p->scale_type), p->beta != 0);
    for (lt_part part = LT_PART_A; part <= LT_PART_D; part++) {
        const lt_matrix *m = &p->matrices[part];
        text = hlo_arena_format(arena, "%s %s=%s/%lld/%lld", text, lt_part_name(part),
                                lt_word(LT_TYPE, m->type), (long long)m->ld, (long long)m->stride);
    }
    for (uint32_t i = 0; i < p->setting_count; i++) {
        const lt_attribute *a = lt_attribute_find(LT_DESC, p->settings[i].attribute);
        int64_t value = p->settings[i].value;
        text = a->kind == LT_POINTER ? hlo_arena_format(arena, "%s %s", text, a->name)
               : a->kind == LT_NUMBER
                   ? hlo_arena_format(arena, "%s %s=%lld", text, a->name, (long long)value)
                   : hlo_arena_format(arena, "%s %s=%s", text, a->name, lt_word(a->kind, value));
    }
    return hlo_arena_format(arena, "%s workspace=%zu alignment=%u", text, p->workspace,
                            p->alignment);
}

static void print_dims(const hlo_view *view, FILE *out) {
    fprintf(out, "%s[", hlo_types[view->type].name);
    for (uint32_t i = 0; i < view->rank; i++)
        fprintf(out, "%s%lld", i ? "," : "", (long long)view->dims[i]);
    fprintf(out, "] strides [");
    for (uint32_t i = 0; i < view->rank; i++)
        fprintf(out, "%s%lld", i ? "," : "", (long long)view->strides[i]);
    fprintf(out, "]");
}

static void print_copy(const cuda_copy *copy, const char *indent, FILE *out) {
    fprintf(out, "%scopy %s: ", indent, lt_part_name(copy->part));
    print_pointer(&copy->from, out);
    fprintf(out, " ");
    print_dims(&copy->from_view, out);
    fprintf(out, " to ");
    print_pointer(&copy->to, out);
    fprintf(out, " ");
    print_dims(&copy->to_view, out);
    fprintf(out, ": %s\n", copy->why);
}

void cuda_matmul_print(const cuda_matmul *p, const char *indent, FILE *out) {
    for (uint32_t i = 0; i < p->copies_before; i++) print_copy(&p->copies[i], indent, out);
    fprintf(out, "%scublasLtMatmul m=%lld n=%lld k=%lld", indent, (long long)p->m, (long long)p->n,
            (long long)p->k);
    if (p->batch > 1) fprintf(out, " batch=%lld", (long long)p->batch);
    if (p->times > 1) fprintf(out, " times=%lld", (long long)p->times);
    fprintf(out, " compute=%s scale=%s alpha=%.9g beta=%.9g\n", lt_word(LT_COMPUTE, p->compute),
            lt_word(LT_TYPE, p->scale_type), p->alpha, p->beta);
    for (lt_part part = LT_PART_A; part <= LT_PART_D; part++) {
        const lt_matrix *matrix = &p->matrices[part];
        fprintf(out, "%s%s: ", indent, lt_part_name(part));
        print_place(p, part, out);
        fprintf(out, ", %s %lldx%lld, ld %lld", lt_word(LT_TYPE, matrix->type),
                (long long)matrix->rows, (long long)matrix->cols, (long long)matrix->ld);
        if (p->batch > 1) fprintf(out, ", stride %lld", (long long)matrix->stride);
        if (p->times > 1) fprintf(out, ", next matrix after %lld bytes", (long long)p->steps[part]);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < p->setting_count; i++) {
        const lt_attribute *a = lt_attribute_find(LT_DESC, p->settings[i].attribute);
        fprintf(out, "%s%s ", indent, a->name);
        switch (a->kind) {
        case LT_NUMBER: fprintf(out, "%lld", (long long)p->settings[i].value); break;
        case LT_POINTER: print_place(p, (lt_part)p->settings[i].value, out); break;
        default: fputs(lt_word(a->kind, p->settings[i].value), out); break;
        }
        fputc('\n', out);
    }
    fprintf(out, "%sworkspace %zu, alignment %u", indent, p->workspace, p->alignment);
    if (p->reductions != LT_REDUCTION_MASK)
        fprintf(out, ", reductions %s", lt_word(LT_REDUCTION, p->reductions));
    fputc('\n', out);
    if (p->fp8 && p->n % 8)
        fprintf(out,
                "%snote: n is not a multiple of 8, which some cuBLASLt versions do not support\n",
                indent);
    for (uint32_t i = p->copies_before; i < p->copy_count; i++)
        print_copy(&p->copies[i], indent, out);
}
