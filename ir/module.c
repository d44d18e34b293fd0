/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, changes and copies modules, computations and instructions, with their use lists and
 * attributes. */
#include "ir/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/link.h"
#include "ir/memory.h"

const char *hlo_status_name(hlo_status status) {
    switch (status) {
    case HLO_OK: return "done";
    case HLO_INVALID_INPUT: return "invalid input";
    case HLO_INVALID_USAGE: return "invalid usage";
    case HLO_MISMATCH: return "mismatch";
    case HLO_INTERNAL: return "internal error";
    case HLO_OUT_OF_MEMORY: return "out of memory";
    case HLO_STOPPED: return "stopped";
    }
    return "unknown status";
}

int hlo_status_exit(hlo_status status) {
    return status >= HLO_OUT_OF_MEMORY ? HLO_INVALID_INPUT : (int)status;
}

/* Builds the module's tables. This is a separate function because setjmp() would leave the caller's
 * local variables undefined. */
static bool fill_module(hlo_module *module) {
    jmp_buf here;
    module->arena = hlo_arena_new(&here);
    if (!module->arena) return false;
    if (setjmp(here)) return false;
    module->strings = hlo_strings_new(module->arena);
    module->shapes = hlo_shapeset_new(module->arena);
    module->name = module->file = module->source = hlo_intern_string(module, "");
    module->source_line = 1;
    module->lines = hlo_arena_zero(module->arena, sizeof *module->lines);
    return true;
}

hlo_module *hlo_module_make(jmp_buf *recover) {
    hlo_module *module = hlo_calloc(1, sizeof *module);
    if (!module) return NULL;
    if (!fill_module(module)) {
        hlo_module_free(module);
        return NULL;
    }
    hlo_arena_set_recover(module->arena, recover);
    return module;
}

void hlo_module_free(hlo_module *module) {
    if (!module) return;
    hlo_recorded *recorded = module->recorded;
    if (recorded && atomic_fetch_sub(&recorded->modules, 1) == 1) {
        hlo_free(recorded->bytes);
        hlo_free(recorded);
    }
    hlo_strings_free(module->strings);
    hlo_arena_free(module->arena);
    hlo_free(module);
}

const char *hlo_module_name(const hlo_module *module) {
    return module->name;
}

/* --------------------------------------------------------------------------------- computations */

void hlo_computation_place(hlo_computation *comp, hlo_computation *before) {
    hlo_module *module = comp->module;
    comp->next = before;
    comp->prev = before ? before->prev : module->last;
    *(comp->prev ? &comp->prev->next : &module->first) = comp;
    *(before ? &before->prev : &module->last) = comp;
}

static void unlink_computation(hlo_computation *comp) {
    hlo_module *module = comp->module;
    *(comp->prev ? &comp->prev->next : &module->first) = comp->next;
    *(comp->next ? &comp->next->prev : &module->last) = comp->prev;
    comp->next = comp->prev = NULL;
}

/* Appends an entry to module->journal for `instr` or `comp`, whichever is not NULL. `interned`: the
 * string from which the name was derived; NULL if the object has no name. */
static void note_made(hlo_module *module, hlo_instruction *instr, hlo_computation *comp,
                      const char *interned) {
    hlo_journal *j = module->journal;
    hlo_arena_grow(j->arena, &j->v, j->count, &j->capacity, sizeof *j->v);
    j->v[j->count++] = (hlo_made){.instr = instr, .comp = comp, .interned = interned};
}

hlo_computation *hlo_comp_new(hlo_module *module, const char *name) {
    hlo_computation *comp = hlo_arena_zero(module->arena, sizeof *comp);
    comp->id = module->next_computation_id++;
    const char *interned = name ? hlo_intern_string(module, name) : NULL;
    if (name) comp->name = hlo_unique_name(module, HLO_NAME_COMPUTATION, interned);
    comp->module = module;
    hlo_computation_place(comp, NULL);
    if (module->journal) note_made(module, NULL, comp, interned);
    return comp;
}

void hlo_comp_remove(hlo_computation *comp) {
    unlink_computation(comp);
    comp->module->instr_count -= comp->instr_count;
    for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
        comp->module->op_counts[instr->op]--;
    if (comp->module->entry == comp) comp->module->entry = NULL;
}

void hlo_comp_move(hlo_computation *comp, hlo_computation *before) {
    unlink_computation(comp);
    hlo_computation_place(comp, before);
}

void hlo_comp_set_root(hlo_computation *comp, hlo_instruction *root) {
    comp->root = root;
}

/* --------------------------------------------------------------------------------- instructions */

void hlo_use_link(hlo_use *use, hlo_instruction *def, hlo_instruction *user) {
    *use = (hlo_use){.def = def, .user = user, .next = def->uses};
    if (def->uses) def->uses->prev = use;
    def->uses = use;
    def->use_count++;
}

static void unlink_use(hlo_use *use) {
    *(use->prev ? &use->prev->next : &use->def->uses) = use->next;
    if (use->next) use->next->prev = use->prev;
    use->def->use_count--;
}

void hlo_instr_place(hlo_instruction *instr, hlo_computation *comp, hlo_instruction *before) {
    instr->parent = comp;
    instr->next = before;
    instr->prev = before ? before->prev : comp->last;
    *(instr->prev ? &instr->prev->next : &comp->first) = instr;
    *(before ? &before->prev : &comp->last) = instr;
    comp->instr_count++;
    comp->module->instr_count++;
    comp->module->op_counts[instr->op]++;
}

static void unlink_instr(hlo_instruction *instr) {
    hlo_computation *comp = instr->parent;
    *(instr->prev ? &instr->prev->next : &comp->first) = instr->next;
    *(instr->next ? &instr->next->prev : &comp->last) = instr->prev;
    comp->instr_count--;
    comp->module->instr_count--;
    comp->module->op_counts[instr->op]--;
    instr->parent = NULL;
}

hlo_instruction *hlo_instr_new(hlo_computation *comp, hlo_instruction *before, hlo_op op,
                               const hlo_shape *shape, uint32_t operand_count,
                               hlo_instruction *const *operands, const char *name) {
    const char *interned = hlo_intern_string(comp->module, name ? name : hlo_ops[op].name);
    return hlo_instr_new_interned(comp, before, op, shape, operand_count, operands, interned);
}

static hlo_instruction *new_instr(hlo_computation *comp, hlo_instruction *before, hlo_op op,
                                  const hlo_shape *shape, uint32_t operand_count,
                                  hlo_instruction *const *operands) {
    hlo_module *module = comp->module;
    hlo_instruction *instr = hlo_pool_alloc(module->arena, &module->instrs, sizeof *instr);
    *instr = (hlo_instruction){
        .op = op, .id = module->next_id++, .operand_count = operand_count, .shape = shape};
    if (operand_count)
        instr->operands = hlo_arena_array(module->arena, operand_count, sizeof *instr->operands);
    for (uint32_t i = 0; i < operand_count; i++)
        hlo_use_link(&instr->operands[i], operands[i], instr);
    hlo_instr_place(instr, comp, before);
    return instr;
}

hlo_instruction *hlo_instr_new_unnamed(hlo_computation *comp, hlo_instruction *before, hlo_op op,
                                       const hlo_shape *shape, uint32_t operand_count,
                                       hlo_instruction *const *operands) {
    hlo_instruction *instr = new_instr(comp, before, op, shape, operand_count, operands);
    if (comp->module->journal) note_made(comp->module, instr, NULL, NULL);
    return instr;
}

hlo_instruction *hlo_instr_new_interned(hlo_computation *comp, hlo_instruction *before, hlo_op op,
                                        const hlo_shape *shape, uint32_t operand_count,
                                        hlo_instruction *const *operands, const char *interned) {
    hlo_instruction *instr = new_instr(comp, before, op, shape, operand_count, operands);
    instr->name = hlo_unique_name(comp->module, HLO_NAME_INSTR, interned);
    if (comp->module->journal) note_made(comp->module, instr, NULL, interned);
    return instr;
}

void hlo_instr_set_parameter(hlo_instruction *instr, int64_t number) {
    hlo_computation *comp = instr->parent;
    instr->u.parameter = number;
    if (number >= comp->parameter_capacity) {
        const uint32_t needed = (uint32_t)number + 1, twice = 2 * comp->parameter_count;
        comp->parameter_capacity = needed > twice ? needed : twice;
        hlo_instruction **grown =
            hlo_arena_zero(comp->module->arena, comp->parameter_capacity * sizeof *grown);
        if (comp->parameter_count)
            memcpy(grown, comp->parameters, comp->parameter_count * sizeof *grown);
        comp->parameters = grown;
    }
    if (number >= comp->parameter_count) comp->parameter_count = (uint32_t)number + 1;
    comp->parameters[number] = instr;
}

hlo_instruction *hlo_instr_copy(hlo_computation *comp, hlo_instruction *before,
                                const hlo_instruction *instr, hlo_instruction *const *operands) {
    hlo_instruction *copy = hlo_instr_new(comp, before, instr->op, instr->shape,
                                          instr->operand_count, operands, instr->name);
    hlo_instr_take_attrs(copy, instr->attrs, instr->attr_count);
    copy->offset = instr->offset;
    copy->pin = instr->pin;
    if (copy->op == HLO_OP_CONSTANT) copy->u = instr->u;
    if (copy->op == HLO_OP_PARAMETER) hlo_instr_set_parameter(copy, instr->u.parameter);
    return copy;
}

void hlo_instr_remove(hlo_instruction *instr) {
    for (uint32_t i = 0; i < instr->operand_count; i++) unlink_use(&instr->operands[i]);
    instr->operand_count = 0;
    unlink_instr(instr);
}

void hlo_instr_move(hlo_instruction *instr, hlo_instruction *before) {
    hlo_computation *comp = instr->parent;
    if (before == instr) return;
    unlink_instr(instr);
    hlo_instr_place(instr, comp, before);
}

void hlo_instr_set_operand(hlo_instruction *instr, uint32_t index, hlo_instruction *def) {
    unlink_use(&instr->operands[index]);
    hlo_use_link(&instr->operands[index], def, instr);
}

void hlo_instr_set_operands(hlo_instruction *instr, uint32_t count,
                            hlo_instruction *const *operands) {
    for (uint32_t i = 0; i < instr->operand_count; i++) unlink_use(&instr->operands[i]);
    if (count > instr->operand_count)
        instr->operands =
            hlo_arena_array(instr->parent->module->arena, count, sizeof *instr->operands);
    instr->operand_count = count;
    for (uint32_t i = 0; i < count; i++) hlo_use_link(&instr->operands[i], operands[i], instr);
}

void hlo_instr_append_operand(hlo_instruction *instr, hlo_instruction *def) {
    uint32_t count = instr->operand_count;
    hlo_use *grown = hlo_arena_array(instr->parent->module->arena, count + 1, sizeof *grown);
    for (uint32_t i = 0; i < count; i++) {
        hlo_instruction *operand = instr->operands[i].def;
        unlink_use(&instr->operands[i]);
        hlo_use_link(&grown[i], operand, instr);
    }
    hlo_use_link(&grown[count], def, instr);
    instr->operands = grown;
    instr->operand_count = count + 1;
}

void hlo_instr_replace_uses(hlo_instruction *from, hlo_instruction *to) {
    if (from == to) return;
    for (hlo_use *use = from->uses, *next; use; use = next) {
        next = use->next;
        hlo_instruction *user = use->user;
        if (user == to) continue; /* `to` may depend on `from` */
        unlink_use(use);
        hlo_use_link(use, to, user);
    }
    if (from->parent->root == from) from->parent->root = to;
}

void hlo_instr_inherit(hlo_instruction *to, const hlo_instruction *from) {
    static const hlo_attr_id ids[] = {HLO_ATTR_METADATA, HLO_ATTR_FRONTEND_ATTRIBUTES,
                                      HLO_ATTR_SHARDING, HLO_ATTR_ORIGIN};
    const bool alike = hlo_shape_is_array(from->shape) && hlo_shape_is_array(to->shape) &&
                       hlo_shape_same_dims(from->shape, to->shape);
    for (size_t i = 0; i < (alike ? 4 : 2); i++) {
        const hlo_attr *attr = hlo_instr_attr(from, ids[i]);
        if (attr && !hlo_instr_attr(to, ids[i])) hlo_instr_set_attr(to, *attr);
    }
}

uint32_t hlo_instr_user_count(const hlo_instruction *instr) {
    return instr->use_count + (instr->parent && instr->parent->root == instr);
}

/* ----------------------------------------------------------------------------------- attributes */

static uint32_t attr_bits(hlo_attr_id id) {
    const hlo_attr_kind kind = hlo_attrs_info[id].kind;
    const bool calls = kind == HLO_KIND_COMPUTATION || kind == HLO_KIND_COMPUTATIONS;
    return hlo_attr_bit(id) | (calls ? HLO_ATTR_BIT_CALLS : 0);
}

void hlo_instr_take_attrs(hlo_instruction *instr, const hlo_attr *attrs, uint32_t count) {
    instr->attrs = attrs;
    instr->attr_count = count & 0xfffff;
    instr->attr_bits = 0;
    bool *seen = instr->parent->module->attrs_seen;
    for (uint32_t i = 0; i < count; i++) {
        instr->attr_bits |= attr_bits(attrs[i].id);
        seen[attrs[i].id] = true;
    }
}

/* Copies the attributes on every change, because instructions (clones) may share an array. */
void hlo_instr_set_attr(hlo_instruction *instr, hlo_attr attr) {
    hlo_arena *arena = instr->parent->module->arena;
    hlo_attr *grown = hlo_arena_array(arena, instr->attr_count + 1, sizeof *grown);
    uint32_t count = 0;
    bool replaced = false;
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        bool same = instr->attrs[i].id == attr.id;
        grown[count++] = same ? attr : instr->attrs[i];
        replaced |= same;
    }
    if (!replaced) grown[count++] = attr;
    hlo_instr_take_attrs(instr, grown, count);
}

void hlo_instr_drop_attr(hlo_instruction *instr, hlo_attr_id id) {
    if (!hlo_instr_attr(instr, id)) return;
    hlo_arena *arena = instr->parent->module->arena;
    hlo_attr *kept = hlo_arena_array(arena, instr->attr_count, sizeof *kept);
    uint32_t count = 0;
    for (uint32_t i = 0; i < instr->attr_count; i++)
        if (instr->attrs[i].id != id) kept[count++] = instr->attrs[i];
    hlo_instr_take_attrs(instr, kept, count);
}

void hlo_instr_copy_attrs(hlo_instruction *to, const hlo_instruction *from) {
    if (to->attr_count == 0) {
        hlo_instr_take_attrs(to, from->attrs, from->attr_count);
        return;
    }
    for (uint32_t i = 0; i < from->attr_count; i++)
        if (!hlo_instr_attr(to, from->attrs[i].id)) hlo_instr_set_attr(to, from->attrs[i]);
}

int64_t hlo_module_int(const hlo_module *module, hlo_attr_id id, int64_t missing) {
    const hlo_attr *attr = hlo_attrs_find(module->attrs, module->attr_count, id);
    return attr ? attr->u.i : missing;
}

int64_t hlo_instr_int(const hlo_instruction *instr, hlo_attr_id id, int64_t missing) {
    const hlo_attr *attr = hlo_instr_attr(instr, id);
    return attr ? attr->u.i : missing;
}

const char *hlo_instr_str(const hlo_instruction *instr, hlo_attr_id id) {
    const hlo_attr *attr = hlo_instr_attr(instr, id);
    return attr ? hlo_attr_text(attr) : NULL;
}

bool hlo_is_custom_call(const hlo_instruction *instr, const char *target) {
    if (instr->op != HLO_OP_CUSTOM_CALL) return false;
    const char *name = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    return name && strcmp(name, target) == 0;
}

const hlo_attr *hlo_window_word(const hlo_attr *window, hlo_attr_id id) {
    return window ? hlo_attrs_find(window->u.attrs->v, window->u.attrs->count, id) : NULL;
}

const hlo_ints *hlo_instr_ints(const hlo_instruction *instr, hlo_attr_id id) {
    static const hlo_ints none = {.count = 0};
    const hlo_attr *attr = hlo_instr_attr(instr, id);
    return attr ? attr->u.ints : &none;
}

hlo_computation *hlo_instr_comp(const hlo_instruction *instr, hlo_attr_id id) {
    const hlo_attr *attr = hlo_instr_attr(instr, id);
    return attr ? attr->u.comp : NULL;
}

void hlo_instr_visit_called(const hlo_instruction *instr,
                            void (*visit)(void *user, hlo_computation *called), void *user) {
    if (!(instr->attr_bits & HLO_ATTR_BIT_CALLS)) return;
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        const hlo_attr *attr = &instr->attrs[i];
        hlo_attr_kind kind = hlo_attrs_info[attr->id].kind;
        if (kind == HLO_KIND_COMPUTATION) visit(user, attr->u.comp);
        if (kind == HLO_KIND_COMPUTATIONS)
            for (uint32_t c = 0; c < attr->u.comps->count; c++) visit(user, attr->u.comps->v[c]);
    }
}

void hlo_mark_called(void *marks, hlo_computation *called) {
    ((bool *)marks)[called->id] = true;
}

hlo_ints *hlo_ints_in(hlo_arena *arena, uint32_t count, const int64_t *values) {
    hlo_ints *ints = hlo_arena_alloc(arena, sizeof *ints + count * sizeof *values);
    ints->count = count;
    if (count && values) memcpy(ints->v, values, count * sizeof *values);
    return ints;
}

hlo_ints *hlo_ints_new(hlo_module *module, uint32_t count, const int64_t *values) {
    return hlo_ints_in(module->arena, count, values);
}

int64_t hlo_ints_find(const hlo_ints *ints, int64_t value) {
    for (uint32_t i = 0; i < ints->count; i++)
        if (ints->v[i] == value) return i;
    return -1;
}

bool hlo_ints_contain(const hlo_ints *ints, int64_t value) {
    return hlo_ints_find(ints, value) >= 0;
}

void hlo_instr_set_ints(hlo_instruction *instr, hlo_attr_id id, uint32_t count,
                        const int64_t *values) {
    hlo_ints *ints = hlo_ints_new(instr->parent->module, count, values);
    hlo_instr_set_attr(instr, (hlo_attr){.id = id, .u.ints = ints});
}

void hlo_instr_set_int(hlo_instruction *instr, hlo_attr_id id, int64_t value) {
    hlo_instr_set_attr(instr, (hlo_attr){.id = id, .u.i = value});
}

void hlo_instr_set_str(hlo_instruction *instr, hlo_attr_id id, const char *text) {
    hlo_module *module = instr->parent->module;
    hlo_attr attr = {.id = id, .u.str = hlo_intern_string(module, text)};
    if (hlo_attr_is_parsed(id)) attr = *module->read(module, id, attr.u.str);
    hlo_instr_set_attr(instr, attr);
}

void hlo_instr_set_comp(hlo_instruction *instr, hlo_attr_id id, hlo_computation *comp) {
    hlo_instr_set_attr(instr, (hlo_attr){.id = id, .u.comp = comp});
}

/* ------------------------------------------------------------- threads, asynchronous operations */

const char hlo_main_thread[] = "main";

static const hlo_attr *thread_of(const hlo_computation *comp) {
    return hlo_attrs_find(comp->attrs, comp->attr_count, HLO_ATTR_EXECUTION_THREAD);
}

const char *hlo_computation_thread(const hlo_computation *comp) {
    const hlo_attr *thread = thread_of(comp);
    return thread ? thread->u.str : hlo_main_thread;
}

bool hlo_computation_set_thread(hlo_computation *comp, const char *interned) {
    const char *wanted = interned ? interned : hlo_main_thread;
    if (strcmp(hlo_computation_thread(comp), wanted) == 0) return false;
    hlo_attr *attrs = hlo_arena_array(comp->module->arena, comp->attr_count + 1, sizeof *attrs);
    uint32_t count = 0;
    for (uint32_t i = 0; i < comp->attr_count; i++)
        if (&comp->attrs[i] != thread_of(comp)) attrs[count++] = comp->attrs[i];
    if (interned) attrs[count++] = (hlo_attr){.id = HLO_ATTR_EXECUTION_THREAD, .u.str = interned};
    comp->attrs = attrs;
    comp->attr_count = count;
    return true;
}

bool hlo_op_is_async(hlo_op op) {
    return op == HLO_OP_ASYNC_START || op == HLO_OP_ASYNC_UPDATE || op == HLO_OP_ASYNC_DONE;
}

const hlo_instruction *hlo_async_start(const hlo_instruction *instr) {
    while (instr->op == HLO_OP_ASYNC_UPDATE || instr->op == HLO_OP_ASYNC_DONE)
        instr = hlo_instr_operand(instr, 0);
    return instr->op == HLO_OP_ASYNC_START ? instr : NULL;
}

const hlo_instruction *hlo_async_wrapped(const hlo_computation *comp) {
    const hlo_instruction *root = comp->root;
    if (root != comp->last || comp->instr_count != comp->parameter_count + 1 ||
        root->operand_count != comp->parameter_count || root->op == HLO_OP_PARAMETER ||
        root->op == HLO_OP_CONSTANT || hlo_op_is_async(root->op))
        return NULL;
    for (uint32_t i = 0; i < root->operand_count; i++) {
        const hlo_instruction *parameter = comp->parameters[i];
        if (hlo_instr_operand(root, i) != parameter || parameter->attr_count) return NULL;
    }
    return root;
}

bool hlo_async_shares(hlo_attr_id attr) {
    return attr == HLO_ATTR_BACKEND_CONFIG || attr == HLO_ATTR_FRONTEND_ATTRIBUTES ||
           attr == HLO_ATTR_METADATA || attr == HLO_ATTR_STATISTICS;
}

/* True if text that omits the wrapped instruction tells its attribute: the last instruction of the
 * chain of `start` that has the attribute has the same value. */
static bool tells_attr(const hlo_instruction *start, const hlo_instruction *wrapped,
                       hlo_attr_id id) {
    const hlo_attr *told = NULL, *attr = hlo_instr_attr(wrapped, id);
    for (const hlo_instruction *i = start; i && hlo_op_is_async(i->op);
         i = i->uses ? i->uses->user : NULL) {
        const hlo_attr *here = hlo_instr_attr(i, id);
        if (here) told = here;
    }
    return attr ? told && hlo_attr_equal(told, attr) : !told;
}

bool hlo_async_tells(const hlo_instruction *start, const hlo_computation *called) {
    const hlo_instruction *wrapped = hlo_async_wrapped(called);
    if (!wrapped) return false;
    /* all-gather and other opcodes have a separate start opcode, such as `all-gather-start`. */
    char name[64];
    const int length = snprintf(name, sizeof name, "%s-start", hlo_ops[wrapped->op].name);
    if (hlo_op_find(name, (size_t)length) != HLO_OP_INVALID) return false;
    /* Text mixes the attributes of the start and of the wrapped instruction. The parser assigns to
     * the wrapped instruction each attribute that its opcode may have. */
    for (uint32_t i = 0; i < start->attr_count; i++)
        if (start->attrs[i].id != HLO_ATTR_CALLS && hlo_op_has(wrapped->op, start->attrs[i].id))
            return false;
    for (uint32_t i = 0; i < wrapped->attr_count; i++)
        if (!hlo_op_has(wrapped->op, wrapped->attrs[i].id) &&
            !hlo_async_shares(wrapped->attrs[i].id))
            return false;
    for (int id = 0; id < HLO_ATTR_COUNT; id++)
        if (hlo_async_shares((hlo_attr_id)id) && !tells_attr(start, wrapped, (hlo_attr_id)id))
            return false;
    return start->operand_count == called->parameter_count &&
           start->shape->type == HLO_TYPE_TUPLE && start->shape->rank > 1 &&
           hlo_shape_compatible(start->shape->elements[1], wrapped->shape);
}
