/* SPDX-License-Identifier: Apache-2.0 */
/* Layers, the names by which reports group matmuls. All results are allocated in `arena`, or are
 * strings of the verdict. */
#ifndef HLO_REPORT_LAYER_H
#define HLO_REPORT_LAYER_H

#include "passes/verdict/report.h"

/* Returns the layer of a matmul: its op_name without functions, transformations, control flow and
 * the primitive, and with the direction. Without such a name, its source line, and otherwise its
 * operation and shape. `out_named` is true if the layer is from the op_name. */
const char *report_layer_of(hlo_arena *arena, const hlo_verdict *v, bool *out_named);

/* Returns the length of a layer without its direction, such as " (backward)". */
size_t report_layer_length(const char *layer);

/* Returns the shape of the result, followed by the length of the contracting dimension if it is
 * known. */
const char *report_shape_of(hlo_arena *arena, const hlo_verdict *v);

/* Returns the name with `*` instead of each index. */
char *report_fold(hlo_arena *arena, const char *name);
/* Replaces the indices of `name` in which it differs from `other` by `*`. Both are equal if
 * folded. */
void report_fold_differences(char *name, const char *other);

#endif
