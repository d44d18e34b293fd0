/* Values that name devices as text, in XLA's form. */
#include "ir/text/print_devices.h"

static void put_numbers(hlo_printer *o, const hlo_ints *ints) {
    for (uint32_t i = 0; i < ints->count; i++) {
        if (i) hlo_put_char(o, ',');
        hlo_put_int(o, ints->v[i]);
    }
}

/* `[4,2]T(1,0)`, or `0,2,1,3` */
static void put_places(hlo_printer *o, const hlo_device_array *d) {
    if (d->listed) {
        put_numbers(o, d->listed);
        return;
    }
    hlo_put_char(o, '[');
    put_numbers(o, d->iota);
    hlo_put_char(o, ']');
    if (!d->order) return;
    HLO_PUT(o, "T(");
    put_numbers(o, d->order);
    hlo_put_char(o, ')');
}

static void put_axis_name(hlo_printer *o, const char *name) {
    hlo_put_char(o, '\'');
    for (size_t i = 0; i < hlo_intern_length(name); i++) {
        if (strchr("'\\", name[i])) hlo_put_char(o, '\\'); /* NUL is one of them */
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
    hlo_put_char(o, '}');
}

static void put_listed(hlo_printer *o, const hlo_groups *g) {
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
}

void hlo_put_groups(hlo_printer *o, const void *groups) {
    const hlo_groups *g = groups;
    if (g->sizes) {
        put_listed(o, g);
    } else if (g->mesh.names) {
        put_mesh(o, &g->mesh);
        hlo_put_char(o, ' ');
        put_axes(o, &g->mesh, g->axes, ",");
    } else {
        hlo_put_char(o, '[');
        put_numbers(o, g->mesh.devices.dims);
        HLO_PUT(o, "]<=");
        put_places(o, &g->mesh.devices);
    }
}
