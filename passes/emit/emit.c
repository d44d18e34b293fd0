/* See emit.h. */
#include "passes/emit/emit.h"

#include <float.h>
#include <math.h>

#include "ir/intern.h"
#include "ir/module/known.h"
#include "ir/text/diag.h"
#include "passes/analysis/pin.h"
#include "passes/emit/spell.h"

typedef struct emitter {
    hlo_pass_context *context;
    hlo_spell_made made;
} emitter;

/* Rewrites a call to a form. Returns the number of changes; -1: the call is pinned. */
typedef int make_form(hlo_instr *call, const hlo_matmul *matmul, emitter *e);

static int make_library_call(hlo_instr *call, const hlo_matmul *matmul, emitter *e) {
    (void)matmul;
    return hlo_matmul_set_typed(
        call, false, e->context->options->scales_used ? HLO_SCALES_USED : HLO_SCALES_ALL);
}

/* True if `user` multiplies or divides by a constant that is infinite or NaN, or divides by one
 * whose reciprocal XLA takes for that. */
static bool is_endless(const hlo_instr *user) {
    const bool divides = user->op == HLO_OP_DIVIDE;
    double number;
    if (user->op != HLO_OP_MULTIPLY && !divides) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (hlo_known_number(hlo_instr_operand(user, i), &number) &&
            (!isfinite(number) || (divides && fabs(number) < FLT_MIN)))
            return true;
    return false;
}

/* True if a tanh uses the value through movement and arithmetic of at most `depth` instructions, or
 * if the value has more than `budget` users. */
static bool reaches_tanh(const hlo_instr *value, int depth, int *budget) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_op op = use->user->op;
        if (op == HLO_OP_TANH || --*budget < 0) return true;
        if ((op == HLO_OP_MULTIPLY || op == HLO_OP_ADD || op == HLO_OP_POWER ||
             op == HLO_OP_CONVERT || hlo_op_is(op, HLO_MOVEMENT)) &&
            depth > 0 && reaches_tanh(use->user, depth - 1, budget))
            return true;
    }
    return false;
}

/* True if an amax or an infinite factor uses the value through at most `depth` conversions and
 * movement, or if the value has more than `budget` users. */
static bool is_measured(const hlo_instr *value, int depth, int *budget) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_instr *user = use->user;
        if (user->op == HLO_OP_ABS || user->op == HLO_OP_REDUCE || is_endless(user) ||
            --*budget < 0)
            return true;
        if ((user->op == HLO_OP_CONVERT || hlo_op_is(user->op, HLO_MOVEMENT)) && depth > 0 &&
            is_measured(user, depth - 1, budget))
            return true;
    }
    return false;
}

/* True if XLA's rewriter fails on a wide result without a barrier: on a scale computed from the
 * magnitudes of the value that it scales, on an infinite scale, or on a gelu whose operand has
 * other uses and is no auxiliary result of the call. */
static bool needs_barrier(const hlo_instr *result) {
    int measured = 48, reached = 48;
    return is_measured(result, 4, &measured) || reaches_tanh(result, 8, &reached);
}

/* Returns the plain value of element `index` of the call's tuple; of the workspace: zeros. */
static hlo_instr *result_at(hlo_instr *call, const hlo_matmul *m, const hlo_spelled *spelled,
                            int index) {
    if (index == 0) return spelled->d;
    if (index == hlo_matmul_aux_index(m)) return spelled->aux;
    if (index == hlo_matmul_amax_index(m)) return spelled->amax;
    hlo_instr *zero = hlo_constant_scalar(call->parent, call, HLO_TYPE_S8, 0);
    return hlo_instr_new(call->parent, call, HLO_OP_BROADCAST, call->shape->elements[index], 1,
                         &zero, NULL);
}

static void put_element(hlo_instr *element, hlo_instr *value) {
    hlo_instr_inherit(value, element);
    hlo_instr_replace_uses(element, value);
    hlo_instr_remove(element);
}

/* The operands of a call, before it is rewritten. */
typedef struct operands {
    hlo_instr *v[8];
    uint32_t count;
} operands;

static operands operands_of(const hlo_instr *call) {
    operands all = {.count = call->operand_count};
    for (uint32_t i = 0; i < all.count; i++) all.v[i] = hlo_instr_operand(call, i);
    return all;
}

/* Removes constants without users, such as scales of 1. */
static void drop_unused(const operands *all) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->v[i]->op == HLO_OP_CONSTANT && all->v[i]->parent &&
            all->v[i]->pin == HLO_PIN_NONE && !hlo_instr_user_count(all->v[i]))
            hlo_instr_remove(all->v[i]);
}

/* Removes a call without users. */
static void drop(hlo_instr *call) {
    const operands all = operands_of(call);
    hlo_instr_remove(call);
    drop_unused(&all);
}

/* Makes a typed call, without the scales that are 1: XLA passes no more than the scales' addresses
 * to the library. */
static int make_typed_call(hlo_instr *call, const hlo_matmul *matmul, emitter *e) {
    (void)matmul, (void)e;
    const operands all = operands_of(call);
    const bool made = hlo_matmul_set_typed(call, true, HLO_SCALES_USED);
    if (made) drop_unused(&all);
    return made;
}

static void put_results(hlo_instr *call, const hlo_matmul *m, const hlo_spelled *spelled) {
    if (call->shape->type != HLO_TYPE_TUPLE) {
        hlo_instr_inherit(spelled->d, call);
        hlo_instr_replace_uses(call, spelled->d);
        drop(call);
        return;
    }
    for (hlo_use *use = call->uses, *next; use; use = next) {
        next = use->next;
        if (use->user->op != HLO_OP_GET_TUPLE_ELEMENT) continue;
        int index = (int)hlo_instr_int(use->user, HLO_ATTR_INDEX, 0);
        put_element(use->user, result_at(call, m, spelled, index));
    }
    if (hlo_instr_user_count(call)) {
        hlo_instr *results[4];
        for (uint32_t i = 0; i < call->shape->rank; i++)
            results[i] = result_at(call, m, spelled, (int)i);
        hlo_instr_replace_uses(call, hlo_instr_new(call->parent, call, HLO_OP_TUPLE, call->shape,
                                                   call->shape->rank, results, NULL));
    }
    drop(call);
}

static bool stays(const hlo_instr *call) {
    if (call->pin != HLO_PIN_NONE) return true;
    for (const hlo_use *use = call->uses; use; use = use->next)
        if (use->user->pin != HLO_PIN_NONE) return true;
    return false;
}

static int make_plain(hlo_instr *call, const hlo_matmul *matmul, emitter *e, bool fusible) {
    if (stays(call)) return -1;
    hlo_spelled spelled = hlo_spell(call, matmul, fusible, &e->made);
    bool barrier = call->shape->type != HLO_TYPE_TUPLE && needs_barrier(call);
    for (const hlo_use *use = call->uses; use; use = use->next)
        barrier |= hlo_instr_int(use->user, HLO_ATTR_INDEX, -1) == 0 && needs_barrier(use->user);
    if (fusible && barrier && !hlo_type_is_fp8(matmul->d->type))
        spelled.d = hlo_instr_new(call->parent, call, HLO_OP_OPT_BARRIER, spelled.d->shape, 1,
                                  &spelled.d, NULL);
    put_results(call, matmul, &spelled);
    return 1;
}

/* Warns if XLA does not turn the plain form into an FP8 call, or only part of it. */
static void warn_of_loss(const hlo_instr *call, const hlo_matmul *matmul, emitter *e) {
    const char *unfused = hlo_spell_unfused(matmul), *outside = hlo_spell_outside(matmul);
    if (!unfused && !outside) return;
    hlo_diag_emit(e->context->module, e->context->sink, HLO_WARNING, call->offset,
                  hlo_intern_length(call->name),
                  unfused ? "XLA will not turn '%s' into an FP8 call: %s"
                          : "XLA computes part of '%s' outside its FP8 call: %s",
                  call->name, unfused ? unfused : outside);
}

static int make_fusible(hlo_instr *call, const hlo_matmul *matmul, emitter *e) {
    warn_of_loss(call, matmul, e);
    return make_plain(call, matmul, e, true);
}

static int make_dequantized(hlo_instr *call, const hlo_matmul *matmul, emitter *e) {
    return make_plain(call, matmul, e, false);
}

static make_form *const forms[] = {
#define HLO_EMIT_FORM(id, make) [HLO_EMIT_##id] = make,
#include "passes/emit/emit.def"
#undef HLO_EMIT_FORM
};

static hlo_status refuse(const hlo_pass_context *context, const hlo_instr *call, const char *why) {
    hlo_diag_emit(context->module, context->sink, HLO_ERROR, call->offset,
                  hlo_intern_length(call->name), "cannot emit call '%s' in the selected form: %s",
                  call->name, why);
    return HLO_INVALID_INPUT;
}

/* Returns a constant at an end of a control dependency that equals another constant of the
 * computation, or NULL. XLA merges both and aborts because of the dependency. */
static const hlo_instr *held_twice(const hlo_computation *comp) {
    for (const hlo_instr *held = comp->first; held; held = hlo_instr_next(held)) {
        if (held->op != HLO_OP_CONSTANT || held->pin != HLO_PIN_CONTROL) continue;
        for (const hlo_instr *other = comp->first; other; other = hlo_instr_next(other))
            if (other != held && other->op == HLO_OP_CONSTANT && other->shape == held->shape &&
                hlo_literal_equal(other->u.literal, held->u.literal))
                return held;
    }
    return NULL;
}

static hlo_status check_constants(const hlo_pass_context *context) {
    for (const hlo_computation *comp = context->module->first; comp; comp = comp->next) {
        const hlo_instr *held = held_twice(comp);
        if (!held) continue;
        hlo_diag_emit(context->module, context->sink, HLO_ERROR, held->offset,
                      hlo_intern_length(held->name),
                      "XLA crashes on constant '%s': it has a control dependency, and its "
                      "computation has an equal constant",
                      held->name);
        return HLO_INVALID_INPUT;
    }
    return HLO_OK;
}

hlo_status hlo_emit(hlo_pass_context *context) {
    make_form *const make = forms[context->options->emit];
    hlo_module *module = context->module;
    const bool scheduled = hlo_pin_is_scheduled(module);
    if (scheduled && context->options->emit == HLO_EMIT_CUBLAS) return HLO_OK;
    const uint32_t most = module->op_counts[HLO_OP_CUSTOM_CALL];
    hlo_instr **calls = hlo_arena_array(context->scratch, most, sizeof *calls);
    emitter e = {.context = context, .made = {.first_id = module->next_id}};
    uint32_t count = 0;
    for (hlo_computation *comp = most ? module->first : NULL; comp; comp = comp->next)
        for (hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (hlo_matmul_is_call(instr)) calls[count++] = instr;
    for (uint32_t i = 0; i < count; i++) {
        hlo_matmul matmul;
        const char *why;
        if (hlo_matmul_decode(calls[i], &matmul, &why) != HLO_OK) continue;
        if (scheduled) return refuse(context, calls[i], "the module is scheduled");
        int changes = make(calls[i], &matmul, &e);
        if (changes < 0)
            return refuse(context, calls[i],
                          "a control dependency, memory space or execution thread pins it");
        context->changes += (uint64_t)changes;
    }
    if (context->options->emit == HLO_EMIT_CUBLAS || !count) return HLO_OK;
    return check_constants(context);
}
