/* SPDX-License-Identifier: Apache-2.0 */
/* attribute.def, word.def and part.def as data. */
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
