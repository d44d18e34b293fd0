/* The verifier: what must hold of a module besides the shape rules, which infer.c checks. */
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

enum { MOST_ERRORS = 20, WHY_SIZE = 640 };

typedef struct verifier {
    const hlo_module *module;
    const hlo_diag_sink *sink;
    unsigned errors;
    const hlo_computation **place; /* by instruction id: where it stands, once it was passed */
    uint8_t *state;                /* by computation id: see check_calls() */
} verifier;

__attribute__((format(printf, 3, 4))) static void report(verifier *v, uint32_t offset,
                                                         const char *format, ...) {
    if (v->errors++ >= MOST_ERRORS) return;
    va_list args;
    va_start(args, format);
    char message[WHY_SIZE + 256];
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    hlo_diag_emit(v->module, v->sink, HLO_ERROR, offset, 1, "%s", message);
}

/* --------------------------------------------------------------------------------------- shapes */

/* What is wrong with a shape in itself, or NULL. */
static const char *shape_fault(const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++) {
            const char *fault = shape_fault(shape->elements[i]);
            if (fault) return fault;
        }
        return NULL;
    }
    bool unbounded = false;
    for (uint32_t i = 0; i < shape->rank; i++) unbounded |= shape->dims[i] < 0;
    if (!unbounded && hlo_shape_bytes(shape) < 0) return "has more bytes than 2^63";
    if (!shape->layout) return NULL;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->layout->minor_to_major[i];
        if (dim < 0 || dim >= shape->rank) return "has a layout that is no order of its dimensions";
        for (uint32_t j = 0; j < i; j++)
            if (shape->layout->minor_to_major[j] == dim)
                return "has a layout that names a dimension twice";
    }
    return NULL;
}

static void check_shape(verifier *v, uint32_t offset, const hlo_shape *shape, const char *what) {
    const char *fault = shape_fault(shape);
    if (!fault) return;
    char text[256];
    hlo_shape_format(shape, true, text, sizeof text);
    report(v, offset, "%s %s %s", what, text, fault);
}

static void check_literal(verifier *v, const hlo_instr *instr, const hlo_literal *literal) {
    if (!literal) {
        report(v, instr->offset, "%%%s has no value", instr->name);
        return;
    }
    if (hlo_shape_compatible(literal->shape, instr->shape)) return;
    char has[160], is[160];
    hlo_shape_format(literal->shape, false, has, sizeof has);
    hlo_shape_format(instr->shape, false, is, sizeof is);
    report(v, instr->offset, "the value of %%%s is %s, its shape %s", instr->name, has, is);
}

/* ----------------------------------------------------------------------------------- attributes */

static bool is_word(const char *list, const char *word, size_t length) {
    for (const char *at = list; (at = strchr(at, ' ')) && at[1]; at++)
        if (strncmp(at + 1, word, length) == 0 && strchr(" ", at[1 + length])) return true;
    return false;
}

static void check_words(verifier *v, const hlo_instr *instr, const hlo_attr *attr,
                        const char *words) {
    for (const char *at = attr->u.str; *at;) {
        size_t length = strcspn(at, "{}, \t\r\n");
        if (length && !is_word(words, at, length))
            report(v, instr->offset, "%s: %s %.*s is none of%s", hlo_ops[instr->op].name,
                   hlo_attrs_info[attr->id].name, (int)length, at, words);
        at += length ? length : 1;
    }
}

static const struct {
    hlo_attr_id attr;
    hlo_op op;
    const char *words;
} fixed_words[] = {
#define HLO_OP_ANY HLO_OP_COUNT
#define HLO_WORDS(attr, op, words) {HLO_ATTR_##attr, HLO_OP_##op, words},
#include "ir/word.def"
#undef HLO_WORDS
#undef HLO_OP_ANY
};

static void check_attrs(verifier *v, const hlo_instr *instr) {
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        const hlo_attr *attr = &instr->attrs[i];
        const char *name = hlo_attrs_info[attr->id].name;
        if (!hlo_op_allows(instr->op, attr->id))
            report(v, instr->offset, "%s has no attribute '%s'", hlo_ops[instr->op].name, name);
        if (hlo_instr_attr(instr, attr->id) != attr)
            report(v, instr->offset, "the attribute '%s' is given twice", name);
        for (size_t w = 0; w < sizeof fixed_words / sizeof *fixed_words; w++)
            if (fixed_words[w].attr == attr->id &&
                (fixed_words[w].op == instr->op || fixed_words[w].op == HLO_OP_COUNT))
                check_words(v, instr, attr, fixed_words[w].words);
    }
}

/* --------------------------------------------------------------------- computations, one by one */

/* `def` stands in the same computation, before `user`. `how` says what it is to it. */
static bool check_order(verifier *v, const hlo_instr *user, const hlo_instr *def, const char *how) {
    if (!def->parent)
        report(v, user->offset, "%s %%%s of %%%s was removed", how, def->name, user->name);
    else if (def->parent != user->parent)
        report(v, user->offset, "%s %%%s of %%%s stands in another computation, %%%s", how,
               def->name, user->name, def->parent->name);
    else if (v->place[def->id] != user->parent)
        report(v, user->offset, "%s %%%s of %%%s comes after it", how, def->name, user->name);
    else
        return true;
    return false;
}

static void check_parameter(verifier *v, const hlo_instr *instr) {
    const hlo_computation *comp = instr->parent;
    int64_t number = instr->u.parameter;
    if (number < 0 || number >= comp->parameter_count || comp->parameters[number] != instr)
        report(v, instr->offset, "%%%s is not the only parameter %lld of %%%s", instr->name,
               (long long)number, comp->name);
}

static void check_instr(verifier *v, const hlo_instr *instr) {
    bool sound = true;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        sound &= check_order(v, instr, hlo_instr_operand(instr, i), "operand");
    const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
    for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
        check_order(v, instr, control->u.instrs->v[i], "control predecessor");
    check_shape(v, instr->offset, instr->shape, "the shape");
    check_attrs(v, instr);
    if (instr->op == HLO_OP_PARAMETER) check_parameter(v, instr);
    if (instr->op == HLO_OP_CONSTANT) check_literal(v, instr, instr->u.literal);
    char why[WHY_SIZE];
    if (sound && !hlo_infer_check(instr, why, sizeof why)) report(v, instr->offset, "%s", why);
}

static void check_computation(verifier *v, const hlo_computation *comp) {
    for (uint32_t i = 0; i < comp->parameter_count; i++)
        if (!comp->parameters[i] || comp->parameters[i]->parent != comp)
            report(v, comp->offset, "%%%s has %u parameters, but none of number %u", comp->name,
                   comp->parameter_count, i);
    for (const hlo_instr *instr = comp->first; instr; instr = instr->next) {
        check_instr(v, instr);
        v->place[instr->id] = comp;
    }
    if (!comp->root)
        report(v, comp->offset, "%%%s has no root", comp->name);
    else if (comp->root->parent != comp)
        report(v, comp->offset, "the root %%%s of %%%s does not stand in it", comp->root->name,
               comp->name);
}

/* ------------------------------------------------------------------------------- the whole module
 */

static int by_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (const char *const *)a, y = (uintptr_t) * (const char *const *)b;
    return (x > y) - (x < y);
}

/* Names are interned: two of the same are one pointer. */
static void check_names(verifier *v, const char **names, size_t count, const char *what) {
    qsort(names, count, sizeof *names, by_address);
    for (size_t i = 1; i < count; i++)
        if (names[i] == names[i - 1] && (i < 2 || names[i] != names[i - 2]))
            report(v, 0, "two %s are called %%%s", what, names[i]);
}

static void check_all_names(verifier *v) {
    const hlo_module *m = v->module;
    size_t room = m->next_id > m->next_computation_id ? m->next_id : m->next_computation_id;
    const char **names = hlo_arena_array(m->arena, room, sizeof *names);
    size_t count = 0;
    for (const hlo_computation *comp = m->first; comp; comp = comp->next)
        names[count++] = comp->name;
    check_names(v, names, count, "computations");
    count = 0;
    for (const hlo_computation *comp = m->first; comp; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr; instr = instr->next)
            names[count++] = instr->name;
    check_names(v, names, count, "instructions");
}

/* One computation on the path from the entry, and where the walk over its instructions stands. */
typedef struct call_frame {
    const hlo_computation *comp;
    const hlo_instr *next;
    const hlo_instr *call; /* whose called computations are being gone through */
    uint32_t index;        /* the next of them */
} call_frame;

typedef struct called_at {
    uint32_t index;
    hlo_computation *comp;
} called_at;

static void pick_called(void *user, hlo_computation *called) {
    called_at *at = user;
    if (at->index-- == 0) at->comp = called;
}

/* The next computation that the frame's calls, NULL when there are no more. */
static hlo_computation *next_called(call_frame *frame) {
    for (;;) {
        if (frame->call) {
            called_at at = {.index = frame->index++};
            hlo_instr_visit_called(frame->call, pick_called, &at);
            if (at.comp) return at.comp;
        }
        frame->call = frame->next;
        frame->index = 0;
        if (!frame->call) return NULL;
        frame->next = frame->next->next;
    }
}

/* No computation calls itself, through however many others, and what is called is in the module. A
 * depth-first walk that does not recurse; v->state of a computation is 0 before, 1 while it is on
 * the path, 2 after. */
static void check_calls(verifier *v) {
    const hlo_module *m = v->module;
    call_frame *path = hlo_arena_array(m->arena, (size_t)m->next_computation_id + 1, sizeof *path);
    enum { NEW, ON_PATH, DONE };
    for (const hlo_computation *start = m->first; start; start = start->next) {
        size_t depth = 0;
        if (v->state[start->id] == NEW)
            path[depth++] = (call_frame){.comp = start, .next = start->first};
        while (depth) {
            call_frame *frame = &path[depth - 1];
            v->state[frame->comp->id] = ON_PATH;
            const hlo_computation *called = next_called(frame);
            if (!called) {
                v->state[frame->comp->id] = DONE;
                depth--;
            } else if (called == m->entry) {
                report(v, frame->call->offset, "%%%s calls the entry computation",
                       frame->call->name);
            } else if (v->state[called->id] == ON_PATH) {
                report(v, frame->call->offset, "%%%s calls %%%s, which leads back to itself",
                       frame->call->name, called->name);
            } else if (v->state[called->id] == NEW) {
                path[depth++] = (call_frame){.comp = called, .next = called->first};
            }
        }
    }
}

static void check_entry(verifier *v) {
    const hlo_module *m = v->module;
    const hlo_computation *entry = m->entry;
    if (!entry) {
        report(v, 0, "the module has no entry computation");
        return;
    }
    const hlo_shapes *layout = NULL;
    for (uint32_t i = 0; i < m->attr_count; i++)
        if (m->attrs[i].id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT) layout = m->attrs[i].u.shapes;
    if (!layout || !entry->root) return;
    if (layout->count != entry->parameter_count + 1) {
        report(v, entry->offset, "entry_computation_layout has %u parameters, %%%s has %u",
               layout->count - 1, entry->name, entry->parameter_count);
        return;
    }
    for (uint32_t i = 0; i < layout->count; i++) {
        const hlo_instr *instr = i < entry->parameter_count ? entry->parameters[i] : entry->root;
        if (!instr) continue;
        check_shape(v, instr->offset, layout->v[i], "entry_computation_layout:");
        if (hlo_shape_compatible(layout->v[i], instr->shape)) continue;
        char says[160], is[160];
        hlo_shape_format(layout->v[i], false, says, sizeof says);
        hlo_shape_format(instr->shape, false, is, sizeof is);
        report(v, instr->offset, "entry_computation_layout has %s where %%%s is %s", says,
               instr->name, is);
    }
}

static void check_module(verifier *v) {
    check_all_names(v);
    for (const hlo_computation *comp = v->module->first; comp; comp = comp->next)
        check_computation(v, comp);
    check_calls(v);
    check_entry(v);
}

hlo_status hlo_module_verify(const hlo_module *module, const hlo_diag_sink *sink) {
    jmp_buf recover;
    /* Inferred shapes are interned in the module: what it means stays as it is. */
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    verifier v = {.module = module, .sink = sink};
    if (setjmp(recover)) {
        hlo_arena_set_recover(module->arena, before);
        return HLO_OUT_OF_MEMORY;
    }
    v.place = hlo_arena_zero(module->arena, module->next_id * sizeof *v.place);
    v.state = hlo_arena_zero(module->arena, module->next_computation_id * sizeof *v.state);
    check_module(&v);
    hlo_arena_set_recover(module->arena, before);
    return v.errors ? HLO_INVALID_INPUT : HLO_OK;
}
