/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts one matmul of a module, with its epilogue and the quantization of its operands, into a
 * module. */
#include <setjmp.h>
#include <string.h>

#include "hlo/pass.h"
#include "ir/float/c_locale.h"
#include "ir/module/undo.h"
#include "ir/text/diag.h"
#include "ir/text/suggest.h"
#include "ir/verify/verify.h"
#include "matmul/product.h"
#include "passes/pipeline/pipeline.h"

/* Maximum number of users to follow from the matmul's result. */
enum { MAX_EPILOGUE = 64 };

/* The role of a value from which the matmul is computed. The value dequantizes or quantizes an
 * operand, is the wide value (an input of the extract), or is used to compute a scale or a
 * bound. */
typedef enum stage { DEQUANTIZING, QUANTIZING, WIDE, SCALE } stage;

/* A candidate for the extract, and its role in the quantization. */
typedef struct candidate {
    hlo_instruction *instr;
    stage at;
} candidate;

typedef struct extraction {
    hlo_module *module;
    hlo_computation *comp;
    hlo_instruction *matmul;
    uint32_t ids; /* upper bound on the instruction ids in the original module */
    bool *in;     /* by id: true if the instruction is a part of the extract */
    bool *cheap;  /* by id of a computation: true if its calls may be parts of an extract */
    hlo_instruction **results; /* the matmul and those of its direct and indirect users that are in
                                * the extract, in order of discovery */
    uint32_t result_count;
    hlo_instruction **inputs; /* by id: the parameter that replaces a value outside the extract */
    hlo_arena *scratch;
    candidate *waiting; /* stack of operands to visit */
    uint32_t waiting_count, waiting_capacity;
} extraction;

/* True for a call of a computation with only elementwise operations, such as jax's clip(). */
static bool is_cheap_call(const extraction *e, const hlo_instruction *instr) {
    const hlo_computation *called =
        instr->op == HLO_OP_CALL     ? hlo_instr_comp(instr, HLO_ATTR_TO_APPLY)
        : instr->op == HLO_OP_FUSION ? hlo_instr_comp(instr, HLO_ATTR_CALLS)
                                     : NULL;
    return called && e->cheap[called->id] && hlo_shape_is_array(instr->shape);
}

/* True for instructions that an extract may contain around the matmul. */
static bool is_cheap(const extraction *e, const hlo_instruction *instr) {
    return hlo_op_is(instr->op, HLO_ELEMENTWISE | HLO_MOVEMENT) || instr->op == HLO_OP_CONSTANT ||
           instr->op == HLO_OP_IOTA || is_cheap_call(e, instr);
}

/* A module lists callees before their callers. */
static void find_cheap_computations(extraction *e) {
    for (const hlo_computation *comp = e->module->first; comp; comp = comp->next) {
        bool cheap = true;
        for (const hlo_instruction *i = comp->first; i && cheap; i = hlo_instr_next(i))
            cheap = i->op == HLO_OP_PARAMETER ? hlo_shape_is_array(i->shape) : is_cheap(e, i);
        e->cheap[comp->id] = cheap;
    }
}

static bool is_scalar(const hlo_instruction *instr) {
    return hlo_shape_is_array(instr->shape) && hlo_shape_count(instr->shape) == 1;
}

/* True for a value that is constant along some dimension: a scale or a bound. */
static bool is_factor(const hlo_instruction *instr) {
    return is_scalar(instr) || instr->op == HLO_OP_BROADCAST || instr->op == HLO_OP_CONSTANT ||
           instr->op == HLO_OP_IOTA;
}

static bool is_scaling(const hlo_instruction *instr) {
    return instr->op == HLO_OP_MULTIPLY || instr->op == HLO_OP_DIVIDE;
}

/* True if a value with role `at` that is not a factor is part of the extract. */
static bool is_part(const extraction *e, const hlo_instruction *instr, stage at) {
    if (instr->op == HLO_OP_CONVERT) return true;
    if (is_scaling(instr))
        return at != WIDE &&
               (is_factor(hlo_instr_operand(instr, 0)) || is_factor(hlo_instr_operand(instr, 1)));
    if (at == DEQUANTIZING) return hlo_op_is(instr->op, HLO_MOVEMENT) || is_cheap_call(e, instr);
    return at == QUANTIZING && (instr->op == HLO_OP_CLAMP || instr->op == HLO_OP_MAXIMUM ||
                                instr->op == HLO_OP_MINIMUM || is_cheap_call(e, instr));
}

static void add_candidate(extraction *e, hlo_instruction *instr, stage at) {
    hlo_arena_grow(e->scratch, &e->waiting, e->waiting_count, &e->waiting_capacity,
                   sizeof *e->waiting);
    e->waiting[e->waiting_count++] = (candidate){instr, at};
}

/* Adds a value, and those of its operands that belong to the matmul, to the extract. */
static void take(extraction *e, hlo_instruction *value, stage role) {
    add_candidate(e, value, role);
    while (e->waiting_count) {
        const candidate next = e->waiting[--e->waiting_count];
        hlo_instruction *instr = next.instr;
        const stage at = next.at;
        if (e->in[instr->id] || !hlo_shape_is_array(instr->shape)) continue;
        const bool reduces = instr->op == HLO_OP_REDUCE && is_scalar(instr);
        const bool factor = (at == SCALE || is_factor(instr)) && (is_cheap(e, instr) || reduces);
        bool arrays = factor || is_part(e, instr, at);
        for (uint32_t i = 0; arrays && i < instr->operand_count; i++)
            arrays = hlo_shape_is_array(hlo_instr_operand(instr, i)->shape);
        if (!arrays) continue;
        e->in[instr->id] = true;
        const bool from_fp8 = at == DEQUANTIZING && instr->op == HLO_OP_CONVERT &&
                              hlo_type_is_fp8(instr->shape->type);
        const stage below = factor                                  ? SCALE
                            : from_fp8                              ? QUANTIZING
                            : at == QUANTIZING && is_scaling(instr) ? WIDE
                                                                    : at;
        for (uint32_t i = instr->operand_count; i-- > 0;)
            add_candidate(e, hlo_instr_operand(instr, i), below);
    }
}

/* True if the user of a result belongs to the epilogue, not to the next matmul. */
static bool follows(const extraction *e, const hlo_instruction *value,
                    const hlo_instruction *user) {
    if (value->op == HLO_OP_REDUCE || user->op == HLO_OP_TUPLE) return false;
    if (user->op == HLO_OP_GET_TUPLE_ELEMENT) return true;
    if (!hlo_shape_is_array(value->shape)) return false;
    if (hlo_type_is_fp8(value->shape->type)) return hlo_op_is(user->op, HLO_MOVEMENT);
    if (!hlo_shape_is_array(user->shape)) return false;
    return is_cheap(e, user) || user->op == HLO_OP_REDUCE;
}

static void take_users(extraction *e) {
    for (uint32_t at = 0; at < e->result_count; at++)
        for (const hlo_use *use = e->results[at]->uses; use; use = use->next) {
            hlo_instruction *user = use->user;
            if (e->in[user->id] || !follows(e, e->results[at], user)) continue;
            if (e->result_count == MAX_EPILOGUE) return;
            e->in[user->id] = true;
            e->results[e->result_count++] = user;
        }
    /* Add the other operands of the results, now that all results are known. */
    for (uint32_t at = 1; at < e->result_count; at++)
        for (uint32_t i = 0; i < e->results[at]->operand_count; i++)
            take(e, hlo_instr_operand(e->results[at], i), DEQUANTIZING);
}

static void make_root(extraction *e) {
    hlo_instruction *roots[MAX_EPILOGUE], *root;
    const hlo_shape *shapes[MAX_EPILOGUE];
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->result_count; i++) {
        bool outside = e->results[i] == e->comp->root || !e->results[i]->uses;
        for (const hlo_use *use = e->results[i]->uses; use; use = use->next)
            outside |= !e->in[use->user->id];
        if (!(outside && hlo_shape_is_array(e->results[i]->shape))) continue;
        roots[count] = e->results[i];
        shapes[count++] = e->results[i]->shape;
    }
    root = count == 1 ? roots[0] : e->matmul;
    if (count > 1)
        root = hlo_instr_new(e->comp, NULL, HLO_OP_TUPLE, hlo_shape_tuple(e->module, count, shapes),
                             count, roots, NULL);
    hlo_comp_set_root(e->comp, root);
}

void hlo_remove_uncalled(hlo_module *module, hlo_arena *scratch) {
    bool *called = hlo_arena_zero(scratch, module->next_computation_id);
    called[module->entry->id] = true;
    for (hlo_computation *comp = module->last, *before; comp; comp = before) {
        before = comp->prev;
        if (!called[comp->id]) {
            hlo_comp_remove(comp);
            continue;
        }
        for (hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
            hlo_instr_visit_called(i, hlo_mark_called, called);
    }
}

/* Removes the computations that the extract does not call, and the header fields about the old
 * entry. */
static void remove_others(extraction *e, hlo_arena *scratch) {
    hlo_module *module = e->module;
    module->entry = e->comp;
    hlo_remove_uncalled(module, scratch);
    hlo_attr *kept = hlo_arena_array(module->arena, module->attr_count, sizeof *kept);
    uint32_t count = 0;
    for (uint32_t i = 0; i < module->attr_count; i++) {
        const hlo_attr_id id = module->attrs[i].id;
        if (id != HLO_ATTR_ENTRY_COMPUTATION_LAYOUT && id != HLO_ATTR_INPUT_OUTPUT_ALIAS &&
            id != HLO_ATTR_BUFFER_DONOR)
            kept[count++] = module->attrs[i];
    }
    module->attrs = kept;
    module->attr_count = count;
    module->verified = false;
}

static hlo_instruction *find(hlo_module *module, const char *name, hlo_suggestion *near) {
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            if (hlo_product_kind_of(i) == HLO_PRODUCT_NONE) continue;
            if (strcmp(i->name, name) == 0) return i;
            hlo_suggest_offer(near, i->name);
        }
    return NULL;
}

/* Finds the matmul that becomes the FP8 call with the given name when the passes run on a copy of
 * the module. If no matmul is found, or if the run fails, reports an error and returns
 * HLO_INVALID_INPUT; if memory runs out, returns HLO_OUT_OF_MEMORY. */
static hlo_status find_output(hlo_module *module, const char *name, const hlo_pass_options *pass,
                              const hlo_diag_sink *sink, hlo_suggestion *near,
                              hlo_instruction **out_matmul) {
    hlo_pass_options own;
    hlo_status status = hlo_pass_options_take(pass, &own);
    if (status != HLO_OK) return status;
    own.sink = NULL;
    own.print_after = NULL;
    own.surroundings = own.lint = false;
    if (!*own.passes) own.passes = "default";
    hlo_module *copy = NULL;
    hlo_report *report = NULL;
    status = hlo_module_clone(module, &copy);
    if (status == HLO_OK) status = hlo_module_optimize(copy, &own, &report);
    for (size_t i = 0; status == HLO_OK && i < hlo_report_count(report) && !*out_matmul; i++) {
        const hlo_verdict *verdict = hlo_report_verdict(report, i);
        hlo_suggest_offer(near, verdict->instruction);
        if (strcmp(verdict->instruction, name) == 0)
            *out_matmul = find(module, verdict->input_instruction, near);
    }
    if (!*out_matmul && status != HLO_OUT_OF_MEMORY)
        status = hlo_diag_refuse(sink, HLO_DIAG_NAME, module->file, 0, 0,
                                 "no matmul is named `%s`%s", name, hlo_suggest_meant(near));
    hlo_report_free(report);
    hlo_module_free(copy);
    return status;
}

hlo_status hlo_module_extract(hlo_module *module, const char *name, const hlo_pass_options *pass,
                              const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    jmp_buf recover;
    if (*name == '%') name++;
    hlo_status status = hlo_module_ensure_verified(module, 0, sink);
    if (status != HLO_OK) return status;
    hlo_suggestion near = hlo_suggest(name);
    extraction e = {.module = module, .matmul = find(module, name, &near)};
    if (!e.matmul) status = find_output(module, name, pass, sink, &near, &e.matmul);
    if (status != HLO_OK) return status;
    e.comp = e.matmul->parent;
    const hlo_snapshot *volatile original = NULL;
    hlo_arena *scratch = hlo_arena_new(NULL);
    if (!scratch) return HLO_OUT_OF_MEMORY;
    jmp_buf *outer = hlo_arena_set_recover(module->arena, &recover);
    hlo_arena_set_recover(scratch, &recover);
    if (setjmp(recover))
        status = HLO_OUT_OF_MEMORY;
    else {
        original = hlo_snapshot_take(module, scratch);
        e.ids = e.module->next_id;
        e.scratch = scratch;
        e.in = hlo_arena_zero(scratch, e.ids * sizeof *e.in);
        e.cheap = hlo_arena_zero(scratch, module->next_computation_id * sizeof *e.cheap);
        find_cheap_computations(&e);
        e.inputs = hlo_arena_zero(scratch, e.ids * sizeof *e.inputs);
        e.results = hlo_arena_array(scratch, MAX_EPILOGUE, sizeof(hlo_instruction *));
        e.results[e.result_count++] = e.matmul;
        e.in[e.matmul->id] = true;
        for (uint32_t i = 0; i < e.matmul->operand_count; i++)
            take(&e, hlo_instr_operand(e.matmul, i), DEQUANTIZING);
        take_users(&e);
        make_root(&e);
        /* Create parameters for values that the extract reads but does not contain. */
        hlo_computation *comp = e.comp;
        hlo_instruction *first = comp->first;
        comp->parameter_count = comp->parameter_capacity = 0;
        comp->parameters = NULL;
        int64_t count = 0;
        for (hlo_instruction *instr = first; instr; instr = hlo_instr_next(instr))
            for (uint32_t i = 0; instr->id < e.ids && e.in[instr->id] && i < instr->operand_count;
                 i++) {
                hlo_instruction *value = hlo_instr_operand(instr, i),
                                **input = &e.inputs[value->id];
                if (e.in[value->id]) continue;
                if (!*input) {
                    *input =
                        hlo_instr_new(comp, first, HLO_OP_PARAMETER, value->shape, 0, NULL, NULL);
                    hlo_instr_set_parameter(*input, count++);
                    (*input)->offset = value->offset;
                }
                hlo_instr_set_operand(instr, i, *input);
            }
        /* Remove all other instructions from the computation. The parameters get the names of the
         * values that they replace. */
        for (hlo_instruction *instr = e.comp->last, *before; instr; instr = before) {
            before = hlo_instr_prev(instr);
            if (instr->id >= e.ids || e.in[instr->id]) {
                hlo_instr_drop_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
                continue;
            }
            hlo_instruction *input = e.inputs[instr->id];
            hlo_instr_remove(instr);
            if (input) input->name = instr->name;
        }
        remove_others(&e, scratch);
    }
    hlo_arena_set_recover(module->arena, outer);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, sink);
    if (status != HLO_OK && original) hlo_snapshot_restore(module, original);
    hlo_arena_free(scratch);
    return status;
}
