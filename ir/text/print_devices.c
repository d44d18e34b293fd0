/* SPDX-License-Identifier: Apache-2.0 */
/* Prints values that are parsed into structs, in XLA's form. */
#include "ir/text/print_devices.h"

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
        if (strchr("'\\", name[i])) hlo_put_char(o, '\\'); /* this includes NUL */
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

/* -------------------------------------------------------------------------------------- aliases */

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
