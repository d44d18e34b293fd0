/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a module in two: values that depend only on certain parameters of the entry are computed
 * by a module of their own, whose results are parameters of the other module.
 *
 * The results are values that the rest of the module uses. The exception is a large value that an
 * elementwise operation or a movement computes from smaller ones, for example a broadcast or a
 * conversion to a wider type: it has at least SMALL bytes, and GROWTH times as many bytes as they
 * have. Then the smaller values are results, and the other module computes the large one. This also
 * applies to small broadcasts, whose size may be that of a batch: the results for several batch
 * sizes are then equal. */
#include <setjmp.h>
#include <string.h>

#include "hlo/pass.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/intern.h"
#include "ir/module/undo.h"
#include "ir/text/argument.h"
#include "ir/text/diag.h"
#include "ir/text/printer.h"
#include "ir/text/suggest.h"
#include "ir/verify/verify.h"
#include "passes/analysis/ahead.h"
#include "passes/analysis/pin.h"
#include "passes/pipeline/pipeline.h"

enum { SMALL = 4096 };
#define GROWTH 1.5

/* An instruction of the entry, in both modules. */
typedef struct pair {
    hlo_instruction *main, *ahead;
    bool wanted;  /* the other module uses the value */
    bool again;   /* the other module computes the value */
    bool result;  /* the value is a result of the ahead module */
    double bytes; /* bytes of the results that the other module needs: of the value or, if `again`,
                   * of the values from which it is computed */
} pair;

typedef struct splitting {
    const unsigned char *state; /* by instruction id in the module: HLO_AHEAD_* */
    uint32_t *index;            /* by instruction id in the module: index of its pair */
    pair *pairs;                /* in text order */
    uint32_t count, result_count;
    const char *names;
    hlo_arena *scratch;
} splitting;

static pair *operand_of(const splitting *s, const hlo_instruction *instr, uint32_t number) {
    return &s->pairs[s->index[hlo_instr_operand(instr, number)->id]];
}

static bool is_ahead(const splitting *s, const pair *p) {
    return s->state[p->main->id] == HLO_AHEAD_YES;
}

/* Decides which values the other module computes again if it uses them. */
static void weigh(splitting *s) {
    for (uint32_t k = 0; k < s->count; k++) {
        pair *p = &s->pairs[k];
        const hlo_instruction *instr = p->main;
        if (!is_ahead(s, p)) continue;
        double below = 0;
        for (uint32_t o = 0; o < instr->operand_count; o++) {
            bool repeated = false;
            for (uint32_t e = 0; e < o && !repeated; e++)
                repeated = hlo_instr_operand(instr, e) == hlo_instr_operand(instr, o);
            if (!repeated) below += operand_of(s, instr, o)->bytes;
        }
        const bool array = hlo_shape_is_array(instr->shape);
        const double own = array ? (double)hlo_shape_bytes(instr->shape) : 0;
        p->again = instr->op == HLO_OP_TUPLE ||
                   (array && hlo_op_is(instr->op, HLO_ELEMENTWISE | HLO_MOVEMENT | HLO_JOINS) &&
                    (own >= SMALL || instr->op == HLO_OP_BROADCAST) && own >= GROWTH * below);
        p->bytes = p->again ? below : own;
    }
}

/* Finds the results. Users come after their operands. */
static void find_results(splitting *s, const hlo_instruction *root) {
    for (uint32_t k = s->count; k-- > 0;) {
        pair *p = &s->pairs[k];
        const bool ahead = is_ahead(s, p);
        p->wanted |= ahead && p->main == root;
        p->result = p->wanted && !p->again;
        s->result_count += p->result;
        for (uint32_t o = 0; (!ahead || (p->wanted && p->again)) && o < p->main->operand_count; o++)
            if (is_ahead(s, operand_of(s, p->main, o))) operand_of(s, p->main, o)->wanted = true;
    }
}

/* Returns the layout of the new entry. `numbered` has the old parameters by their old numbers;
 * these keep their layouts. `result` is the shape of a new result, or NULL. Returns NULL if the
 * module has no entry layout. */
static hlo_shapes *layout_of(const hlo_module *module, hlo_instruction *const *numbered,
                             uint32_t numbered_count, const hlo_shape *result) {
    const hlo_computation *entry = module->entry;
    const hlo_attr *attr =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_ENTRY_COMPUTATION_LAYOUT);
    if (!attr) return NULL;
    const hlo_shapes *old = attr->u.shapes;
    hlo_shapes *made = hlo_arena_alloc(module->arena, sizeof *made + (entry->parameter_count + 1) *
                                                                         sizeof *made->v);
    made->count = entry->parameter_count + 1;
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        made->v[i] = entry->parameters[i]->shape;
        for (uint32_t k = 0; k < numbered_count; k++)
            if (numbered[k] == entry->parameters[i]) made->v[i] = old->v[k];
    }
    made->v[entry->parameter_count] = result ? result : old->v[old->count - 1];
    return made;
}

/* Copies aliases, and replaces the number of each parameter (its index in `numbered`) by the new
 * one. */
static const hlo_aliases *renumbered(hlo_module *module, const hlo_aliases *old,
                                     hlo_instruction *const *numbered) {
    const size_t size = sizeof *old + old->count * sizeof *old->v;
    hlo_aliases *made = hlo_arena_copy(module->arena, old, size);
    for (uint32_t i = 0; i < made->count; i++) {
        made->v[i].number = numbered[made->v[i].number]->u.parameter;
        made->v[i].text = hlo_print_interned(module, hlo_put_alias, &made->v[i]);
    }
    made->parsed.text = hlo_print_interned(module, hlo_put_aliases, made);
    return made;
}

/* Returns the list of parameters to which XLA may propagate shardings; the list in `text` has one
 * element for each old parameter, or one for all. The sharding of a new parameter is fixed, because
 * the other module computes it. Returns NULL if the list is for the elements of tuples. */
static const char *propagation_of(hlo_module *module, const char *text,
                                  hlo_instruction *const *numbered, uint32_t numbered_count,
                                  hlo_arena *scratch) {
    const hlo_computation *entry = module->entry;
    bool *allowed = hlo_arena_zero(scratch, numbered_count + 1);
    uint32_t count = 0;
    for (const char *at = text; (at = strpbrk(at, "tf")); at += *at == 't' ? 4 : 5) {
        if (count > numbered_count) return NULL;
        allowed[count++] = *at == 't';
    }
    if (count != 1 && count != numbered_count) return NULL;
    char *made = hlo_arena_alloc(scratch, 6 * (size_t)entry->parameter_count + 3), *end = made;
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        bool may = false;
        for (uint32_t k = 0; k < numbered_count; k++)
            may |= numbered[k] == entry->parameters[i] && allowed[count == 1 ? 0 : k];
        end = stpcpy(stpcpy(end, i ? "," : "{"), may ? "true" : "false");
    }
    end = stpcpy(end, "}");
    return hlo_intern(module, made, (size_t)(end - made));
}

/* Updates the header. `numbered` has the old parameters by their old numbers. The ahead module has
 * another result, of the shape `result`, so attributes of the result are dropped. */
static void set_header(hlo_module *module, hlo_instruction *const *numbered,
                       uint32_t numbered_count, const hlo_shape *result, hlo_arena *scratch) {
    hlo_attr *attrs = hlo_arena_array(module->arena, module->attr_count, sizeof *attrs);
    uint32_t count = 0;
    for (uint32_t i = 0; i < module->attr_count; i++) {
        hlo_attr attr = module->attrs[i];
        switch (attr.id) {
        case HLO_ATTR_ENTRY_COMPUTATION_LAYOUT:
            attr.u.shapes = layout_of(module, numbered, numbered_count, result);
            break;
        case HLO_ATTR_INPUT_OUTPUT_ALIAS:
        case HLO_ATTR_BUFFER_DONOR:
            if (result) continue;
            attr.u.aliases = renumbered(module, attr.u.aliases, numbered);
            break;
        case HLO_ATTR_ALLOW_SPMD_SHARDING_PROPAGATION_TO_PARAMETERS:
            attr.u.str = propagation_of(module, attr.u.str, numbered, numbered_count, scratch);
            if (!attr.u.str) continue;
            break;
        case HLO_ATTR_ORIGIN_RECOVERY_TABLE: continue;
        case HLO_ATTR_ALLOW_SPMD_SHARDING_PROPAGATION_TO_OUTPUT:
            if (result) continue;
            break;
        default: break;
        }
        attrs[count++] = attr;
    }
    module->attrs = attrs;
    module->attr_count = count;
}

/* Removes unused instructions, except the root and those that this module must keep, and assigns
 * new numbers to the parameters: first the old ones that remain, then `more`. */
static void finish(hlo_module *module, const splitting *s, bool of_main,
                   hlo_instruction *const *more, uint32_t more_count) {
    hlo_computation *entry = module->entry;
    hlo_instruction **numbered = entry->parameters;
    const uint32_t numbered_count = entry->parameter_count;
    entry->parameters = NULL;
    entry->parameter_count = entry->parameter_capacity = 0;
    for (uint32_t k = s->count; k-- > 0;) {
        hlo_instruction *instr = of_main ? s->pairs[k].main : s->pairs[k].ahead;
        const unsigned char state = s->state[s->pairs[k].main->id];
        const bool removable = of_main ? state != HLO_AHEAD_NO
                                       : instr->op != HLO_OP_PARAMETER || state != HLO_AHEAD_YES;
        if (instr->use_count || instr == entry->root || !removable) continue;
        hlo_instr_drop_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
        hlo_instr_remove(instr);
    }
    int64_t number = 0;
    for (uint32_t i = 0; i < numbered_count; i++)
        if (numbered[i]->parent) hlo_instr_set_parameter(numbered[i], number++);
    for (uint32_t i = 0; i < more_count; i++) hlo_instr_set_parameter(more[i], number++);
    set_header(module, numbered, numbered_count, of_main ? NULL : entry->root->shape, s->scratch);
    hlo_remove_uncalled(module, s->scratch);
    module->verified = false;
}

static hlo_status split(splitting *s, hlo_module *module, hlo_module *ahead,
                        const hlo_diag_sink *sink) {
    hlo_instruction *instr = module->entry->first, *copy = ahead->entry->first;
    for (; instr; instr = hlo_instr_next(instr), copy = hlo_instr_next(copy)) {
        s->index[instr->id] = s->count;
        s->pairs[s->count++] = (pair){.main = instr, .ahead = copy};
    }
    weigh(s);
    find_results(s, module->entry->root);
    if (!s->result_count)
        return hlo_diag_refuse(sink, HLO_DIAG_NAME, module->file, 0, 0,
                               "nothing to compute ahead: the module does not use `%s`", s->names);
    hlo_instruction **results = hlo_arena_array(s->scratch, s->result_count, sizeof *results);
    hlo_instruction **inputs = hlo_arena_array(s->scratch, s->result_count, sizeof *inputs);
    const hlo_shape **shapes = hlo_arena_array(s->scratch, s->result_count, sizeof *shapes);
    hlo_instruction *first = module->entry->first;
    uint32_t count = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        const pair *p = &s->pairs[k];
        if (!p->result) continue;
        results[count] = p->ahead;
        shapes[count] = p->ahead->shape;
        hlo_instruction *input = inputs[count++] = hlo_instr_new(
            module->entry, first, HLO_OP_PARAMETER, p->main->shape, 0, NULL, p->main->name);
        input->offset = p->main->offset;
        hlo_instr_inherit(input, p->main);
        hlo_instr_drop_attr(input, HLO_ATTR_ORIGIN);
        hlo_instr_replace_uses(p->main, input);
    }
    hlo_comp_set_root(ahead->entry,
                      hlo_instr_new(ahead->entry, NULL, HLO_OP_TUPLE,
                                    hlo_shape_tuple(ahead, count, shapes), count, results, NULL));
    finish(ahead, s, false, NULL, 0);
    finish(module, s, true, inputs, count);
    for (uint32_t k = 0, i = 0; k < s->count; k++)
        if (s->pairs[k].result) inputs[i++]->name = s->pairs[k].main->name;
    const char *name = hlo_arena_format(s->scratch, "%s_ahead", module->name);
    ahead->name = hlo_intern(ahead, name, strlen(name));
    return HLO_OK;
}

/* Returns true, and emits an error, if a name matches no parameter, or if a selected parameter
 * cannot be a parameter of the ahead module. */
static bool is_refused(const hlo_module *module, const splitting *s, const hlo_diag_sink *sink) {
    static const hlo_attr_id ids[] = {HLO_ATTR_INPUT_OUTPUT_ALIAS, HLO_ATTR_BUFFER_DONOR};
    const hlo_computation *entry = module->entry;
    size_t length;
    const char *at = s->names;
    for (const char *word; (word = hlo_next_word(&at, &length));) {
        const char *name = hlo_arena_format(s->scratch, "%.*s", (int)length, word);
        hlo_suggestion near = hlo_suggest(name);
        bool found = false;
        for (uint32_t i = 0; i < entry->parameter_count; i++) {
            found |= hlo_ahead_selects(name, entry->parameters[i]);
            hlo_suggest_offer(&near, entry->parameters[i]->name);
        }
        if (found) continue;
        hlo_diag_refuse(sink, HLO_DIAG_NAME, module->file, 0, 0, "no parameter is named `%s`%s",
                        name, hlo_suggest_meant(&near));
        return true;
    }
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        const hlo_instruction *p = entry->parameters[i];
        const char *fault = NULL;
        if (!hlo_ahead_selects(s->names, p)) continue;
        if (s->state[p->id] != HLO_AHEAD_YES)
            fault = p->pin ? "it has a control dependency, or is in another memory space"
                    : hlo_shape_is_array(p->shape) ? "it has a dynamic size"
                                                   : "it is a tuple that is used as a whole";
        for (int k = 0; k < 2; k++) {
            const hlo_attr *attr = hlo_attrs_find(module->attrs, module->attr_count, ids[k]);
            for (uint32_t a = 0; attr && a < attr->u.aliases->count; a++)
                if (attr->u.aliases->v[a].number == i) fault = "it is donated";
        }
        if (!fault) continue;
        hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_UNSUPPORTED, p->offset, strlen(p->name),
                      "parameter `%s` cannot be used ahead: %s", p->name, fault);
        return true;
    }
    return false;
}

hlo_status hlo_module_split(hlo_module *module, const char *parameters, const hlo_diag_sink *sink,
                            hlo_module **out_ahead) {
    HLO_IN_C_LOCALE;
    jmp_buf recover;
    *out_ahead = NULL;
    hlo_status status = hlo_module_ensure_verified(module, 0, sink);
    if (status != HLO_OK) return status;
    if (hlo_pin_is_scheduled(module))
        return hlo_diag_refuse(
            sink, HLO_DIAG_UNSUPPORTED, module->file, 0, 0,
            "a scheduled module cannot be split; split it before XLA schedules it");
    hlo_module *ahead = NULL;
    status = hlo_module_clone(module, &ahead);
    hlo_arena *scratch = status == HLO_OK ? hlo_arena_new(NULL) : NULL;
    if (!scratch) {
        hlo_module_free(ahead);
        return HLO_OUT_OF_MEMORY;
    }
    splitting s = {.names = parameters, .scratch = scratch};
    const hlo_snapshot *volatile original = NULL;
    jmp_buf *outer = hlo_arena_set_recover(module->arena, &recover);
    jmp_buf *other = hlo_arena_set_recover(ahead->arena, &recover);
    hlo_arena_set_recover(scratch, &recover);
    if (setjmp(recover)) {
        status = HLO_OUT_OF_MEMORY;
    } else {
        original = hlo_snapshot_take(module, scratch);
        hlo_pin_module(module, scratch);
        s.state = hlo_ahead_find(module, parameters, scratch);
        s.index = hlo_arena_zero(scratch, module->next_id * sizeof *s.index);
        s.pairs = hlo_arena_zero(scratch, module->entry->instr_count * sizeof *s.pairs);
        status = is_refused(module, &s, sink) ? HLO_INVALID_INPUT : split(&s, module, ahead, sink);
    }
    hlo_arena_set_recover(module->arena, outer);
    hlo_arena_set_recover(ahead->arena, other);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, sink);
    if (status == HLO_OK) status = hlo_module_verify(ahead, NULL, sink);
    if (status != HLO_OK && original) hlo_snapshot_restore(module, original);
    hlo_arena_free(scratch);
    if (status == HLO_OK)
        *out_ahead = ahead;
    else
        hlo_module_free(ahead);
    return status;
}
