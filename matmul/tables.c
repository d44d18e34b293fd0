/* SPDX-License-Identifier: Apache-2.0 */
/* Defines the tables of activation.def, epilogue.def, scale.def and target.def, and the names of
 * calls. */
#include <stdio.h>
#include <string.h>

#include "matmul/call.h"

const char hlo_matmul_fp8_target[] = "__cublas$lt$matmul$f8";
const char hlo_matmul_typed_target[] = "hlofp8.matmul";
const char hlo_matmul_mx_target[] = "__cublas$lt$matmul$mx";

const hlo_activation_info hlo_activations[HLO_ACTIVATION_COUNT] = {
    {.homogeneous = true},
#define HLO_ACTIVATION(id, homogeneous, never_negative) {homogeneous, never_negative},
#include "matmul/table/activation.def"
#undef HLO_ACTIVATION
};

/* Each activation is an epilogue both with and without a bias. */
#define HLO_ACTIVATION(id, homogeneous, never_negative)                                            \
    _Static_assert(HLO_EPILOGUE_##id < HLO_EPILOGUE_COUNT &&                                       \
                       HLO_EPILOGUE_BIAS_##id < HLO_EPILOGUE_COUNT,                                \
                   "epilogue.def has no row " #id " or BIAS_" #id);
#include "matmul/table/activation.def"
#undef HLO_ACTIVATION

const hlo_epilogue_info hlo_epilogues[HLO_EPILOGUE_COUNT] = {
#define HLO_EPILOGUE(id, bias, activation, aux) {#id, bias, aux, HLO_ACTIVATION_##activation},
#include "matmul/table/epilogue.def"
#undef HLO_EPILOGUE
};

hlo_epilogue hlo_epilogue_find(const char *name) {
    for (int i = 0; i < HLO_EPILOGUE_COUNT; i++)
        if (strcmp(hlo_epilogues[i].name, name) == 0) return (hlo_epilogue)i;
    return HLO_EPILOGUE_COUNT;
}

hlo_epilogue hlo_epilogue_add(hlo_epilogue epilogue, hlo_epilogue what) {
    const hlo_epilogue_info *a = &hlo_epilogues[epilogue], *b = &hlo_epilogues[what];
    if ((a->activation && (b->bias || b->activation)) || (a->bias && b->bias))
        return HLO_EPILOGUE_COUNT;
    hlo_activation activation = a->activation ? a->activation : b->activation;
    for (int i = 0; i < HLO_EPILOGUE_COUNT; i++) {
        const hlo_epilogue_info *row = &hlo_epilogues[i];
        if (row->bias == (a->bias || b->bias) && row->activation == activation &&
            row->aux == (a->aux || b->aux))
            return (hlo_epilogue)i;
    }
    return HLO_EPILOGUE_COUNT;
}

const hlo_scale_info hlo_scale_modes[HLO_SCALE_MODE_COUNT] = {
#define HLO_SCALE_MODE(id, name, value, across, along, type, tiled)                                \
    {name, value, across, along, HLO_TYPE_##type, tiled},
#include "matmul/table/scale.def"
#undef HLO_SCALE_MODE
};

hlo_scale_mode hlo_scale_mode_find(const char *name) {
    int mode = 0;
    while (mode < HLO_SCALE_MODE_COUNT && strcmp(hlo_scale_modes[mode].name, name) != 0) mode++;
    return (hlo_scale_mode)mode;
}

enum { TILE_ROWS = 128, TILE_STEPS = 4 };

bool hlo_matmul_is_tiled(const hlo_matmul *matmul) {
    return hlo_scale_modes[matmul->a_mode].tiled || hlo_scale_modes[matmul->b_mode].tiled;
}

static int64_t parts(int64_t size, int64_t each) {
    return (size + each - 1) / each;
}

uint32_t hlo_scale_dims(hlo_scale_mode mode, int64_t batch, int64_t size, int64_t k,
                        int64_t out_dims[3]) {
    const hlo_scale_info *info = &hlo_scale_modes[mode];
    if (!info->across) return 0;
    if (!info->along) {
        out_dims[0] = parts(size, info->across);
        return 1;
    }
    int64_t rows = parts(size, info->across), steps = parts(k, info->along);
    if (info->tiled) {
        const uint32_t first = batch != 1;
        out_dims[0] = batch;
        out_dims[first] = TILE_ROWS * parts(rows, TILE_ROWS);
        out_dims[first + 1] = TILE_STEPS * parts(steps, TILE_STEPS);
        return first + 2;
    }
    bool block = info->across > 1;
    out_dims[0] = block ? rows : steps;
    out_dims[1] = block ? 4 * parts(steps, 4) : rows;
    return 2;
}

int64_t hlo_scale_index(hlo_scale_mode mode, int64_t size, int64_t k, int64_t row, int64_t at) {
    const hlo_scale_info *info = &hlo_scale_modes[mode];
    int64_t dims[3];
    uint32_t rank = hlo_scale_dims(mode, 1, size, k, dims);
    if (!rank) return 0;
    if (info->tiled) row = row / size * dims[0] + row % size;
    row /= info->across;
    if (rank == 1) return row;
    at /= info->along;
    if (info->tiled) { /* within a tile, row 32 is stored next to row 0 */
        int64_t tile = row / TILE_ROWS * (dims[1] / TILE_STEPS) + at / TILE_STEPS;
        int64_t line = row % TILE_ROWS % 32 * 4 + row % TILE_ROWS / 32;
        return tile * TILE_ROWS * TILE_STEPS + line * TILE_STEPS + at % TILE_STEPS;
    }
    return info->across > 1 ? row * dims[1] + at : at * dims[1] + row;
}

static const hlo_target targets[] = {
#define HLO_TARGET(sm, fp8, tn_only, scale_arrays, block_scales, workspace, gpu, fp8_tflops,       \
                   bf16_tflops, memory_gbs)                                                        \
    {sm,        fp8, tn_only,    scale_arrays, block_scales,                                       \
     workspace, gpu, fp8_tflops, bf16_tflops,  memory_gbs},
#include "matmul/table/target.def"
#undef HLO_TARGET
};

const hlo_target *hlo_target_find(int sm) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].sm == sm) return &targets[i];
    return NULL;
}

const hlo_target *hlo_target_nearest(int sm) {
    const hlo_target *found = NULL;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].sm <= sm && (!found || found->sm < targets[i].sm)) found = &targets[i];
    return found;
}

const hlo_target *hlo_target_first_fp8(void) {
    const hlo_target *found = NULL;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].fp8 && (!found || targets[i].sm < found->sm)) found = &targets[i];
    return found;
}

const hlo_target *hlo_target_parse(const char *name) {
    if (!name) return hlo_target_find(90);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char known[16];
        snprintf(known, sizeof known, "sm_%d", targets[i].sm);
        if (strcmp(name, known) == 0) return &targets[i];
    }
    return NULL;
}

/* Reads a number of one or two digits, and returns a pointer to the first character after it; NULL
 * if there is no number or it has more digits. */
static const char *read_digits(const char *text, int *out) {
    const size_t count = strspn(text, "0123456789");
    if (count < 1 || count > 2) return NULL;
    *out = count == 1 ? text[0] - '0' : (text[0] - '0') * 10 + text[1] - '0';
    return text + count;
}

int hlo_cuda_parse(const char *version) {
    int major, minor;
    if (!version) return 12080;
    const char *end = read_digits(version, &major);
    end = end && *end == '.' ? read_digits(end + 1, &minor) : NULL;
    return end && !*end && major ? major * 1000 + minor * 10 : 0;
}
