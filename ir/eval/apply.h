/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches an instruction to its kernel. Runs computations on scalars for kernels. */
#ifndef HLO_IR_EVAL_APPLY_H
#define HLO_IR_EVAL_APPLY_H

#include "ir/kernel/kernel.h"

/* Returns the kernel of an opcode; NULL if the CPU does not support the opcode. */
const hlo_kernel *hlo_kernel_of(hlo_op op);
/* Returns why hlo_eval() does not support `instr`; NULL if it does. */
const char *hlo_call_refusal(const hlo_instruction *instr);
/* Returns why the kernel of `instr` does not support it, whatever computations it applies; NULL if
 * it does. */
const char *hlo_kernel_refusal(const hlo_instruction *instr);
/* Returns the type whose bits reduce-precision counts for elements of `type`. As in XLA, this type
 * is f16 for every type of at most 8 bits whose values f16 can represent. */
hlo_type hlo_reduced_type(hlo_type type);
/* Returns the elementwise operation of `instr`; NULL if its kernel is not elementwise. */
const hlo_elementwise *hlo_kernel_elementwise(const hlo_instruction *instr);
/* Returns the loop of `op` on elements of `type`; NULL if `op` is not defined for `type`. */
hlo_loop *hlo_elementwise_loop(const hlo_elementwise *op, hlo_type type);
hlo_status hlo_elementwise_run(hlo_call *call);

/* A computation whose parameters and results are scalars (a to_apply). It runs for many elements at
 * a time if all its values are scalars and it has no loop. */
typedef struct hlo_region hlo_region;

/* Creates a region in scratch. Returns NULL, with call->why set, if the computation cannot be a
 * region. */
hlo_region *hlo_region_new(hlo_call *call, hlo_computation *computation);
/* Runs the region for `count` (at most HLO_CHUNK) elements. in[i] are the elements of parameter i,
 * in_steps[i] bytes apart; out[i] are those of leaf i of the root. An output may be an input. */
void hlo_region_run(const hlo_region *region, int64_t count, char *const *in,
                    const int64_t *in_steps, char *const *out, const int64_t *out_steps);
/* Computes acc[..] = region(acc[..], x[..]) element by element, for `arrays` arrays of equal
 * dimensions, at most HLO_LOOP_VIEWS / 2. */
void hlo_region_apply(const hlo_region *region, uint32_t arrays, const hlo_view *acc,
                      const hlo_view *x);
/* Returns why a computation cannot be a region that runs for many elements at a time; NULL if it
 * can. */
const char *hlo_region_refusal(const hlo_computation *computation);
/* Returns branch `index` of a conditional; NULL if it does not have that many branches. */
const hlo_computation *hlo_region_branch(const hlo_instruction *instr, uint32_t index);

/* Runs any other applied computation, for one element at a time. If that fails, or the run is
 * stopped, the results are undefined; a failure sets call->why. */
typedef struct hlo_interpreter hlo_interpreter;
/* Returns why a computation cannot be interpreted; NULL if it can. Sets *out_blocker to the
 * instruction that is the cause, or NULL. */
const char *hlo_interpreter_refusal(const hlo_computation *computation,
                                    const hlo_instruction **out_blocker);
/* Creates an interpreter in scratch. */
hlo_interpreter *hlo_interpreter_new(hlo_call *call, const hlo_computation *computation);
/* Runs the computation. in[i] is parameter i; out[i] is leaf i of the root, and may be an input. */
void hlo_interpreter_run(hlo_interpreter *interpreter, char *const *in, char *const *out);
/* The number of attributes that name a computation to apply to elements. */
enum { HLO_REGION_ATTRS = 3 };
extern const hlo_attr_id hlo_region_attrs[HLO_REGION_ATTRS];
/* Returns the instruction that prevents a computation applied by `instr` from being a region, or
 * NULL. */
const hlo_instruction *hlo_region_blocker(const hlo_instruction *instr);
/* True if an instruction of an applied computation returns its operand 0 unchanged. */
bool hlo_region_passes_on(const hlo_instruction *instr);
/* Returns the opcode if the region is one binary elementwise operation on its two parameters, which
 * may be in either order if the opcode commutes. Returns HLO_OP_PARAMETER if the root is parameter
 * 1, which is an assignment; otherwise HLO_OP_INVALID. */
hlo_op hlo_region_simple(const hlo_computation *computation);

#endif
