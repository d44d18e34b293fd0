/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: calls and channels between computations, names, and the module header. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/verify/context.h"

/* Returns the offset of a header attribute, which follows `HloModule` at the start of a line. */
static uint32_t header_offset(const verifier *v, hlo_attr_id id) {
    const char *source = v->module->source;
    const char *end = source + v->module->source_size, *at = source;
    static const char head[] = "HloModule";
    while (at < end && strncmp(at + strspn(at, " \t"), head, sizeof head - 1) != 0) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (!at) return 0;
        at++;
    }
    return hlo_verify_attr_offset(v, (uint32_t)(at - source), id, false);
}

static const hlo_attr *header_attr(const verifier *v, hlo_attr_id id) {
    return hlo_attrs_find(v->module->attrs, v->module->attr_count, id);
}

/* ---------------------------------------------------------------------------------------- names */

typedef struct named {
    const char *name;
    uint32_t offset;
} named;

/* Compares names, which are interned: equal names have equal pointers. */
static int by_name(const void *a, const void *b) {
    const named *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->name, q = (uintptr_t)y->name;
    return p != q ? (p > q) - (p < q) : (x->offset > y->offset) - (x->offset < y->offset);
}

static void check_names(verifier *v, named *names, size_t count, const char *what) {
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count; i++) {
        if (names[i].name != names[i - 1].name) continue;
        if (i > 1 && names[i].name == names[i - 2].name) continue;
        hlo_verify_error(v, names[i].offset, "two %s have the name %%%s", what, names[i].name);
        if (names[i].offset != names[i - 1].offset)
            hlo_verify_note(v, names[i - 1].offset, "the other one is declared here");
    }
}

/* ---------------------------------------------------------------------------------------- calls */

/* One instruction that calls one computation. */
typedef struct call_edge {
    const hlo_instr *call;
    const hlo_computation *called;
} call_edge;

typedef struct edge_list {
    call_edge *edges;
    const hlo_instr *call;
    size_t count;
} edge_list;

static void add_edge(void *user, hlo_computation *called) {
    edge_list *list = user;
    list->edges[list->count++] = (call_edge){list->call, called};
}

/* One computation on the path of the search. */
typedef struct call_frame {
    const hlo_computation *comp;
    const call_edge *next, *end; /* the calls that remain to be followed */
} call_frame;

static call_frame frame_of(verifier *v, const hlo_computation *comp) {
    const size_t count = v->calls[comp->id];
    edge_list list = {.edges = hlo_arena_array(v->scratch, count, sizeof(call_edge))};
    for (const hlo_instr *instr = comp->first; instr && list.count < count;
         instr = hlo_instr_next(instr)) {
        list.call = instr;
        hlo_instr_visit_called(instr, add_edge, &list);
    }
    return (call_frame){comp, list.edges, list.edges + count};
}

/* Emits notes about the calls of the path from `comp` to the last computation. */
static void note_async_pair(verifier *v, const call_frame *path, size_t depth,
                            const hlo_computation *comp) {
    enum { MOST = 8 };
    size_t from = depth;
    while (path[--from].comp != comp) {
    }
    hlo_verify_note(v, comp->offset, "%%%s is declared here", comp->name);
    for (size_t i = from; i + 1 < depth && i < from + MOST; i++) {
        const call_edge *edge = path[i].next - 1;
        hlo_verify_note(v, edge->call->offset, "%%%s in %%%s calls %%%s", edge->call->name,
                        path[i].comp->name, edge->called->name);
    }
    if (depth - from > MOST + 1)
        hlo_verify_note(v, path[depth - 1].comp->offset, "... up to %%%s",
                        path[depth - 1].comp->name);
}

/* Checks that an asynchronous computation is one operation on its parameters, or contains only
 * sends and receives. */
static void check_started(verifier *v, const call_edge *edge) {
    if (edge->call->op != HLO_OP_ASYNC_START) return;
    const hlo_instr *other = NULL;
    bool transfers = true;
    for (const hlo_instr *instr = edge->called->first; instr; instr = hlo_instr_next(instr)) {
        transfers &= instr->op == HLO_OP_SEND || instr->op == HLO_OP_RECV ||
                     instr->op == HLO_OP_BITCAST || instr->op == HLO_OP_TUPLE ||
                     instr->op == HLO_OP_PARAMETER;
        if (instr != edge->called->root && instr->op != HLO_OP_PARAMETER && !other) other = instr;
    }
    if (!other || transfers) return;
    hlo_verify_error(v, edge->call->offset,
                     "%%%s starts %%%s, which has an operation other than its root",
                     edge->call->name, edge->called->name);
    hlo_verify_note(v, other->offset, "%%%s is declared here", other->name);
}

/* Checks that no computation calls itself, directly or indirectly, by an iterative depth-first
 * search over the calls. */
static void check_calls(verifier *v) {
    const hlo_module *m = v->module;
    enum { NEW, ON_PATH, DONE };
    uint8_t *state = hlo_arena_zero(v->scratch, m->next_computation_id);
    const hlo_instr **callers =
        hlo_arena_zero(v->scratch, 2 * (size_t)m->next_computation_id * sizeof *callers);
    call_frame *path =
        hlo_arena_array(v->scratch, (size_t)m->next_computation_id + 1, sizeof *path);
    for (const hlo_computation *start = m->first; start; start = start->next) {
        size_t depth = 0;
        if (state[start->id] == NEW) path[depth++] = frame_of(v, start);
        while (depth) {
            call_frame *frame = &path[depth - 1];
            state[frame->comp->id] = ON_PATH;
            if (frame->next == frame->end) {
                state[frame->comp->id] = DONE;
                depth--;
                continue;
            }
            const call_edge *edge = frame->next++;
            /* A fused computation has one caller, and an asynchronous one has one start. */
            const bool starts = edge->call->op == HLO_OP_ASYNC_START;
            const hlo_instr **first = &callers[2 * edge->called->id + starts];
            if (hlo_op_is(edge->call->op, HLO_SOLE_CALLER) && !*first) *first = edge->call;
            if (hlo_op_is(edge->call->op, HLO_SOLE_CALLER) && *first != edge->call) {
                hlo_verify_error(v, edge->call->offset,
                                 "%%%s calls %%%s, but %%%s already calls it: %s", edge->call->name,
                                 edge->called->name, (*first)->name,
                                 starts ? "an asynchronous computation has exactly one start"
                                        : "a fused computation has exactly one fusion");
                hlo_verify_note(v, (*first)->offset, "%%%s is declared here", (*first)->name);
            }
            check_started(v, edge);
            const hlo_op op = edge->call->op;
            const char *here = hlo_computation_thread(edge->call->parent);
            const char *there = hlo_computation_thread(edge->called);
            if ((op == HLO_OP_FUSION || op == HLO_OP_WHILE || op == HLO_OP_CONDITIONAL) &&
                strcmp(here, there) != 0) {
                hlo_verify_error(v, edge->call->offset,
                                 "%s %%%s is on the thread \"%s\", but calls %%%s on \"%s\"",
                                 hlo_ops[op].name, edge->call->name, here, edge->called->name,
                                 there);
                hlo_verify_note(v, edge->called->offset, "%%%s is declared here",
                                edge->called->name);
            }
            if (edge->called == m->entry) {
                hlo_verify_error(v, edge->call->offset, "%%%s calls the entry computation",
                                 edge->call->name);
                hlo_verify_note(v, m->entry->offset, "%%%s is declared here", m->entry->name);
            } else if (state[edge->called->id] == ON_PATH) {
                hlo_verify_error(v, edge->call->offset,
                                 "%%%s calls %%%s, which calls itself, directly or indirectly",
                                 edge->call->name, edge->called->name);
                note_async_pair(v, path, depth, edge->called);
            } else if (state[edge->called->id] == NEW) {
                path[depth++] = frame_of(v, edge->called);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------- channels */

static int by_channel(const void *a, const void *b) {
    const hlo_instr *x = *(const hlo_instr *const *)a, *y = *(const hlo_instr *const *)b;
    int64_t p = hlo_instr_int(x, HLO_ATTR_CHANNEL_ID, 0);
    int64_t q = hlo_instr_int(y, HLO_ATTR_CHANNEL_ID, 0);
    return p != q ? (p > q) - (p < q) : (x->offset > y->offset) - (x->offset < y->offset);
}

bool hlo_verify_is_host_transfer(const hlo_instr *instr) {
    return (instr->op == HLO_OP_SEND || instr->op == HLO_OP_RECV) &&
           hlo_instr_int(instr, HLO_ATTR_IS_HOST_TRANSFER, 0) &&
           hlo_instr_int(instr, HLO_ATTR_CHANNEL_ID, 0) > 0;
}

/* ----------------------------------------------------------------------------- header and entry */

static void check_entry_layout(verifier *v) {
    const hlo_computation *entry = v->module->entry;
    const hlo_attr *attr = header_attr(v, HLO_ATTR_ENTRY_COMPUTATION_LAYOUT);
    if (!attr || !entry->root) return;
    const hlo_shapes *layout = attr->u.shapes;
    uint32_t stands = header_offset(v, attr->id);
    if (layout->count != entry->parameter_count + 1) {
        hlo_verify_error(v, entry->offset,
                         "entry_computation_layout has %u parameters, but %%%s has %u",
                         layout->count - 1, entry->name, entry->parameter_count);
        hlo_verify_note(v, stands, "entry_computation_layout is declared here");
        return;
    }
    for (uint32_t i = 0; i < layout->count; i++) {
        const hlo_instr *instr = i < entry->parameter_count ? entry->parameters[i] : entry->root;
        if (!instr) continue;
        hlo_verify_shape(v, instr->offset, layout->v[i], "entry_computation_layout:");
        if (hlo_shape_compatible(layout->v[i], instr->shape)) continue;
        hlo_verify_error(v, instr->offset, "entry_computation_layout has %s, but %%%s is %s",
                         hlo_verify_text(v, layout->v[i]), instr->name,
                         hlo_verify_text(v, instr->shape));
        hlo_verify_note(v, stands, "entry_computation_layout is declared here");
    }
}

/* Checks an alias or a buffer donor of the header. Returns false if the part of the parameter does
 * not exist. */
static bool check_alias(verifier *v, hlo_attr_id id, const hlo_alias *a) {
    const hlo_computation *entry = v->module->entry;
    const char *name = hlo_attrs_info[id].name;
    const uint32_t offset = header_offset(v, id);
    const hlo_instr *parameter =
        a->number >= 0 && a->number < entry->parameter_count ? entry->parameters[a->number] : NULL;
    const hlo_shape *part = parameter ? parameter->shape : NULL, *result = entry->root->shape;
    int64_t missing;
    if (!parameter || !hlo_verify_step(&part, a->part, &missing)) {
        hlo_verify_error(v, offset, "%s: %s: %%%s does not have this parameter or part", name,
                         a->text, entry->name);
        hlo_verify_note(v, entry->offset, "%%%s is declared here", entry->name);
        return false;
    }
    if (!a->output) return true;
    if (!hlo_verify_step(&result, a->output, &missing)) {
        hlo_verify_error(v, offset, "%s: %s: %%%s returns %s, which does not have this element",
                         name, a->text, entry->name, hlo_verify_text(v, entry->root->shape));
        hlo_verify_note(v, entry->root->offset, "%%%s is declared here", entry->root->name);
    } else if (hlo_shape_bytes(result) != hlo_shape_bytes(part)) {
        hlo_verify_error(v, offset, "%s: %s: the parameter is %s, but the result is %s", name,
                         a->text, hlo_verify_text(v, part), hlo_verify_text(v, result));
        hlo_verify_note(v, parameter->offset, "%%%s is declared here", parameter->name);
    }
    return true;
}

static int compare_ints(const hlo_ints *a, const hlo_ints *b) {
    for (uint32_t i = 0; i < a->count && i < b->count; i++)
        if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
    return (a->count > b->count) - (a->count < b->count);
}

static int by_part(const void *a, const void *b) {
    const hlo_alias *x = *(const hlo_alias *const *)a, *y = *(const hlo_alias *const *)b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return compare_ints(x->part, y->part);
}

/* Checks that no output and no part of a parameter is aliased or donated twice. */
static void check_aliases(verifier *v) {
    static const hlo_attr_id ids[] = {HLO_ATTR_INPUT_OUTPUT_ALIAS, HLO_ATTR_BUFFER_DONOR};
    const hlo_alias **given = NULL;
    size_t count = 0;
    for (size_t k = 0; k < 2 && v->module->entry->root; k++) {
        const hlo_attr *attr = header_attr(v, ids[k]);
        const uint32_t more = attr ? attr->u.aliases->count : 0;
        const hlo_alias **all = hlo_arena_array(v->scratch, count + more, sizeof *all);
        if (count) memcpy(all, given, count * sizeof *all);
        given = all;
        for (uint32_t i = 0; i < more; i++) {
            const hlo_alias *a = &attr->u.aliases->v[i];
            if (i && a->output && compare_ints(a->output, a[-1].output) == 0)
                hlo_verify_error(v, header_offset(v, ids[k]),
                                 "input_output_alias aliases output %.*s twice",
                                 (int)strcspn(a->text, ":"), a->text);
            if (check_alias(v, ids[k], a)) given[count++] = a;
        }
    }
    if (count) qsort(given, count, sizeof *given, by_part);
    for (size_t i = 1; i < count; i++) {
        const bool output = given[i]->output, other = given[i - 1]->output;
        if (by_part(&given[i], &given[i - 1]) != 0 || (!output && !other)) continue;
        const hlo_instr *parameter = v->module->entry->parameters[given[i]->number];
        hlo_verify_error(v, header_offset(v, HLO_ATTR_INPUT_OUTPUT_ALIAS),
                         "input_output_alias aliases parameter %" PRId64 "%s", given[i]->number,
                         output && other ? " twice" : ", which buffer_donor also donates");
        hlo_verify_note(v, parameter->offset, "%%%s is declared here", parameter->name);
    }
}

void hlo_verify_module(verifier *v) {
    const hlo_module *m = v->module;
    /* Names differ if each is bound to the computation, and the instruction, that has it. */
    bool comps_differ = true, instrs_differ = true;
    for (const hlo_computation *comp = m->first; comp; comp = comp->next)
        comps_differ = comps_differ && hlo_intern_cache((hlo_module *)m, comp->name)->comp == comp;
    if (!comps_differ) {
        named *names = hlo_arena_array(v->scratch, m->next_computation_id, sizeof *names);
        size_t count = 0;
        for (const hlo_computation *comp = m->first; comp; comp = comp->next)
            names[count++] = (named){comp->name, comp->offset};
        check_names(v, names, count, "computations");
    }
    for (const hlo_computation *comp = m->first; comp && instrs_differ; comp = comp->next)
        for (const hlo_instr *i = comp->first; i && instrs_differ; i = hlo_instr_next(i))
            instrs_differ = hlo_intern_binding(i->name).instr == i;
    if (!instrs_differ) {
        named *names = hlo_arena_array(v->scratch, m->next_id, sizeof *names);
        size_t count = 0;
        for (const hlo_computation *comp = m->first; comp; comp = comp->next)
            for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
                names[count++] = (named){instr->name, instr->offset};
        check_names(v, names, count, "instructions");
    }
    check_calls(v);
    /* Check that host transfers on the same channel have the same opcode and shape. */
    if (v->host_transfers) {
        const hlo_instr **all = hlo_arena_array(v->scratch, v->host_transfers, sizeof *all);
        size_t count = 0;
        for (const hlo_computation *comp = v->module->first; comp; comp = comp->next)
            for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
                if (hlo_verify_is_host_transfer(instr)) all[count++] = instr;
        qsort(all, count, sizeof *all, by_channel);
        for (size_t i = 1; i < count; i++) {
            int64_t channel = hlo_instr_int(all[i], HLO_ATTR_CHANNEL_ID, 0);
            if (channel != hlo_instr_int(all[i - 1], HLO_ATTR_CHANNEL_ID, 0) ||
                (all[i]->op == all[i - 1]->op &&
                 hlo_shape_compatible(all[i]->shape, all[i - 1]->shape)))
                continue;
            hlo_verify_error(v, all[i]->offset,
                             "channel %" PRId64 " is already used by %s %%%s of shape %s", channel,
                             hlo_ops[all[i - 1]->op].name, all[i - 1]->name,
                             hlo_verify_text(v, all[i - 1]->shape));
            hlo_verify_note(v, all[i - 1]->offset, "%%%s is declared here", all[i - 1]->name);
        }
    }
    if (!v->module->entry) {
        hlo_verify_error(v, 0, "the module has no entry computation");
        return;
    }
    check_entry_layout(v);
    check_aliases(v);
}
