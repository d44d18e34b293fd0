/* SPDX-License-Identifier: Apache-2.0 */
/* Moves fp8 values instead of dequantized values. Movement is a chain of links, which are
 * instructions that only move elements, or a tree of links if a concatenate or a select has several
 * branches. */
#ifndef HLO_PASSES_BUILDERS_MOVE_CHAIN_H
#define HLO_PASSES_BUILDERS_MOVE_CHAIN_H

#include "passes/analysis/dequantize.h"
#include "passes/engine/engine.h"

/* True if all elements of the value equal one known number. */
bool hlo_is_pad_value(hlo_instruction *value);
/* True if the pad value of dequantized values can be converted to the fp8 type. The pad value
 * must be 0 or NaN, which no scale changes. If `scaled` is false, it may be any value of the fp8
 * type. */
bool hlo_pad_value_moves(hlo_instruction *pad_value, bool scaled, hlo_type type);

/* True if the link can move the fp8 value instead of the dequantized one: it moves only operand 0,
 * and its pad value, if any, can be fp8. */
bool hlo_link_moves(const hlo_instruction *link, const hlo_dequantized *below);
/* Clones the link onto the fp8 value that replaces its operand; returns `value` for a convert.
 * Returns NULL on failure. */
hlo_instruction *hlo_link_clone_onto(hlo_rule_env *env, const hlo_instruction *link,
                                     hlo_instruction *value);

/* Clones a concatenate or a select onto the fp8 values `operands` of type `type`. NULL entries of
 * `operands` stand for pad values or the predicate of a select. Returns NULL on failure. */
hlo_instruction *hlo_join_clone_onto(hlo_rule_env *env, const hlo_instruction *join,
                                     hlo_instruction **operands, hlo_type type);

/* Clones `done` and its start onto the fp8 value, each at its position, so that the operation still
 * overlaps with the instructions between start and done. */
hlo_instruction *hlo_async_clone_onto(hlo_rule_env *env, const hlo_instruction *done,
                                      hlo_instruction *value);

/* True if all branches of the tree start at dequantized values and can be moved and, with `alike`,
 * their types and scales are equal. `*out` is the first dequantized value. */
bool hlo_tree_moves(hlo_instruction *value, bool alike, hlo_dequantized *out);
/* Clones a tree onto its fp8 values. hlo_tree_moves() with `alike` must be true for the tree.
 * Returns NULL on failure. */
hlo_instruction *hlo_tree_clone_onto(hlo_rule_env *env, hlo_instruction *value);

#endif
