/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: attributes that refer to operands, results and devices of an instruction. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/device_list.h"
#include "ir/verify/context.h"

/* One attribute that is being checked. */
typedef struct checked {
    verifier *v;
    const hlo_instr *instr;
    const hlo_attr *attr;
} checked;

#define COMPLAIN(c, ...)                                                                           \
    hlo_verify_error((c)->v,                                                                       \
                     hlo_verify_attr_offset((c)->v, (c)->instr->offset, (c)->attr->id, true),      \
                     __VA_ARGS__)

static uint32_t leaves_of(const hlo_shape *shape) {
    uint32_t count = 0;
    if (shape->type != HLO_TYPE_TUPLE) return 1;
    for (uint32_t i = 0; i < shape->rank; i++) count += leaves_of(shape->elements[i]);
    return count;
}

/* Writes the leaves of a shape to `out`; returns the position after them. */
static const hlo_shape **put_leaves(const hlo_shape *shape, const hlo_shape **out) {
    if (shape->type != HLO_TYPE_TUPLE) {
        *out = shape;
        return out + 1;
    }
    for (uint32_t i = 0; i < shape->rank; i++) out = put_leaves(shape->elements[i], out);
    return out;
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

/* Checks that `wanted` devices are listed, each once. */
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

/* Returns the product; -1 if a factor is less than 1 or the product overflows. */
static int64_t product(const hlo_ints *ints) {
    int64_t all = 1;
    for (uint32_t i = 0; i < ints->count; i++)
        if (ints->v[i] < 1 || all < 0 || __builtin_mul_overflow(all, ints->v[i], &all)) all = -1;
    return all;
}

static void check_rank(const checked *c, const char *text, const hlo_shape *shape, uint32_t rank) {
    if (!hlo_shape_is_array(shape) || shape->rank == rank) return;
    COMPLAIN(c, "%%%s: %s tiles %u dimension%s, but %s has %u", c->instr->name, text, rank,
             rank == 1 ? "" : "s", hlo_verify_text(c->v, shape), shape->rank);
}

/* Checks the devices of a mesh, or of tiles. */
static bool check_array(const checked *c, const hlo_sharding *s) {
    const hlo_device_array *d = &s->mesh.devices;
    const char *text = s->parsed.text, *name = c->instr->name;
    int64_t all = product(d->dims), named = d->iota ? product(d->iota) : all;
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
    } else if (s->mesh.names && check_array(c, s) && s->count) { /* any rank without dims */
        check_rank(c, text, shape, s->count);
    }
}

/* Checks a sharding of the result, or one for each of its leaves. */
static void check_sharding(const checked *c, const hlo_sharding *s) {
    const hlo_shape *shape = c->instr->shape;
    if (s->kind != HLO_SHARDING_TUPLE) {
        check_one_sharding(c, s, shape);
        return;
    }
    uint32_t leaves = leaves_of(shape);
    const hlo_shape **leaf = hlo_arena_array(c->v->scratch, leaves, sizeof(const hlo_shape *));
    put_leaves(shape, leaf);
    for (uint32_t i = 0; i < s->count && i < leaves; i++) check_one_sharding(c, s->v[i], leaf[i]);
    if (shape->type != HLO_TYPE_TUPLE)
        COMPLAIN(c, "%%%s: the sharding is a tuple, but the result is %s", c->instr->name,
                 hlo_verify_text(c->v, shape));
    else if (s->count != leaves && (leaves || s->count > 1))
        COMPLAIN(c, "%%%s: the sharding has %u element%s, but %s has %u", c->instr->name, s->count,
                 s->count == 1 ? "" : "s", hlo_verify_text(c->v, shape), leaves);
}

/* --------------------------------------------------------------------------------------- groups */

/* Returns the number of participants of a collective; *out_what names their kind. */
static int64_t members(const checked *c, const char **out_what) {
    const hlo_instr *instr = c->instr;
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

/* --------------------------------------------------------------------------------------- others */

/* Checks that an element of the result has the shape of an operand or of a part of it. Returns
 * false if the operand does not exist. */
static bool check_alias(const checked *c, const hlo_alias *a) {
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
    const hlo_instr *operand = hlo_instr_operand(c->instr, (uint32_t)a->number);
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

void hlo_verify_attrs(verifier *v, const hlo_instr *instr) {
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        checked c = {v, instr, &instr->attrs[i]};
        const char *value = c.attr->u.str;
        switch (c.attr->id) {
        case HLO_ATTR_SHARDING: check_sharding(&c, c.attr->u.sharding); break;
        case HLO_ATTR_DOMAIN:
            for (uint32_t k = 0; k < 2; k++) check_sharding(&c, c.attr->u.sharding->v[k]);
            break;
        case HLO_ATTR_REPLICA_GROUPS: {
            /* Groups contain all devices, if the header has their number. */
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
            for (uint32_t d = 0; d < all->count && check_alias(&c, &all->v[d]); d++) continue;
            break;
        }
        case HLO_ATTR_PARAMETER_REPLICATION: {
            const uint32_t leaves = leaves_of(instr->shape);
            uint32_t count = value[1] != '}'; /* elements of a list in braces */
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
