/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier. Beyond the shape rules of ir/infer, it checks instructions and computations,
 * attributes that refer to operands, results and devices, calls and channels, and the module
 * header. */
#include "ir/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/device_list.h"
#include "ir/float/c_locale.h"
#include "ir/infer/infer.h"
#include "ir/intern.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/verify/context.h"

typedef struct checked {
    verifier *v;
    const hlo_instruction *instr;
    const hlo_attr *attr;
} checked;

#define COMPLAIN(c, ...)                                                                           \
    hlo_verify_error((c)->v,                                                                       \
                     hlo_verify_attr_offset((c)->v, (c)->instr->offset, (c)->attr->id, true),      \
                     __VA_ARGS__)

/* Writes the leaves of a shape to `out`, which may be NULL, and returns their number. */
static uint32_t leaves_of(const hlo_shape *shape, const hlo_shape **out) {
    uint32_t count = 0;
    if (shape->type != HLO_TYPE_TUPLE) {
        if (out) *out = shape;
        return 1;
    }
    for (uint32_t i = 0; i < shape->rank; i++)
        count += leaves_of(shape->elements[i], out ? out + count : NULL);
    return count;
}

/* ------------------------------------------------------------------------------------ shardings */

static bool check_device(const checked *c, const char *text, int64_t device) {
    const int64_t count = hlo_module_int(c->v->module, HLO_ATTR_NUM_PARTITIONS, 1);
    if (device >= 0 && (count <= 1 || device < count)) return true;
    if (count > 1)
        COMPLAIN(c, "%%%s: %s uses device %" PRId64 ", but the module has num_partitions=%" PRId64,
                 c->instr->name, text, device, count);
    else
        COMPLAIN(c, "%%%s: %s uses the negative device %" PRId64, c->instr->name, text, device);
    return false;
}

static void check_list(const checked *c, const char *text, const hlo_ints *list, int64_t wanted) {
    int64_t *devices = hlo_arena_copy(c->v->scratch, list->v, list->count * sizeof *devices);
    for (uint32_t i = 0; i < list->count; i++)
        if (!check_device(c, text, devices[i])) return;
    if (list->count != wanted) {
        COMPLAIN(c, "%%%s: %s has %" PRId64 " tiles, but lists %u devices", c->instr->name, text,
                 wanted, list->count);
        return;
    }
    qsort(devices, list->count, sizeof *devices, hlo_compare_ints);
    for (uint32_t i = 1; i < list->count; i++)
        if (devices[i] == devices[i - 1]) {
            COMPLAIN(c, "%%%s: %s lists device %" PRId64 " twice", c->instr->name, text,
                     devices[i]);
            return;
        }
}

static void check_rank(const checked *c, const char *text, const hlo_shape *shape, uint32_t rank) {
    if (!hlo_shape_is_array(shape) || shape->rank == rank) return;
    COMPLAIN(c, "%%%s: %s tiles %u dimension%s, but %s has %u", c->instr->name, text, rank,
             rank == 1 ? "" : "s", hlo_verify_text(c->v, shape), shape->rank);
}

static bool check_array(const checked *c, const hlo_sharding *s) {
    const hlo_device_array *d = &s->mesh.devices;
    const char *text = s->parsed.text, *name = c->instr->name;
    int64_t all = hlo_dims_product(d->dims->v, d->dims->count),
            named = d->iota ? hlo_dims_product(d->iota->v, d->iota->count) : all;
    const bool untiled = d->dims->count == (s->kinds ? s->kinds->count : 0) && all == 1;
    if (all < 1 || (!s->mesh.names && untiled))
        COMPLAIN(c, "%%%s: %s has %s", name, text,
                 s->mesh.names ? "an axis of size 0" : "a dimension with 0 tiles");
    else if (d->listed)
        check_list(c, text, d->listed, all);
    else if (named != all && s->mesh.names)
        COMPLAIN(c, "%%%s: %s has a mesh of %" PRId64 " devices, but lists %" PRId64, name, text,
                 all, named);
    else if (named != all)
        COMPLAIN(c, "%%%s: %s has %" PRId64 " tiles, but %" PRId64 " devices", name, text, all,
                 named);
    else if (!s->mesh.names || !d->iota)
        check_device(c, text, all - 1);
    return all >= 1;
}

static void check_one_sharding(const checked *c, const hlo_sharding *s, const hlo_shape *shape) {
    const char *text = s->parsed.text;
    if (s->kind == HLO_SHARDING_MAXIMAL || s->kind == HLO_SHARDING_MAXIMAL_MESH) {
        check_device(c, text, s->device);
    } else if (s->kind == HLO_SHARDING_TILED) {
        check_rank(c, text, shape, s->mesh.devices.dims->count - (s->kinds ? s->kinds->count : 0));
        check_array(c, s);
    } else if (s->mesh.names && check_array(c, s) && s->count) { /* a sharding without dims fits any
                                                                  * rank */
        check_rank(c, text, shape, s->count);
    }
}

/* Checks a sharding of the result, or a tuple with a sharding for each leaf of the result. */
static void check_sharding(const checked *c, const hlo_sharding *s) {
    const hlo_shape *shape = c->instr->shape;
    if (s->kind != HLO_SHARDING_TUPLE) {
        check_one_sharding(c, s, shape);
        return;
    }
    uint32_t leaves = leaves_of(shape, NULL);
    const hlo_shape **leaf = hlo_arena_array(c->v->scratch, leaves, sizeof(const hlo_shape *));
    leaves_of(shape, leaf);
    for (uint32_t i = 0; i < s->count && i < leaves; i++) check_one_sharding(c, s->v[i], leaf[i]);
    if (shape->type != HLO_TYPE_TUPLE)
        COMPLAIN(c, "%%%s: the sharding is a tuple, but the result is %s", c->instr->name,
                 hlo_verify_text(c->v, shape));
    else if (s->count != leaves && (leaves || s->count > 1))
        COMPLAIN(c, "%%%s: the sharding has %u element%s, but %s has %u", c->instr->name, s->count,
                 s->count == 1 ? "" : "s", hlo_verify_text(c->v, shape), leaves);
}

/* Returns the number of participants of a collective; *out_what names their kind. */
static int64_t members(const checked *c, const char **out_what) {
    const hlo_instruction *instr = c->instr;
    int64_t replicas = hlo_module_int(c->v->module, HLO_ATTR_REPLICA_COUNT, 1);
    int64_t count = hlo_module_int(c->v->module, HLO_ATTR_NUM_PARTITIONS, 1), all;
    bool channel = hlo_instr_int(instr, HLO_ATTR_CHANNEL_ID, 0) > 0;
    bool by_partition = instr->op != HLO_OP_ALL_REDUCE && instr->op != HLO_OP_ALL_REDUCE_START &&
                        instr->op != HLO_OP_REDUCE_SCATTER && instr->op != HLO_OP_ALL_GATHER &&
                        instr->op != HLO_OP_ALL_GATHER_START;
    if (hlo_instr_int(instr, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0)) {
        *out_what = "devices (replica_count times num_partitions)";
        return __builtin_mul_overflow(replicas, count, &all) ? 0 : all;
    }
    *out_what =
        channel && by_partition ? "partitions (num_partitions)" : "replicas (replica_count)";
    return channel && by_partition ? count : replicas;
}

/* ----------------------------------------------------------------------------- other attributes */

/* Checks that an element of the result has the shape of an operand or of a part of it. Returns
 * false if the operand does not exist. */
static bool check_operand_alias(const checked *c, const hlo_alias *a) {
    const hlo_shape *result = c->instr->shape;
    int64_t missing;
    bool there = hlo_verify_step(&result, a->output, &missing);
    if (!there)
        COMPLAIN(c, "%%%s: %s has no element %" PRId64 " for %.*s", c->instr->name,
                 hlo_verify_text(c->v, result), missing, (int)strcspn(a->text, ":"), a->text);
    if (a->number < 0 || a->number >= c->instr->operand_count) {
        COMPLAIN(c, "%%%s has %u operand%s, so operand %" PRId64 " does not exist", c->instr->name,
                 c->instr->operand_count, c->instr->operand_count == 1 ? "" : "s", a->number);
        return false;
    }
    const hlo_instruction *operand = hlo_instr_operand(c->instr, (uint32_t)a->number);
    const hlo_shape *part = operand->shape;
    if (!hlo_verify_step(&part, a->part, &missing))
        COMPLAIN(c, "%%%s: operand %" PRId64 ": %s has no element %" PRId64, c->instr->name,
                 a->number, hlo_verify_text(c->v, part), missing);
    else if (there && !hlo_shape_compatible(result, part))
        COMPLAIN(c, "%%%s: %s aliases %s of the result with %s of the operand", c->instr->name,
                 a->text, hlo_verify_text(c->v, result), hlo_verify_text(c->v, part));
    else
        return true;
    hlo_verify_note(c->v, operand->offset, "%%%s is declared here", operand->name);
    return true;
}

/* True if the value has parentheses for a tuple and braces for anything else. */
static bool origin_fits(const char **at, const hlo_shape *shape) {
    if (shape->type != HLO_TYPE_TUPLE) {
        /* Skip the braces around the origin of one array. A string in them may contain braces. */
        unsigned depth = 0;
        bool quoted = false;
        if (**at != '{') return false;
        do {
            if (**at == '"') quoted = !quoted;
            if (quoted && **at == '\\') ++*at;
            if (!quoted) depth += (**at == '{') - (unsigned)(**at == '}');
            ++*at;
        } while (depth && **at);
        return true;
    }
    if (!hlo_value_take(at, "(")) return false;
    for (uint32_t i = 0; i < shape->rank; i++)
        if ((i && !hlo_value_take(at, ", ")) || !origin_fits(at, shape->elements[i])) return false;
    return hlo_value_take(at, ")");
}

/* Checks the attributes of an instruction, except word lists and shapes. */
static void check_attrs(verifier *v, const hlo_instruction *instr) {
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        checked c = {v, instr, &instr->attrs[i]};
        const char *value = c.attr->u.str;
        switch (c.attr->id) {
        case HLO_ATTR_SHARDING: check_sharding(&c, c.attr->u.sharding); break;
        case HLO_ATTR_DOMAIN:
            for (uint32_t k = 0; k < 2; k++) check_sharding(&c, c.attr->u.sharding->v[k]);
            break;
        case HLO_ATTR_REPLICA_GROUPS: {
            /* If the header has the number of devices, groups must contain all devices. */
            const char *what;
            const hlo_groups *groups = c.attr->u.groups;
            const int64_t count = members(&c, &what);
            if (count <= 1 || instr->op == HLO_OP_COLLECTIVE_BROADCAST) break;
            if (!groups->count && hlo_instr_int(instr, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0))
                COMPLAIN(&c, "%%%s: use_global_device_ids requires replica_groups", instr->name);
            else if (groups->count && groups->devices != count)
                COMPLAIN(&c, "%%%s: %s has %" PRId64 " devices, but the module has %" PRId64 " %s",
                         instr->name, groups->parsed.text, groups->devices, count, what);
            break;
        }
        case HLO_ATTR_SOURCE_TARGET_PAIRS: {
            const char *what;
            const hlo_ints *devices = c.attr->u.groups->mesh.devices.listed;
            int64_t count = members(&c, &what);
            uint32_t j = 0;
            while (j < devices->count && devices->v[j] < count) j++;
            if (count > 1 && j < devices->count)
                COMPLAIN(&c, "%%%s: %s has device %" PRId64 ", but the module has %" PRId64 " %s",
                         instr->name, c.attr->u.groups->parsed.text, devices->v[j], count, what);
            break;
        }
        case HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING: {
            const hlo_aliases *all = c.attr->u.aliases;
            for (uint32_t d = 0; d < all->count && check_operand_alias(&c, &all->v[d]); d++)
                continue;
            break;
        }
        case HLO_ATTR_PARAMETER_REPLICATION: {
            const uint32_t leaves = leaves_of(instr->shape, NULL);
            uint32_t count = value[1] != '}'; /* number of elements of a list in braces */
            for (const char *at = value; *at; at++) count += *at == ',';
            if (instr->op != HLO_OP_PARAMETER)
                COMPLAIN(&c, "%s has no attribute 'parameter_replication'",
                         hlo_ops[instr->op].name);
            else if (count != leaves)
                COMPLAIN(&c, "%%%s: parameter_replication has %u element%s, but %s has %u leaves",
                         instr->name, count, count == 1 ? "" : "s",
                         hlo_verify_text(v, instr->shape), leaves);
            break;
        }
        case HLO_ATTR_ORIGIN: {
            const char *at = value + 1;
            if (*at != '[' && !(origin_fits(&at, instr->shape) && *at == '}'))
                COMPLAIN(&c, "%%%s: %s is not a valid origin of %s", instr->name, value,
                         hlo_verify_text(v, instr->shape));
            break;
        }
        default: break;
        }
    }
}

/* Returns the offset of a header attribute, which follows `HloModule` at the start of a line. */
static uint32_t header_offset(const verifier *v, hlo_attr_id id) {
    const char *source = v->module->source;
    static const char head[] = "HloModule";
    if (!source || v->errors.found > v->errors.most) return 0; /* no text, or not reported */
    const char *end = source + v->module->source_size, *at = source;
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

typedef struct call_edge {
    const hlo_instruction *call;
    const hlo_computation *called;
} call_edge;

typedef struct edge_list {
    call_edge *edges;
    const hlo_instruction *call;
    size_t count;
} edge_list;

static void add_edge(void *user, hlo_computation *called) {
    edge_list *list = user;
    list->edges[list->count++] = (call_edge){list->call, called};
}

/* A computation on the path of the search. */
typedef struct call_frame {
    const hlo_computation *comp;
    const call_edge *next, *end; /* the calls that remain to be followed */
} call_frame;

static call_frame frame_of(verifier *v, const hlo_computation *comp) {
    const size_t count = v->calls[comp->id];
    edge_list list = {.edges = hlo_arena_array(v->scratch, count, sizeof(call_edge))};
    for (const hlo_instruction *instr = comp->first; instr && list.count < count;
         instr = hlo_instr_next(instr)) {
        list.call = instr;
        hlo_instr_visit_called(instr, add_edge, &list);
    }
    return (call_frame){comp, list.edges, list.edges + count};
}

/* Emits notes about the calls of the path from `comp` to the last computation. */
static void note_async_pair(verifier *v, const call_frame *path, size_t depth,
                            const hlo_computation *comp) {
    enum { MAX = 8 };
    size_t from = depth;
    while (path[--from].comp != comp) {
    }
    hlo_verify_note(v, comp->offset, "%%%s is declared here", comp->name);
    for (size_t i = from; i + 1 < depth && i < from + MAX; i++) {
        const call_edge *edge = path[i].next - 1;
        hlo_verify_note(v, edge->call->offset, "%%%s in %%%s calls %%%s", edge->call->name,
                        path[i].comp->name, edge->called->name);
    }
    if (depth - from > MAX + 1)
        hlo_verify_note(v, path[depth - 1].comp->offset, "... up to %%%s",
                        path[depth - 1].comp->name);
}

/* Checks that an asynchronous computation is one operation on its parameters, or contains only
 * sends and receives. */
static void check_started(verifier *v, const call_edge *edge) {
    if (edge->call->op != HLO_OP_ASYNC_START) return;
    const hlo_instruction *other = NULL;
    bool transfers = true;
    for (const hlo_instruction *instr = edge->called->first; instr; instr = hlo_instr_next(instr)) {
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
 * search over the calls, and that callees precede their callers. */
static void check_calls(verifier *v) {
    const hlo_module *m = v->module;
    enum { NEW, ON_PATH, DONE };
    uint8_t *state = hlo_arena_zero(v->scratch, m->next_computation_id);
    const hlo_instruction **callers =
        hlo_arena_zero(v->scratch, 2 * (size_t)m->next_computation_id * sizeof *callers);
    call_frame *path =
        hlo_arena_array(v->scratch, (size_t)m->next_computation_id + 1, sizeof *path);
    const call_edge *late = NULL; /* a call of a computation that follows the caller */
    bool circle = false;
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
            /* A fused computation must have one caller, and an asynchronous computation one start.
             */
            const bool starts = edge->call->op == HLO_OP_ASYNC_START;
            const hlo_instruction **first = &callers[2 * edge->called->id + starts];
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
                circle = true;
            } else if (state[edge->called->id] == NEW) {
                late = edge;
                path[depth++] = frame_of(v, edge->called);
            }
        }
    }
    if (!late || circle) return;
    hlo_verify_error(v, late->call->offset, "%%%s calls %%%s, which must precede %%%s",
                     late->call->name, late->called->name, late->call->parent->name);
    hlo_verify_note(v, late->called->offset, "%%%s is declared here", late->called->name);
}

static int by_channel(const void *a, const void *b) {
    const hlo_instruction *x = *(const hlo_instruction *const *)a,
                          *y = *(const hlo_instruction *const *)b;
    int64_t p = hlo_instr_int(x, HLO_ATTR_CHANNEL_ID, 0);
    int64_t q = hlo_instr_int(y, HLO_ATTR_CHANNEL_ID, 0);
    return p != q ? (p > q) - (p < q) : (x->offset > y->offset) - (x->offset < y->offset);
}

/* True for a send or receive with a channel, between the host and a device. */
static bool is_host_transfer(const hlo_instruction *instr) {
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
        const hlo_instruction *instr =
            i < entry->parameter_count ? entry->parameters[i] : entry->root;
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
    const hlo_instruction *parameter =
        a->number >= 0 && a->number < entry->parameter_count ? entry->parameters[a->number] : NULL;
    const hlo_shape *part = parameter ? parameter->shape : NULL, *result = entry->root->shape;
    int64_t missing;
    if (!parameter || !hlo_verify_step(&part, a->part, &missing)) {
        hlo_verify_error(v, header_offset(v, id),
                         "%s: %s: %%%s does not have this parameter or part", name, a->text,
                         entry->name);
        hlo_verify_note(v, entry->offset, "%%%s is declared here", entry->name);
        return false;
    }
    if (!a->output) return true;
    if (!hlo_verify_step(&result, a->output, &missing)) {
        hlo_verify_error(v, header_offset(v, id),
                         "%s: %s: %%%s returns %s, which does not have this element", name, a->text,
                         entry->name, hlo_verify_text(v, entry->root->shape));
        hlo_verify_note(v, entry->root->offset, "%%%s is declared here", entry->root->name);
    } else if (hlo_shape_bytes(result) != hlo_shape_bytes(part)) {
        hlo_verify_error(v, header_offset(v, id),
                         "%s: %s: the parameter is %s, but the result is %s", name, a->text,
                         hlo_verify_text(v, part), hlo_verify_text(v, result));
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
        const hlo_instruction *parameter = v->module->entry->parameters[given[i]->number];
        hlo_verify_error(v, header_offset(v, HLO_ATTR_INPUT_OUTPUT_ALIAS),
                         "input_output_alias aliases parameter %" PRId64 "%s", given[i]->number,
                         output && other ? " twice" : ", which buffer_donor also donates");
        hlo_verify_note(v, parameter->offset, "%%%s is declared here", parameter->name);
    }
}

/* Checks names, calls, channels and the attributes of the header. Must run after the loop over all
 * instructions, which binds each instruction to its name. */
static void check_module(verifier *v) {
    const hlo_module *m = v->module;
    /* All names are different if each name is bound to the computation or instruction with this
     * name. */
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
        for (const hlo_instruction *i = comp->first; i && instrs_differ; i = hlo_instr_next(i))
            instrs_differ = hlo_intern_binding(i->name).instr == i;
    if (!instrs_differ) {
        named *names = hlo_arena_array(v->scratch, m->next_id, sizeof *names);
        size_t count = 0;
        for (const hlo_computation *comp = m->first; comp; comp = comp->next)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                names[count++] = (named){instr->name, instr->offset};
        check_names(v, names, count, "instructions");
    }
    check_calls(v);
    /* Check that host transfers on the same channel have the same opcode and shape. */
    if (v->host_transfers) {
        const hlo_instruction **all = hlo_arena_array(v->scratch, v->host_transfers, sizeof *all);
        size_t count = 0;
        for (const hlo_computation *comp = v->module->first; comp; comp = comp->next)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                if (is_host_transfer(instr)) all[count++] = instr;
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

/* Checks that `def` is in the same computation as `user` and before it. `how` is the role of `def`,
 * for the message. */
static bool check_order(verifier *v, const hlo_instruction *user, const hlo_instruction *def,
                        const char *how) {
    if (!def->parent)
        hlo_verify_error(v, user->offset, "%s %%%s of %%%s was removed", how, def->name,
                         user->name);
    else if (def->parent != user->parent)
        hlo_verify_error(v, user->offset, "%s %%%s of %%%s is in another computation, %%%s", how,
                         def->name, user->name, def->parent->name);
    else if (!v->passed[def->id])
        hlo_verify_error(v, user->offset, "%s %%%s of %%%s must be defined before it", how,
                         def->name, user->name);
    else
        return true;
    if (def->parent) hlo_verify_note(v, def->offset, "%%%s is declared here", def->name);
    return false;
}

/* ----------------------------------------------------------------------------- starts and dones */

static void note_operand(verifier *v, const hlo_instruction *instr, uint32_t number) {
    const hlo_instruction *operand = hlo_instr_operand(instr, number);
    if (operand->offset == instr->offset) return;
    for (uint32_t i = 0; i < number; i++)
        if (hlo_instr_operand(instr, i) == operand) return;
    hlo_verify_note(v, operand->offset, "operand %u, %%%s, is %s", number, operand->name,
                    hlo_verify_text(v, operand->shape));
}

/* Checks that a start has one user, a done or an update, and that the operand of a done or an
 * update is a matching start. If a start is checked in isolation, it need not have a user yet. */
static void check_async(verifier *v, const hlo_instruction *instr) {
    const uint32_t users = hlo_instr_user_count(instr);
    if (hlo_op_async_pair(instr->op, HLO_OP_INVALID) && (v->passed || users)) {
        const hlo_instruction *user = instr->uses ? instr->uses->user : NULL;
        if (users != 1) {
            hlo_verify_error(v, instr->offset, "%s %%%s has %u users, expected one that ends it",
                             hlo_ops[instr->op].name, instr->name, users);
            for (const hlo_use *use = instr->uses; use; use = use->next)
                hlo_verify_note(v, use->user->offset, "%%%s uses it here", use->user->name);
        } else if (!user) {
            hlo_verify_error(v, instr->offset, "%s %%%s is the root, so nothing ends it",
                             hlo_ops[instr->op].name, instr->name);
        } else if (!hlo_op_async_pair(instr->op, user->op)) {
            hlo_verify_error(v, instr->offset, "%s %%%s is used by %s %%%s, which does not end it",
                             hlo_ops[instr->op].name, instr->name, hlo_ops[user->op].name,
                             user->name);
            hlo_verify_note(v, user->offset, "%%%s is declared here", user->name);
        }
    }
    const hlo_instruction *start = instr->operand_count ? hlo_instr_operand(instr, 0) : NULL;
    if (start && hlo_op_async_pair(HLO_OP_INVALID, instr->op) &&
        !hlo_op_async_pair(start->op, instr->op)) {
        hlo_verify_error(v, instr->offset, "%s: operand %%%s is %s, expected a matching start",
                         hlo_ops[instr->op].name, start->name, hlo_ops[start->op].name);
        hlo_verify_note(v, start->offset, "%%%s is declared here", start->name);
    }
}

/* Checks an instruction in isolation. `sound`: its operands are defined before the instruction. */
static void check_itself(verifier *v, const hlo_instruction *instr, bool sound) {
    hlo_verify_shape(v, instr->offset, instr->shape, "shape");
    bool given[HLO_ATTR_COUNT] = {false};
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        const hlo_attr *attr = &instr->attrs[i];
        const char *name = hlo_attrs_info[attr->id].name;
        if (!hlo_op_allows(instr->op, attr->id))
            hlo_verify_error(v, instr->offset, "%s has no attribute '%s'", hlo_ops[instr->op].name,
                             name);
        if (given[attr->id]) hlo_verify_error(v, instr->offset, "attribute '%s' is repeated", name);
        given[attr->id] = true;
        const char *words = hlo_attr_values(instr->op, attr->id);
        if (words && !hlo_word_in(words, attr->u.str, strlen(attr->u.str)))
            hlo_verify_error(v, instr->offset, "%s: invalid %s '%s', expected one of%s",
                             hlo_ops[instr->op].name, name, attr->u.str, words);
    }
    check_attrs(v, instr);
    check_async(v, instr);
    if (instr->op == HLO_OP_PARAMETER) {
        const hlo_computation *comp = instr->parent;
        int64_t number = instr->u.parameter;
        if (number < 0 || number >= comp->parameter_count || comp->parameters[number] != instr)
            hlo_verify_error(v, instr->offset,
                             "%%%s: parameter number %lld of %%%s is invalid or used twice",
                             instr->name, (long long)number, comp->name);
    }
    if (instr->op == HLO_OP_CONSTANT) {
        const hlo_literal *literal = instr->u.literal;
        if (!literal)
            hlo_verify_error(v, instr->offset, "%%%s has no value", instr->name);
        else if (!hlo_shape_compatible(literal->shape, instr->shape))
            hlo_verify_error(v, instr->offset, "the value of %%%s is %s, but its shape is %s",
                             instr->name, hlo_verify_text(v, literal->shape),
                             hlo_verify_text(v, instr->shape));
    }
    char why[HLO_VERIFY_TEXT];
    uint32_t blamed;
    if (!sound || hlo_infer_check(instr, v->scratch, why, sizeof why, &blamed)) return;
    hlo_verify_error(v, instr->offset, "%s", why);
    /* Add notes about the operands; `blamed` is the operand at fault. */
    enum { MAX = 4 };
    uint32_t first = 0, count = instr->operand_count;
    while (first < count && hlo_instr_operand(instr, first)->offset != blamed) first++;
    if (first < count)
        note_operand(v, instr, first);
    else if (blamed != HLO_NOWHERE && blamed != instr->offset)
        hlo_verify_note(v, blamed, "declared here");
    for (uint32_t i = 0; i < count && i < MAX; i++)
        if (i != first) note_operand(v, instr, i);
}

static void keep_first(void *message, const hlo_diag *diag) {
    char *first = message;
    if (diag->severity == HLO_ERROR && !*first)
        snprintf(first, HLO_VERIFY_TEXT, "%s", diag->message);
}

const char *hlo_instr_fault(const hlo_instruction *instr, hlo_arena *scratch) {
    char *first = hlo_arena_zero(scratch, HLO_VERIFY_TEXT);
    const hlo_diag_sink sink = {.emit = keep_first, .user = first};
    verifier v = {.module = instr->parent->module,
                  .sink = &sink,
                  .scratch = scratch,
                  .errors = hlo_error_budget_new(1)};
    check_itself(&v, instr, true);
    return *first ? first : NULL;
}

static void count_call(void *count, hlo_computation *called) {
    (void)called;
    ++*(size_t *)count;
}

/* ----------------------------------------------------------------------------- the whole module */

hlo_status hlo_module_verify(const hlo_module *module, const hlo_verify_options *options,
                             const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    hlo_verify_options own = {.max_errors = 0};
    if (hlo_options_take("hlo_verify_options", &own, sizeof own, options, sink) != HLO_OK)
        return HLO_INVALID_USAGE;
    jmp_buf recover;
    hlo_arena *scratch = hlo_arena_new(&recover);
    if (!scratch) return HLO_OUT_OF_MEMORY;
    /* Cast away const: inference interns shapes in the module, and changes nothing else. */
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    verifier v = {.module = module,
                  .sink = sink,
                  .scratch = scratch,
                  .errors = hlo_error_budget_new(own.max_errors)};
    if (setjmp(recover)) {
        hlo_arena_set_recover(module->arena, before);
        hlo_arena_free(scratch);
        return HLO_OUT_OF_MEMORY;
    }
    v.passed = hlo_arena_zero(scratch, module->next_id);
    v.calls = hlo_arena_zero(scratch, module->next_computation_id * sizeof *v.calls);
    /* Report deferred errors, in the order of the text. */
    size_t count = 0;
    for (const hlo_deferred_error *d = module->deferred; d; d = d->next) count++;
    const hlo_deferred_error **all = hlo_arena_array(v.scratch, count, sizeof *all);
    size_t left = count;
    for (const hlo_deferred_error *d = module->deferred; d; d = d->next) all[--left] = d;
    for (size_t i = 0; i < count; i++)
        hlo_verify_error_about(&v, all[i]->offset, all[i]->length, "%s", all[i]->message);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        for (uint32_t i = 0; i < comp->parameter_count; i++)
            if (!comp->parameters[i] || comp->parameters[i]->parent != comp)
                hlo_verify_error(&v, comp->offset, "%%%s has %u parameters, but no parameter %u",
                                 comp->name, comp->parameter_count, i);
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            hlo_arena_mark mark = hlo_arena_here(v.scratch);
            bool sound = true;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                sound &= check_order(&v, instr, hlo_instr_operand(instr, i), "operand");
            const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
            for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
                check_order(&v, instr, control->u.instrs->v[i], "control predecessor");
            check_itself(&v, instr, sound);
            hlo_arena_release(v.scratch, mark);
            v.passed[instr->id] = instr->parent == comp;
            /* Collect facts for check_module(). */
            hlo_instr_visit_called(instr, count_call, &v.calls[instr->parent->id]);
            v.host_transfers += is_host_transfer(instr);
            hlo_intern_bind(instr->name, (hlo_symbol_binding){.instr = (hlo_instruction *)instr});
        }
        if (!comp->root)
            hlo_verify_error(&v, comp->offset, "%%%s has no root", comp->name);
        else if (comp->root->parent != comp)
            hlo_verify_error(&v, comp->offset, "the root %%%s of %%%s is in another computation",
                             comp->root->name, comp->name);
    }
    check_module(&v);
    hlo_status status = hlo_error_budget_end(&v.errors, module, sink);
    hlo_arena_set_recover(module->arena, before);
    hlo_arena_free(scratch);
    ((hlo_module *)module)->verified =
        status == HLO_OK; /* `verified` is the only member that changes in a const module */
    return status;
}

hlo_status hlo_module_ensure_verified(const hlo_module *module, unsigned max_errors,
                                      const hlo_diag_sink *sink) {
    const hlo_verify_options options = {.struct_size = sizeof options, .max_errors = max_errors};
    return module->verified ? HLO_OK : hlo_module_verify(module, &options, sink);
}
