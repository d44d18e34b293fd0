/* SPDX-License-Identifier: Apache-2.0 */
/* Prints attributes, including values that are parsed into structs, in XLA's form. */
#include "ir/device_list.h"
#include "ir/float/float.h"
#include "ir/text/printer.h"

static void put_list(hlo_printer *o, const char *open, const hlo_ints *ints, const char *close) {
    hlo_put_string(o, open);
    for (uint32_t i = 0; i < ints->count; i++) {
        if (i) hlo_put_char(o, ',');
        hlo_put_int(o, ints->v[i]);
    }
    hlo_put_string(o, close);
}

/* Writes `[4,2]T(1,0)`, or `0,2,1,3`. */
static void put_places(hlo_printer *o, const hlo_device_array *d) {
    if (d->listed) put_list(o, "", d->listed, "");
    if (d->iota) put_list(o, "[", d->iota, "]");
    if (d->order) put_list(o, "T(", d->order, ")");
}

/* Writes `[2,4]<=[8]`, or `[2,2]0,2,1,3`. */
static void put_array(hlo_printer *o, const hlo_device_array *d) {
    put_list(o, "[", d->dims, d->iota ? "]<=" : "]");
    put_places(o, d);
}

static void put_axis_name(hlo_printer *o, const char *name) {
    hlo_put_char(o, '\'');
    for (size_t i = 0; i < hlo_intern_length(name); i++) {
        if (strchr("'\\", name[i])) hlo_put_char(o, '\\'); /* strchr() also finds NUL */
        hlo_put_char(o, name[i] ? name[i] : '0');
    }
    hlo_put_char(o, '\'');
}

static void put_mesh(hlo_printer *o, const hlo_mesh *m) {
    HLO_PUT(o, "mesh[");
    for (uint32_t i = 0; i < m->devices.dims->count; i++) {
        if (i) hlo_put_char(o, ',');
        put_axis_name(o, m->names[i]);
        hlo_put_char(o, '=');
        hlo_put_int(o, m->devices.dims->v[i]);
    }
    hlo_put_char(o, ']');
    if (!m->devices.listed && !m->devices.iota) return;
    HLO_PUT(o, ", device_ids=(");
    put_places(o, &m->devices);
    hlo_put_char(o, ')');
}

static void put_axes(hlo_printer *o, const hlo_mesh *m, const hlo_axes *axes, const char *between) {
    hlo_put_char(o, '{');
    for (uint32_t i = 0; i < axes->count; i++) {
        const hlo_axis *a = &axes->v[i];
        if (i) hlo_put_string(o, between);
        put_axis_name(o, m->names[a->axis]);
        if (a->size == m->devices.dims->v[a->axis]) continue;
        HLO_PUT(o, ":(");
        hlo_put_int(o, a->before);
        hlo_put_char(o, ')');
        hlo_put_int(o, a->size);
    }
    if (axes->open) hlo_put_string(o, axes->count ? ", ?" : "?");
    hlo_put_char(o, '}');
}

void hlo_put_groups(hlo_printer *o, const void *groups) {
    const hlo_groups *g = groups;
    if (g->sizes) {
        const int64_t *device = g->mesh.devices.listed->v;
        hlo_put_char(o, '{');
        for (uint32_t i = 0; i < g->sizes->count; i++) {
            hlo_put_string(o, i ? ",{" : "{");
            for (int64_t k = 0; k < g->sizes->v[i]; k++) {
                if (k) hlo_put_char(o, ',');
                hlo_put_int(o, *device++);
            }
            hlo_put_char(o, '}');
        }
        hlo_put_char(o, '}');
    } else if (g->mesh.names) {
        put_mesh(o, &g->mesh);
        hlo_put_char(o, ' ');
        put_axes(o, &g->mesh, g->axes, ",");
    } else {
        put_array(o, &g->mesh.devices);
    }
}

/* Writes `mesh['a'=2], [{'a'}], manual={'b'}`. */
static void put_named(hlo_printer *o, const hlo_sharding *s) {
    put_mesh(o, &s->mesh);
    HLO_PUT(o, ", ");
    if (s->kind != HLO_SHARDING_NAMED) {
        hlo_put_string(o, hlo_sharding_words[s->kind]);
        return;
    }
    hlo_put_char(o, '[');
    for (uint32_t i = 0; i < s->count; i++) {
        if (i) HLO_PUT(o, ", ");
        put_axes(o, &s->mesh, s->dims[i], ", ");
    }
    hlo_put_char(o, ']');
    for (size_t i = 0; i < HLO_SHARDING_SETS; i++) {
        if (!s->sets[i]) continue;
        HLO_PUT(o, ", ");
        hlo_put_string(o, hlo_sharding_words[hlo_sharding_sets[i]]);
        hlo_put_char(o, '=');
        if (hlo_sharding_sets[i] == HLO_SHARDING_UNREDUCED && s->reduction)
            hlo_put_string(o, s->reduction);
        put_axes(o, &s->mesh, s->sets[i], ", ");
    }
}

void hlo_put_sharding(hlo_printer *o, const void *sharding) {
    const hlo_sharding *s = sharding;
    const bool maximal_mesh = s->kind == HLO_SHARDING_MAXIMAL_MESH;
    if (s->kind >= HLO_SHARDING_TUPLE) {
        const bool domain = s->kind == HLO_SHARDING_DOMAIN;
        hlo_put_string(o, domain ? "{kind=\"sharding\", entry=" : "{");
        for (uint32_t i = 0; i < s->count; i++) {
            if (i) hlo_put_string(o, domain ? ", exit=" : ", ");
            hlo_put_sharding(o, s->v[i]);
        }
        hlo_put_char(o, '}');
        return;
    }
    hlo_put_char(o, '{');
    if (s->mesh.names)
        put_named(o, s);
    else if (s->kind == HLO_SHARDING_TILED) {
        HLO_PUT(o, "devices=");
        put_array(o, &s->mesh.devices);
        const uint32_t kinds = s->kinds ? s->kinds->count : 0;
        const bool replicate = kinds == 1 && s->kinds->v[0] == HLO_SHARDING_REPLICATED;
        if (replicate) HLO_PUT(o, " last_tile_dim_replicate");
        for (uint32_t i = 0; i < kinds && !replicate; i++) {
            hlo_put_string(o, i ? ", " : " last_tile_dims={");
            hlo_put_string(o, hlo_sharding_words[s->kinds->v[i]]);
        }
        if (s->kinds && !replicate) hlo_put_char(o, '}');
    } else
        hlo_put_string(o, maximal_mesh ? "maximal_mesh[device_id=" : hlo_sharding_words[s->kind]);
    if (s->kind == HLO_SHARDING_MAXIMAL) HLO_PUT(o, " device=");
    if (maximal_mesh || s->kind == HLO_SHARDING_MAXIMAL) hlo_put_int(o, s->device);
    if (maximal_mesh) hlo_put_char(o, ']');
    if (s->group) {
        HLO_PUT(o, " shard_");
        hlo_put_string(o, s->group);
        hlo_put_char(o, ' ');
        hlo_put_int(o, s->group_id);
    }
    if (s->metadata && o->options->metadata) {
        hlo_put_string(o, maximal_mesh || s->mesh.names ? ", metadata=" : " metadata=");
        hlo_put_interned(o, s->metadata);
    }
    hlo_put_char(o, '}');
}

void hlo_put_alias(hlo_printer *o, const void *alias) {
    const hlo_alias *a = alias;
    if (a->output) put_list(o, "{", a->output, "}: ");
    hlo_put_char(o, '(');
    hlo_put_int(o, a->number);
    put_list(o, ", {", a->part, "}");
    if (a->mode) {
        HLO_PUT(o, ", ");
        hlo_put_string(o, a->mode);
        HLO_PUT(o, "-alias");
    }
    hlo_put_char(o, ')');
}

void hlo_put_aliases(hlo_printer *o, const void *aliases) {
    const hlo_aliases *list = aliases;
    const bool of_module = list->count && (!list->v->output || list->v->mode);
    for (uint32_t i = 0; i < list->count; i++) {
        hlo_put_string(o, i ? ", " : of_module ? "{ " : "{");
        hlo_put_interned(o, list->v[i].text);
    }
    if (list->count) hlo_put_string(o, of_module ? " }" : "}");
}

/* Writes a literal with its shape before each array. */
static void put_shaped_literal(hlo_printer *o, const hlo_literal *literal) {
    if (literal->shape->type != HLO_TYPE_TUPLE || literal->elided) {
        hlo_put_shape(o, literal->shape, true);
        hlo_put_char(o, ' ');
        hlo_put_literal(o, literal);
        return;
    }
    HLO_PUT(o, "( ");
    for (uint32_t i = 0; i < literal->shape->rank; i++) {
        if (i) HLO_PUT(o, ", ");
        put_shaped_literal(o, literal->elements[i]);
    }
    HLO_PUT(o, " )");
}

/* Writes a list, sizes, slices or padding. If one dimension needs a stride or interior padding,
 * writes it for all dimensions. */
static void put_ints(hlo_printer *o, const hlo_attr *attr) {
    const hlo_attr_kind kind = hlo_attrs_info[attr->id].kind;
    const hlo_ints *ints = attr->u.ints;
    const bool slices = kind == HLO_KIND_SLICES, triples = slices || kind == HLO_KIND_PADDING;
    const uint32_t count = triples ? ints->count / 3 * 3 : ints->count;
    bool thirds = false;
    for (uint32_t i = 2; triples && i < count; i += 3) thirds |= ints->v[i] != slices;
    if (kind == HLO_KIND_INTS || slices) hlo_put_char(o, '{');
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t part = triples ? i % 3 : 0;
        if (part == 2 && !thirds) continue;
        if (part)
            hlo_put_char(o, slices ? ':' : '_');
        else if (i && slices)
            HLO_PUT(o, ", ");
        else if (i && kind == HLO_KIND_INTS)
            hlo_put_char(o, ',');
        else if (i)
            hlo_put_char(o, attr->id == HLO_ATTR_PAD && i % 2 ? '_' : 'x');
        if (slices && !part) hlo_put_char(o, '[');
        hlo_put_int(o, ints->v[i]);
        if (slices && part == (thirds ? 2 : 1)) hlo_put_char(o, ']');
    }
    if (kind == HLO_KIND_INTS || slices) hlo_put_char(o, '}');
}

/* Writes a sharding. Omits the metadata of domains, as XLA does. */
static void put_sharding(hlo_printer *o, const hlo_attr *attr) {
    static const hlo_print_options none = {.percent = false};
    if (attr->id != HLO_ATTR_DOMAIN && o->options->metadata) {
        hlo_put_interned(o, attr->u.parsed->text);
        return;
    }
    const hlo_print_options *options = o->options;
    o->options = &none;
    hlo_put_sharding(o, attr->u.sharding);
    o->options = options;
}

static void put_called(hlo_printer *o, const hlo_computation *comp) {
    if (o->put_called)
        o->put_called(o, comp);
    else
        hlo_put_name(o, comp->name);
}

void hlo_put_attr(hlo_printer *o, const void *of) {
    const hlo_attr *attr = of;
    /* XLA prints `calls` for the inline body of a reduce-scatter or scan. */
    const bool calls = o->options->canonical && attr->id == HLO_ATTR_TO_APPLY &&
                       (o->op == HLO_OP_REDUCE_SCATTER || o->op == HLO_OP_SCAN);
    hlo_put_string(o, hlo_attrs_info[calls ? HLO_ATTR_CALLS : attr->id].name);
    hlo_put_char(o, '=');
    switch (hlo_attrs_info[attr->id].kind) {
    case HLO_KIND_INT: hlo_put_int(o, attr->u.i); break;
    case HLO_KIND_BOOL: hlo_put_string(o, attr->u.i ? "true" : "false"); break;
    case HLO_KIND_FLOAT:
        hlo_put_float(o, HLO_TYPE_F64, hlo_float_encode(HLO_TYPE_F64, attr->u.f));
        break;
    case HLO_KIND_FORM:
    case HLO_KIND_WORD:
    case HLO_KIND_RAW: hlo_put_interned(o, attr->u.str); break;
    case HLO_KIND_GROUPS:
    case HLO_KIND_ALIASES: hlo_put_interned(o, attr->u.parsed->text); break;
    case HLO_KIND_SHARDING: put_sharding(o, attr); break;
    case HLO_KIND_STRING: hlo_put_quoted(o, attr->u.str); break;
    case HLO_KIND_INTS:
    case HLO_KIND_SIZES:
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING: put_ints(o, attr); break;
    case HLO_KIND_COMPUTATION:
        if (o->options->canonical) hlo_put_char(o, '\n');
        put_called(o, attr->u.comp);
        break;
    case HLO_KIND_COMPUTATIONS:
        hlo_put_string(o, o->options->canonical ? "{\n" : "{");
        for (uint32_t i = 0; i < attr->u.comps->count; i++) {
            if (i) hlo_put_string(o, o->options->canonical ? ",\n" : ", ");
            put_called(o, attr->u.comps->v[i]);
        }
        if (o->options->canonical) hlo_put_line(o, 0); /* not indented, as in XLA */
        hlo_put_char(o, '}');
        break;
    case HLO_KIND_INSTRS:
        hlo_put_char(o, '{');
        for (uint32_t i = 0; i < attr->u.instrs->count; i++) {
            if (i) HLO_PUT(o, ", ");
            hlo_put_instr_name(o, attr->u.instrs->v[i]);
        }
        hlo_put_char(o, '}');
        break;
    case HLO_KIND_SHAPES:
        hlo_put_char(o, '{');
        for (uint32_t i = 0; i < attr->u.shapes->count; i++) {
            if (i) HLO_PUT(o, ", ");
            hlo_put_shape(o, attr->u.shapes->v[i], true);
        }
        hlo_put_char(o, '}');
        break;
    case HLO_KIND_SHAPE: hlo_put_shape(o, attr->u.shape, true); break;
    case HLO_KIND_LITERAL: put_shaped_literal(o, attr->u.literal); break;
    case HLO_KIND_LAYOUT: {
        uint32_t parameters = attr->u.shapes->count - 1;
        HLO_PUT(o, "{(");
        for (uint32_t i = 0; i < parameters; i++) {
            hlo_put_comma(o, i);
            hlo_put_shape(o, attr->u.shapes->v[i], true);
        }
        HLO_PUT(o, ")->");
        hlo_put_shape(o, attr->u.shapes->v[parameters], true);
        hlo_put_char(o, '}');
        break;
    }
    case HLO_KIND_ATTRS:
        hlo_put_char(o, '{');
        hlo_put_attrs(o, attr->u.attrs->v, attr->u.attrs->count, "", " ");
        hlo_put_char(o, '}');
        break;
    case HLO_KIND_BYTES: break;
    }
    if (attr->id == HLO_ATTR_ORIGIN_RECOVERY_TABLE) hlo_put_char(o, '\n');
}

/* False for metadata that has only fields such as line numbers: XLA does not print such
 * metadata. */
static bool is_worth_showing(const hlo_attrs *metadata) {
    for (uint32_t i = 0; i < metadata->count; i++) switch (metadata->v[i].id) {
        case HLO_ATTR_OP_TYPE:
        case HLO_ATTR_OP_NAME:
        case HLO_ATTR_SOURCE_FILE:
        case HLO_ATTR_SCHEDULING_NAME:
        case HLO_ATTR_METADATA_PAYLOAD:
        case HLO_ATTR_STACK_FRAME_ID: return true;
        default: break;
        }
    return false;
}

/* Searches for the next attribute each time: instructions have so few attributes that sorting would
 * take longer. */
void hlo_put_attrs_between(hlo_printer *o, const hlo_attr *attrs, uint32_t count, int after,
                           int before, const char *first, const char *others) {
    bool any = false;
    for (uint32_t done = 0; done < count; done++) {
        const hlo_attr *next = NULL;
        for (uint32_t i = 0; i < count; i++)
            if ((int)attrs[i].id > after && (int)attrs[i].id < before &&
                (!next || attrs[i].id < next->id))
                next = &attrs[i];
        if (!next || hlo_attrs_info[next->id].kind == HLO_KIND_BYTES) return;
        after = (int)next->id;
        const hlo_attr_id id = next->id;
        if ((id == HLO_ATTR_METADATA &&
             (!o->options->metadata || !is_worth_showing(next->u.attrs))) ||
            (id == HLO_ATTR_BACKEND_CONFIG && !o->options->backend_config) ||
            (id == HLO_ATTR_CONTROL_PREDECESSORS && !o->options->control_predecessors))
            continue;
        hlo_put_string(o, any ? others : first);
        hlo_put_attr(o, next);
        any = true;
    }
}

void hlo_put_attrs(hlo_printer *o, const hlo_attr *attrs, uint32_t count, const char *first,
                   const char *others) {
    hlo_put_attrs_between(o, attrs, count, -1, HLO_ATTR_COUNT, first, others);
}
