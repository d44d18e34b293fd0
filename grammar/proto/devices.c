/* SPDX-License-Identifier: Apache-2.0 */
/* Converts attributes that the IR stores in structs: device groups, shardings and aliases. The
 * functions of grammar/attr/devices.h check and normalize these values, as in HLO text. */
#include "grammar/attr/devices.h"

#include <string.h>

#include "grammar/proto/proto.h"
#include "ir/intern.h"

/* The message fields of the sets in hlo_sharding_sets, in the same order. */
static const char *const sets[] = {"replicated_axes", "unreduced_axes", "manual_axes"};

/* -------------------------------------------------------------------------------------- reading */

/* Starts a value. It has no text, so errors have no position. */
static hlo_notation begin(hlo_proto *p, hlo_attr_id id) {
    return (hlo_notation){.value.id = id,
                          .module = p->module,
                          .scratch = p->scratch,
                          .from = "",
                          .at = "",
                          .end = "",
                          .out.arena = p->scratch};
}

/* Stores the value, or reports the error. */
static void finish(hlo_proto *p, const hlo_notation *f, bool made, hlo_attr *out) {
    if (!made) hlo_proto_fail(p, "%s: %s", hlo_attrs_info[out->id].name, f->why);
    out->u = f->value.u;
}

static bool fail(hlo_notation *f, const char *why) {
    return hlo_notation_fail(f, f->at, 0, "%s", why);
}

static const hlo_pb_field *field_of(const void *message, const char *name) {
    return hlo_field_find(((const hlo_pb *)message)->descriptor, name, strlen(name));
}

/* Copies the numbers of a field. */
static hlo_notation_ints list_of(hlo_notation *f, const void *message, const char *name) {
    const hlo_pb_field *field = field_of(message, name);
    hlo_notation_ints list = {.count = hlo_field_count(message, field)};
    list.v = hlo_arena_array(f->scratch, list.count, sizeof *list.v);
    for (size_t i = 0; i < list.count; i++)
        list.v[i] = hlo_field_load(field, hlo_field_element(message, field, i));
    return list;
}

static bool read_iota(hlo_notation *f, const void *message, const char *dims_name,
                      const char *order_name, hlo_iota *out) {
    hlo_notation_ints dims = list_of(f, message, dims_name),
                      order = list_of(f, message, order_name);
    return hlo_iota_make(f, f->at, &dims, &order, out);
}

static bool read_mesh(hlo_notation *f, const Xla__MeshProto *from, hlo_mesh *out) {
    hlo_mesh_axes axes = {.sizes.count = 0};
    if (!from) return fail(f, "the mesh is missing");
    for (size_t i = 0; i < from->n_axes; i++)
        if (!hlo_mesh_add(f, f->at, &axes, hlo_intern_string(f->module, from->axes[i]->name),
                          from->axes[i]->size))
            return false;
    hlo_mesh_keep(f, &axes, out);
    if (from->iota_transform) {
        hlo_iota ids;
        if (!read_iota(f, from->iota_transform, "reshape_dims", "transpose_perm", &ids))
            return false;
        if (ids.rank > 1) hlo_iota_keep(f, &ids, &out->devices);
        return true;
    }
    const hlo_notation_ints ids = {from->device_ids, from->n_device_ids};
    return !ids.count || hlo_mesh_list(f, f->at, &ids, out);
}

/* Reads a list of axes. `open`: further axes may be added to the list. `sorted`: the axes must be
 * in the order of the mesh. */
static bool read_axes(hlo_notation *f, const hlo_mesh *m, const void *message, const char *name,
                      bool open, bool sorted, hlo_axis_ref **refs, const hlo_axes **out) {
    const hlo_pb_field *field = field_of(message, name);
    Xla__AxisRefProto *const *from = hlo_field_element(message, field, 0);
    const size_t count = hlo_field_count(message, field);
    for (size_t i = 0; i < count; i++) {
        hlo_axis a = {.axis = from[i]->mesh_axis_index};
        const Xla__AxisRefProto__SubAxis *part = from[i]->sub_axis_info;
        if (a.axis < 0 || a.axis >= m->devices.dims->count)
            return hlo_notation_fail(f, f->at, 0, "mesh axis %lld does not exist",
                                     (long long)a.axis);
        if (part) a = (hlo_axis){a.axis, part->pre_size, part->size};
        if (!hlo_mesh_use(f, f->at, m, a, part != NULL, i ? &(*refs)->at : NULL, sorted, refs))
            return false;
    }
    *out = hlo_mesh_keep_axes(f, *refs, count, open);
    return true;
}

static bool read_groups(hlo_notation *f, const Xla__HloInstructionProto *from) {
    hlo_groups groups = {0};
    hlo_axis_ref *refs = NULL;
    const bool pairs = f->value.id == HLO_ATTR_SOURCE_TARGET_PAIRS;
    const Xla__IotaReplicaGroupListProto *iota = from->iota_collective_device_list;
    const Xla__MeshAxesReplicaGroupListProto *mesh = from->mesh_axes_replica_group_list;
    const Xla__CollectiveDeviceListProto *list = from->collective_device_list;
    Xla__ReplicaGroup *const *each = list ? list->replica_groups : from->replica_groups;
    const size_t count = pairs  ? from->n_source_target_pairs
                         : list ? list->n_replica_groups
                                : from->n_replica_groups;
    if (iota && !pairs) {
        int64_t dims[] = {iota->num_replica_groups, iota->num_devices_per_group};
        hlo_tiling t = {.dims = {dims, 2}};
        if (!read_iota(f, iota, "iota_reshape_dims", "iota_transpose_perm", &t.iota)) return false;
        groups.mesh.devices = hlo_tiling_keep(f, &t);
    } else if (mesh && !pairs) {
        if (!read_mesh(f, mesh->mesh, &groups.mesh) ||
            !read_axes(f, &groups.mesh, mesh, "axes", false, false, &refs, &groups.axes))
            return false;
    } else {
        hlo_notation_ints all = {0}, sizes = {0};
        for (size_t i = 0; i < count; i++) {
            const Xla__SourceTarget *pair = pairs ? from->source_target_pairs[i] : NULL;
            const int64_t two[] = {pair ? pair->source : 0, pair ? pair->target : 0};
            const int64_t size = pair ? 2 : (int64_t)each[i]->n_replica_ids;
            hlo_notation_add(f, &sizes, size);
            for (int64_t k = 0; k < size; k++)
                hlo_notation_add(f, &all, pair ? two[k] : each[i]->replica_ids[k]);
        }
        groups.sizes = hlo_notation_keep(f, &sizes);
        groups.mesh.devices.listed = hlo_notation_keep(f, &all);
    }
    return hlo_groups_keep(f, f->at, groups);
}

void hlo_groups_from_proto(hlo_proto *p, const Xla__HloInstructionProto *from, hlo_attr *out) {
    hlo_notation f = begin(p, out->id);
    finish(p, &f, read_groups(&f, from), out);
}

static bool read_named(hlo_notation *f, const Xla__NamedShardingProto *from, hlo_sharding *s) {
    hlo_axis_ref *refs = NULL;
    const Xla__MeshProto *mesh = from->mesh;
    if (mesh && !mesh->n_axes && !mesh->iota_transform && mesh->n_device_ids) {
        s->kind = HLO_SHARDING_MAXIMAL_MESH;
        s->device = mesh->device_ids[0];
        return mesh->n_device_ids == 1 || fail(f, "a maximal sharding has exactly one device");
    }
    s->kind = HLO_SHARDING_NAMED;
    s->count = (uint32_t)from->n_dim_shardings;
    s->dims = hlo_arena_array(f->module->arena, s->count, sizeof *s->dims);
    if (!read_mesh(f, mesh, &s->mesh)) return false;
    for (uint32_t i = 0; i < s->count; i++) {
        const Xla__NamedShardingProto__DimensionSharding *dim = from->dim_shardings[i];
        if (!read_axes(f, &s->mesh, dim, "axes", !dim->is_closed, false, &refs, &s->dims[i]))
            return false;
    }
    for (size_t n = 0; n < HLO_SHARDING_SETS; n++) {
        if (!read_axes(f, &s->mesh, from, sets[n], false, true, &refs, &s->sets[n])) return false;
        if (!s->sets[n]->count) s->sets[n] = NULL;
    }
    if (!s->count) hlo_sharding_drop_sets(s);
    return true;
}

/* The kinds of shardings, indexed by OpSharding.Type. */
static const hlo_sharding_kind kinds[] = {
    HLO_SHARDING_REPLICATED, HLO_SHARDING_MAXIMAL, HLO_SHARDING_TUPLE,    HLO_SHARDING_TILED,
    HLO_SHARDING_MANUAL,     HLO_SHARDING_UNKNOWN, HLO_SHARDING_UNREDUCED};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool kind_of(hlo_notation *f, int64_t type, hlo_sharding_kind last, hlo_sharding_kind *out) {
    if (type >= 0 && type < KINDS && (*out = kinds[type]) <= last) return true;
    return hlo_notation_fail(f, f->at, 0, "sharding type %lld is invalid here", (long long)type);
}

static bool read_numbered(hlo_notation *f, const Xla__OpSharding *from, hlo_sharding *s) {
    hlo_sharding_parts parts = {.from = f->at};
    hlo_tiling *t = &parts.tiles;
    if (!kind_of(f, from->type, HLO_SHARDING_TILED, &s->kind)) return false;
    if (s->kind == HLO_SHARDING_MAXIMAL || s->kind == HLO_SHARDING_TILED) {
        t->dims = list_of(f, from, "tile_assignment_dimensions");
        t->devices = list_of(f, from, "tile_assignment_devices");
        parts.devices = t->devices.count;
        if (parts.devices) s->device = t->devices.v[0];
    }
    if (s->kind == HLO_SHARDING_TILED) {
        if (from->n_iota_reshape_dims &&
            !read_iota(f, from, "iota_reshape_dims", "iota_transpose_perm", &t->iota))
            return false;
        parts.last_replicated = from->replicate_on_last_tile_dim;
        parts.last_kinds = from->n_last_tile_dims;
        for (size_t i = 0; i < from->n_last_tile_dims; i++) {
            hlo_sharding_kind kind = HLO_SHARDING_TILED;
            if (t->kind_count == HLO_MAX_TILE_KINDS) return fail(f, "too many last_tile_dims");
            if (!kind_of(f, from->last_tile_dims[i], HLO_SHARDING_REPLICATED, &kind)) return false;
            t->kinds[t->kind_count++] = kind;
        }
    }
    if (from->is_shard_group) {
        s->group = from->shard_group_type == Xla__OpSharding__ShardGroupType__AS ? "as" : "like";
        s->group_id = from->shard_group_id;
    }
    return hlo_sharding_join(f, &parts, s);
}

static bool read_one(hlo_proto *p, hlo_notation *f, const Xla__OpSharding *from) {
    hlo_sharding s = {.count = 0};
    const Xla__NamedShardingProto *named = from->named_sharding;
    hlo_bytes metadata = {.arena = p->scratch}; /* the IR stores metadata as text */
    if (!(named ? read_named(f, named, &s) : read_numbered(f, from, &s))) return false;
    hlo_text_pattern_print(p, &metadata, named ? &named->base : &from->base,
                           "@metadata`{$metadata|, |}`");
    if (metadata.size) {
        f->from = f->at = metadata.v;
        f->end = metadata.v + metadata.size;
        if (!hlo_sharding_read_metadata(f, named != NULL, &s)) return false;
    }
    return hlo_sharding_keep(f, HLO_ATTR_SHARDING, s);
}

static bool read_sharding(hlo_proto *p, hlo_notation *f, const Xla__OpSharding *from);

/* Reads a domain, or a tuple whose elements are not tuples. */
static bool read_several(hlo_proto *p, hlo_notation *f, hlo_sharding_kind kind, size_t count,
                         Xla__OpSharding *const *from) {
    const bool domain = kind == HLO_SHARDING_DOMAIN;
    hlo_sharding s = {.kind = kind, .count = (uint32_t)count};
    s.v = hlo_arena_array(f->module->arena, count, sizeof *s.v);
    for (size_t i = 0; i < count; i++) {
        if (!(domain ? read_sharding(p, f, from[i]) : read_one(p, f, from[i]))) return false;
        s.v[i] = f->value.u.sharding;
    }
    return hlo_sharding_keep(f, domain ? HLO_ATTR_DOMAIN : HLO_ATTR_SHARDING, s);
}

static bool read_sharding(hlo_proto *p, hlo_notation *f, const Xla__OpSharding *from) {
    if (!from) return fail(f, "a side of the domain is missing");
    if (from->named_sharding || from->type != Xla__OpSharding__Type__TUPLE)
        return read_one(p, f, from);
    return read_several(p, f, HLO_SHARDING_TUPLE, from->n_tuple_shardings, from->tuple_shardings);
}

bool hlo_sharding_from_proto(hlo_proto *p, const Xla__HloInstructionProto *from, hlo_attr *out) {
    hlo_notation f = begin(p, out->id);
    const bool domain = out->id == HLO_ATTR_DOMAIN;
    /* XLA prints the exit sharding of a domain as its entry, and the entry sharding as its exit. */
    Xla__OpSharding *const sides[] = {from->domain_exit_sharding, from->domain_entry_sharding};
    if (!(domain ? sides[1] : from->sharding)) return false;
    finish(p, &f,
           domain ? read_several(p, &f, HLO_SHARDING_DOMAIN, 2, sides)
                  : read_sharding(p, &f, from->sharding),
           out);
    return true;
}

/* Every alias message has the fields for the index of the output, the number and the index of the
 * input, and the mode, in this order. Buffer donors have no output, and only the module's aliases
 * have a mode. */
void hlo_aliases_from_proto(hlo_proto *p, const hlo_pb *message, const hlo_pb_field *field,
                            hlo_attr *out) {
    hlo_notation f = begin(p, out->id);
    hlo_alias_item *list = NULL;
    const size_t count = hlo_field_count(message, field);
    for (size_t i = 0; i < count; i++) {
        const hlo_pb *from = *(hlo_pb **)hlo_field_element(message, field, i);
        const hlo_pb_field *at = from->descriptor->fields;
        hlo_alias_item *item = hlo_arena_zero(p->scratch, sizeof *item);
        if (out->id != HLO_ATTR_BUFFER_DONOR) item->output = list_of(&f, from, at++->name);
        item->is.number = hlo_field_load(at, hlo_field_at(from, at));
        item->part = list_of(&f, from, at[1].name);
        if (out->id == HLO_ATTR_INPUT_OUTPUT_ALIAS) {
            const int64_t kind = hlo_field_load(at + 2, hlo_field_at(from, at + 2));
            item->is.mode = kind == Xla__Kind__MUST_ALIAS ? "must" : "may";
        }
        item->link.next = (hlo_notation_link *)list;
        list = item;
    }
    finish(p, &f, hlo_aliases_keep(&f, list, count), out);
}

/* -------------------------------------------------------------------------------------- writing */

static void *add_message(hlo_proto *p, void *to, const char *name) {
    return hlo_message_add(p->scratch, to, name);
}

/* Sets a list of 64-bit numbers, without copying those of the IR. */
#define SET_INTS(message, field, ints)                                                             \
    ((message)->n_##field = (ints)->count, (message)->field = (int64_t *)(uintptr_t)(ints)->v)

static void write_mesh(hlo_proto *p, const hlo_mesh *m, void *to) {
    Xla__MeshProto *mesh = add_message(p, to, "mesh");
    for (uint32_t i = 0; i < m->devices.dims->count; i++) {
        Xla__MeshProto__MeshAxis *axis = add_message(p, mesh, "axes");
        axis->name = (char *)(uintptr_t)m->names[i];
        axis->size = m->devices.dims->v[i];
    }
    if (m->devices.listed) SET_INTS(mesh, device_ids, m->devices.listed);
    if (!m->devices.iota) return;
    Xla__MeshProto__IotaTransform *iota = add_message(p, mesh, "iota_transform");
    SET_INTS(iota, reshape_dims, m->devices.iota);
    SET_INTS(iota, transpose_perm, m->devices.order);
}

static void write_axes(hlo_proto *p, const hlo_mesh *m, const hlo_axes *axes, void *to,
                       const char *name) {
    for (uint32_t i = 0; i < axes->count; i++) {
        const hlo_axis *a = &axes->v[i];
        Xla__AxisRefProto *ref = add_message(p, to, name);
        ref->mesh_axis_index = a->axis;
        if (a->size == m->devices.dims->v[a->axis]) continue;
        Xla__AxisRefProto__SubAxis *part = add_message(p, ref, "sub_axis_info");
        part->pre_size = a->before;
        part->size = a->size;
    }
}

/* Returns the permutation of an iota: the identity if the iota is not transposed. */
static int32_t *order_of(hlo_proto *p, const hlo_device_array *d) {
    int32_t *order = hlo_arena_array(p->scratch, d->iota->count, sizeof *order);
    for (uint32_t i = 0; i < d->iota->count; i++)
        order[i] = d->order ? (int32_t)d->order->v[i] : (int32_t)i;
    return order;
}

void hlo_groups_to_proto(hlo_proto *p, const hlo_attr *attr, Xla__HloInstructionProto *to) {
    const hlo_groups *g = attr->u.groups;
    const hlo_device_array *d = &g->mesh.devices;
    if (g->sizes) {
        const int64_t *device = d->listed->v;
        const bool pairs = attr->id == HLO_ATTR_SOURCE_TARGET_PAIRS;
        for (uint32_t i = 0; i < g->sizes->count; device += g->sizes->v[i++]) {
            if (pairs) {
                Xla__SourceTarget *pair = add_message(p, to, "source_target_pairs");
                *pair = (Xla__SourceTarget){pair->base, device[0], device[1]};
                continue;
            }
            if (!to->collective_device_list) add_message(p, to, "collective_device_list");
            Xla__ReplicaGroup *group = add_message(p, to->collective_device_list, "replica_groups");
            group->n_replica_ids = (size_t)g->sizes->v[i];
            group->replica_ids = (int64_t *)(uintptr_t)device;
        }
    } else if (g->mesh.names) {
        void *list = add_message(p, to, "mesh_axes_replica_group_list");
        write_mesh(p, &g->mesh, list);
        write_axes(p, &g->mesh, g->axes, list, "axes");
    } else {
        Xla__IotaReplicaGroupListProto *list = add_message(p, to, "iota_collective_device_list");
        list->num_replica_groups = d->dims->v[0];
        list->num_devices_per_group = d->dims->v[1];
        SET_INTS(list, iota_reshape_dims, d->iota);
        list->n_iota_transpose_perm = d->iota->count;
        list->iota_transpose_perm = order_of(p, d);
    }
}

static void write_named(hlo_proto *p, const hlo_sharding *s, Xla__NamedShardingProto *to) {
    if (s->kind == HLO_SHARDING_MAXIMAL_MESH) {
        Xla__MeshProto *mesh = add_message(p, to, "mesh");
        mesh->n_device_ids = 1;
        mesh->device_ids = (int64_t *)(uintptr_t)&s->device;
        return;
    }
    write_mesh(p, &s->mesh, to);
    for (uint32_t i = 0; i < s->count; i++) {
        Xla__NamedShardingProto__DimensionSharding *dim = add_message(p, to, "dim_shardings");
        dim->is_closed = !s->dims[i]->open;
        write_axes(p, &s->mesh, s->dims[i], dim, "axes");
    }
    for (size_t n = 0; n < HLO_SHARDING_SETS; n++) {
        if (s->sets[n]) write_axes(p, &s->mesh, s->sets[n], to, sets[n]);
        /* If the kind of a sharding is that of a set, the set has all axes of the mesh. A
         * replicated sharding has no such axes. */
        if (s->kind != hlo_sharding_sets[n] || s->kind == HLO_SHARDING_REPLICATED) continue;
        for (uint32_t i = 0; i < s->mesh.devices.dims->count; i++)
            ((Xla__AxisRefProto *)add_message(p, to, sets[n]))->mesh_axis_index = i;
    }
}

static Xla__OpSharding__Type type_of(hlo_sharding_kind kind) {
    int type = 0;
    while (kinds[type] != kind) type++;
    return (Xla__OpSharding__Type)type;
}

static void write_sharding(hlo_proto *p, const hlo_sharding *s, Xla__OpSharding *to) {
    void *holder = to;
    const hlo_device_array *d = &s->mesh.devices;
    if (s->reduction) hlo_proto_fail(p, "sharding=%.60s has no binary form", s->parsed.text);
    if (s->mesh.names || s->kind == HLO_SHARDING_MAXIMAL_MESH) {
        write_named(p, s, holder = add_message(p, to, "named_sharding"));
    } else {
        to->type = type_of(s->kind);
        if (s->kind == HLO_SHARDING_MAXIMAL) {
            to->n_tile_assignment_devices = 1;
            to->tile_assignment_devices = (int64_t *)(uintptr_t)&s->device;
        }
        if (d->dims) SET_INTS(to, tile_assignment_dimensions, d->dims);
        if (d->listed) SET_INTS(to, tile_assignment_devices, d->listed);
        if (d->iota) {
            SET_INTS(to, iota_reshape_dims, d->iota);
            to->n_iota_transpose_perm = d->iota->count;
            to->iota_transpose_perm = order_of(p, d);
        }
        const uint32_t count = s->kinds ? s->kinds->count : 0;
        to->replicate_on_last_tile_dim = count == 1 && s->kinds->v[0] == HLO_SHARDING_REPLICATED;
        if (!to->replicate_on_last_tile_dim) to->n_last_tile_dims = count;
        to->last_tile_dims = hlo_arena_array(p->scratch, count, sizeof *to->last_tile_dims);
        for (uint32_t i = 0; i < count; i++)
            to->last_tile_dims[i] = type_of((hlo_sharding_kind)s->kinds->v[i]);
    }
    if (s->group && holder == to) {
        to->is_shard_group = 1;
        to->shard_group_id = s->group_id;
        if (strcmp(s->group, "like") == 0)
            to->shard_group_type = Xla__OpSharding__ShardGroupType__LIKE;
    }
    for (uint32_t i = 0; s->v && i < s->count; i++)
        write_sharding(p, s->v[i], add_message(p, to, "tuple_shardings"));
    if (s->metadata && !hlo_text_pattern_read(p, s->metadata, holder, "$metadata") &&
        !hlo_text_pattern_read(p, s->metadata, holder, "{$metadata|, |}"))
        hlo_proto_fail(p, "sharding metadata %.60s has no binary form", s->metadata);
}

void hlo_sharding_to_proto(hlo_proto *p, const hlo_attr *attr, Xla__HloInstructionProto *to) {
    const hlo_sharding *s = attr->u.sharding;
    const bool domain = attr->id == HLO_ATTR_DOMAIN;
    write_sharding(p, domain ? s->v[0] : s,
                   add_message(p, to, domain ? "domain_exit_sharding" : "sharding"));
    if (domain) write_sharding(p, s->v[1], add_message(p, to, "domain_entry_sharding"));
}

static void write_ints(hlo_proto *p, const hlo_ints *ints, hlo_pb *to, const hlo_pb_field *field) {
    for (uint32_t i = 0; i < ints->count; i++)
        hlo_field_store(field, hlo_field_add(p->scratch, to, field), ints->v[i]);
}

void hlo_aliases_to_proto(hlo_proto *p, const hlo_aliases *aliases, hlo_pb *message,
                          const hlo_pb_field *field) {
    for (uint32_t i = 0; i < aliases->count; i++) {
        const hlo_alias *a = &aliases->v[i];
        hlo_pb *to = add_message(p, message, field->name);
        const hlo_pb_field *at = to->descriptor->fields;
        if (a->output) write_ints(p, a->output, to, at++);
        hlo_field_store(at, hlo_field_at(to, at), a->number);
        write_ints(p, a->part, to, at + 1);
        if (a->mode)
            hlo_field_store(at + 2, hlo_field_at(to, at + 2),
                            strcmp(a->mode, "must") == 0 ? Xla__Kind__MUST_ALIAS
                                                         : Xla__Kind__MAY_ALIAS);
    }
}
