/* SPDX-License-Identifier: Apache-2.0 */
/* Searches and changes lists of attributes. Compares attribute values with each other and with
 * their defaults, and returns their bytes. Reads metadata. */
#include <string.h>

#include "ir/intern.h"
#include "ir/ir.h"

const hlo_attr *hlo_attrs_find(const hlo_attr *attrs, uint32_t count, hlo_attr_id id) {
    for (uint32_t i = 0; i < count; i++)
        if (attrs[i].id == id) return &attrs[i];
    return NULL;
}

int hlo_compare_ints(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

bool hlo_ints_equal(const hlo_ints *a, const hlo_ints *b) {
    return a == b ||
           (a && b && a->count == b->count && !memcmp(a->v, b->v, a->count * sizeof *a->v));
}

bool hlo_literal_equal(const hlo_literal *a, const hlo_literal *b) {
    if (a == b) return true;
    if (a->shape != b->shape || a->elided || b->elided) return false;
    if (a->data) return memcmp(a->data, b->data, (size_t)hlo_shape_bytes(a->shape)) == 0;
    for (uint32_t i = 0; i < a->shape->rank; i++)
        if (!hlo_literal_equal(a->elements[i], b->elements[i])) return false;
    return true;
}

const void *hlo_attr_value(const hlo_attr *attr, size_t *out_size) {
    switch (hlo_attrs_info[attr->id].kind) {
    case HLO_KIND_INTS:
    case HLO_KIND_SIZES:
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING:
        *out_size = attr->u.ints->count * sizeof *attr->u.ints->v;
        return attr->u.ints->v;
    case HLO_KIND_COMPUTATIONS:
        *out_size = attr->u.comps->count * sizeof(hlo_computation *);
        return attr->u.comps->v;
    case HLO_KIND_SHAPES:
    case HLO_KIND_LAYOUT:
        *out_size = attr->u.shapes->count * sizeof(hlo_shape *);
        return attr->u.shapes->v;
    case HLO_KIND_GROUPS:
    case HLO_KIND_SHARDING:
    case HLO_KIND_ALIASES: *out_size = sizeof(char *); return &attr->u.parsed->text;
    case HLO_KIND_FLOAT:
    case HLO_KIND_LITERAL:
    case HLO_KIND_ATTRS: return NULL;
    default: *out_size = sizeof attr->u; return &attr->u;
    }
}

bool hlo_attr_equal(const hlo_attr *a, const hlo_attr *b) {
    const hlo_attr_kind kind = hlo_attrs_info[a->id].kind;
    if (kind != hlo_attrs_info[b->id].kind || kind == HLO_KIND_INSTRS) return false;
    if (kind == HLO_KIND_FLOAT) return a->u.f == b->u.f;
    if (kind == HLO_KIND_LITERAL) return hlo_literal_equal(a->u.literal, b->u.literal);
    if (kind == HLO_KIND_ATTRS)
        return hlo_attrs_equal(a->u.attrs->v, a->u.attrs->count, b->u.attrs->v, b->u.attrs->count);
    size_t size = 0, other = 0;
    const void *x = hlo_attr_value(a, &size), *y = hlo_attr_value(b, &other);
    return x && size == other && memcmp(x, y, size) == 0;
}

/* Returns the next attribute that affects equality, starting at `*at`; NULL at the end. */
static const hlo_attr *next_attr(const hlo_attr *attrs, uint32_t count, uint32_t *at) {
    while (*at < count && attrs[*at].id == HLO_ATTR_METADATA) ++*at;
    return *at < count ? &attrs[(*at)++] : NULL;
}

bool hlo_attrs_equal(const hlo_attr *a, uint32_t a_count, const hlo_attr *b, uint32_t b_count) {
    uint32_t a_at = 0, b_at = 0;
    for (;;) {
        const hlo_attr *left = next_attr(a, a_count, &a_at);
        const hlo_attr *right = next_attr(b, b_count, &b_at);
        if (!left || !right) return left == right;
        if (left->id != right->id || !hlo_attr_equal(left, right)) return false;
    }
}

/* Reads one array's part of dim_labels: the dimension of each letter. Returns the end of the part,
 * or NULL if the part does not name each of `rank` dimensions once. */
static const char *dim_labels(const char *text, const char *letters, uint32_t rank,
                              int64_t *out_named) {
    for (uint32_t i = 0; i < rank; i++) out_named[i] = -1;
    uint32_t at = 0;
    for (; *text && *text != '_' && *text != '-'; text++, at++) {
        const char *letter = strchr(letters, *text);
        int64_t number = letter ? letter - letters : *text - '0' + 2;
        if (*text == '?') continue;
        if (number < 0 || number >= rank || at >= rank || out_named[number] >= 0) return NULL;
        out_named[number] = at;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (out_named[i] < 0) return NULL;
    return at == rank ? text : NULL;
}

bool hlo_dim_labels_read(const char *text, uint32_t rank, int64_t *out_dims) {
    const char *rest = dim_labels(text, "bf", rank, out_dims);
    if (rest && *rest == '_') rest = dim_labels(rest + 1, "io", rank, out_dims + rank);
    if (rest && strncmp(rest, "->", 2) == 0)
        rest = dim_labels(rest + 2, "bf", rank, out_dims + 2 * (size_t)rank);
    return rest && !*rest;
}

static const struct {
    bool any;
    int8_t number;
    const char *text;
} defaults[HLO_ATTR_COUNT] = {
#define HLO_ATTR_DEFAULT(attr, number, text) [HLO_ATTR_##attr] = {true, number, text},
#include "ir/table/attr_default.def"
#undef HLO_ATTR_DEFAULT
};

const char *hlo_compare_default_type(const hlo_shape *operand) {
    switch ((hlo_type_class)hlo_types[operand->type].class) {
    case HLO_CLASS_SIGNED: return "SIGNED";
    case HLO_CLASS_FLOAT:
    case HLO_CLASS_COMPLEX: return "FLOAT";
    default: return "UNSIGNED";
    }
}

const char *hlo_compare_type_of_order(const char *order, const hlo_shape *operand) {
    const bool total = strcmp(order, "TOTAL") == 0;
    if (!total && strcmp(order, "PARTIAL") != 0) return NULL;
    if (!operand || hlo_types[operand->type].class == HLO_CLASS_FLOAT)
        return total ? "TOTALORDER" : "FLOAT";
    return hlo_compare_default_type(operand);
}

bool hlo_attr_is_default(const hlo_attr *attr, hlo_op op, const hlo_shape *operand) {
    hlo_attr_kind kind = hlo_attrs_info[attr->id].kind;
    if (attr->id == HLO_ATTR_TYPE && op == HLO_OP_COMPARE)
        return operand && strcmp(attr->u.str, hlo_compare_default_type(operand)) == 0;
    if (attr->id == HLO_ATTR_ALGORITHM && op == HLO_OP_DOT)
        return strcmp(attr->u.str, "unset") == 0;
    if (attr->id == HLO_ATTR_WINDOW && op == HLO_OP_CUSTOM_CALL) return false;
    if (attr->id == HLO_ATTR_MODE || /* the parser accepts and drops these two attributes */
        (attr->id == HLO_ATTR_DIMENSIONS && op == HLO_OP_RAGGED_ALL_TO_ALL))
        return true;
    if (kind == HLO_KIND_FORM || kind == HLO_KIND_ALIASES)
        return hlo_intern_length(hlo_attr_text(attr)) == 0;
    if (!defaults[attr->id].any) return false;
    switch (kind) {
    case HLO_KIND_INT:
    case HLO_KIND_BOOL: return attr->u.i == defaults[attr->id].number;
    case HLO_KIND_WORD:
    case HLO_KIND_STRING: return strcmp(attr->u.str, defaults[attr->id].text) == 0;
    case HLO_KIND_INTS: return attr->u.ints->count == 0;
    case HLO_KIND_COMPUTATIONS: return attr->u.comps->count == 0;
    case HLO_KIND_ATTRS: return attr->u.attrs->count == 0;
    default: return false;
    }
}

/* Returns row `number` of a table, counted from 1; NULL if out of range. */
#define ROW(rows, count, number)                                                                   \
    ((number) >= 1 && (number) <= (int64_t)(count) ? &(rows)[(number)-1] : NULL)

const hlo_attr *hlo_instr_metadata(const hlo_instruction *instr, hlo_attr_id id) {
    const hlo_attr *metadata = hlo_instr_attr(instr, HLO_ATTR_METADATA);
    return metadata ? hlo_attrs_find(metadata->u.attrs->v, metadata->u.attrs->count, id) : NULL;
}

const char *hlo_instr_op_name(const hlo_instruction *instr) {
    const hlo_attr *name = hlo_instr_metadata(instr, HLO_ATTR_OP_NAME);
    return name ? name->u.str : NULL;
}

const hlo_stack_frame *hlo_tables_frame(const hlo_tables *tables, int64_t frame) {
    return ROW(tables->frames, tables->frame_count, frame);
}

const hlo_file_location *hlo_frame_location(const hlo_tables *tables, int64_t frame) {
    const hlo_stack_frame *at = hlo_tables_frame(tables, frame);
    return at ? ROW(tables->locations, tables->location_count, at->file_location) : NULL;
}

const char *hlo_frame_file(const hlo_tables *tables, int64_t frame) {
    const hlo_file_location *at = hlo_frame_location(tables, frame);
    const char **file = at ? ROW(tables->files, tables->file_count, at->file_name) : NULL;
    return file ? *file : NULL;
}

int64_t hlo_frame_parent(const hlo_tables *tables, int64_t frame) {
    return hlo_tables_frame(tables, frame)->parent - 1;
}

const char *hlo_instr_source(const hlo_instruction *instr, int64_t *out_line) {
    const hlo_tables *tables = &instr->parent->module->tables;
    const hlo_attr *id = hlo_instr_metadata(instr, HLO_ATTR_STACK_FRAME_ID);
    const hlo_attr *file = hlo_instr_metadata(instr, HLO_ATTR_SOURCE_FILE);
    const hlo_attr *line = hlo_instr_metadata(instr, HLO_ATTR_SOURCE_LINE);
    int64_t frame = id ? id->u.i : 0;
    /* Limit the number of steps: frames in the text may form a cycle. */
    for (uint32_t left = tables->frame_count; left && hlo_tables_frame(tables, frame); left--) {
        const char *found = hlo_frame_file(tables, frame);
        if (found) {
            const int64_t at = hlo_frame_location(tables, frame)->line;
            *out_line = at > 0 ? at : 0;
            return found;
        }
        frame = hlo_frame_parent(tables, frame);
    }
    *out_line = file && line && line->u.i > 0 ? line->u.i : 0;
    return file ? file->u.str : NULL;
}
