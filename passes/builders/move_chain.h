/* Moving fp8 values instead of what they are dequantised to. Movement is a chain of links, each an
 * instruction that only puts elements elsewhere, or a tree of them, where a concatenate or a select
 * has several branches. */
#ifndef HLO_PASSES_MOVEMENT_H
#define HLO_PASSES_MOVEMENT_H

#include "passes/analysis/dequantise.h"
#include "passes/engine/engine.h"

/* Whether a constant that fills up is the same when what it stands beside is fp8 still: it is 0 or
 * NaN, which every scale leaves so, or, where nothing is `scaled`, a value of that fp8 type. */
bool hlo_pad_value_moves(hlo_instr *pad_value, bool scaled, hlo_type type);
/* It in another type, as an array where it is one. NULL: it cannot be made. */
hlo_instr *hlo_pad_value_clone_onto(hlo_rule_env *env, hlo_instr *pad_value, hlo_type type);

/* Whether the link puts the same elements there when what is below is fp8 still: nothing but its
 * operand 0 is moved, and what it fills up with is 0, which every scale leaves 0, or, without a
 * scale, a value of the fp8 type. */
bool hlo_link_moves(const hlo_instr *link, const hlo_dequantised *below);
/* The link made on the fp8 value that stands for its operand; of a convert, that value. NULL: it
 * cannot be made. */
hlo_instr *hlo_link_clone_onto(hlo_rule_env *env, const hlo_instr *link, hlo_instr *value);

/* The same of `done`, which ends what its operand starts: that is made again where it stands, so
 * that what runs meanwhile still does. */
hlo_instr *hlo_async_clone_onto(hlo_rule_env *env, const hlo_instr *done, hlo_instr *value);

/* Whether all branches of the tree above dequantised values are just that and can be moved; with
 * `alike`, also whether all have the same types and the same scale, which is `*out` then. */
bool hlo_tree_moves(hlo_instr *value, bool alike, hlo_dequantised *out);
/* The tree on the fp8 values. It must move alike. NULL: it cannot be made. */
hlo_instr *hlo_tree_clone_onto(hlo_rule_env *env, hlo_instr *value);

#endif
