/* SPDX-License-Identifier: Apache-2.0 */
/* Implements hlo_module_diff() and hlo_module_diff_matmuls(): prints the differences of two
 * modules, starting with matmuls. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "ir/float/c_locale.h"
#include "ir/module/diff.h"
#include "ir/text/diag.h"
#include "ir/text/printer.h"
#include "ir/text/writer.h"
#include "matmul/product.h"

typedef struct matmul {
    const hlo_instruction *instr;
    const char *op_name; /* "" if absent */
    const char *text;    /* description of the matmul */
    uint64_t key;        /* matmuls of both modules with equal keys form a pair */
    uint64_t sizes;      /* hash of batch, m, n (in either order) and k */
    uint32_t place;
    const hlo_instruction *other; /* the matching matmul of the other module, or NULL */
    const char *other_text;
} matmul;

typedef struct side {
    const hlo_module *module;
    hlo_arena *scratch;
    matmul *all;
    size_t count;
} side;

static const char *describe(side *s, const hlo_instruction *instr, const hlo_matmul *m) {
    const char *kind = instr->op == HLO_OP_DOT ? "dot" : m->wide ? "wide call" : "FP8 call";
    const char *text = hlo_arena_format(s->scratch, "%s %s of %s and %s", kind,
                                        hlo_shape_copy_text(s->scratch, m->d, false),
                                        hlo_shape_copy_text(s->scratch, m->a->shape, false),
                                        hlo_shape_copy_text(s->scratch, m->b->shape, false));
    if (instr->op == HLO_OP_DOT) return text;
    const char *modes = "";
    if (m->a_mode != HLO_SCALE_SCALAR || m->b_mode != HLO_SCALE_SCALAR)
        modes = hlo_arena_format(s->scratch, " %s %s", hlo_scale_modes[m->a_mode].name,
                                 hlo_scale_modes[m->b_mode].name);
    return hlo_arena_format(s->scratch, "%s, %s%s%s%s%s%s%s", text, hlo_epilogues[m->epilogue].name,
                            m->a_scale ? " +a_scale" : "", m->b_scale ? " +b_scale" : "", modes,
                            m->d_scale ? " +d_scale" : "", m->amax ? " +amax" : "",
                            m->c ? " +C" : "");
}

static void list_matmuls(side *s) {
    s->all = hlo_arena_array(s->scratch, s->module->next_id, sizeof *s->all);
    for (const hlo_computation *comp = s->module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            hlo_matmul m;
            if (!hlo_product_matmul(instr, &m)) continue;
            const char *op_name = hlo_instr_op_name(instr);
            matmul *one = &s->all[s->count];
            *one = (matmul){.instr = instr,
                            .op_name = op_name ? op_name : "",
                            .text = describe(s, instr, &m),
                            .place = (uint32_t)s->count++};
            const hlo_matmul_sizes size = hlo_matmul_extents(&m);
            const int64_t sorted[] = {size.batch, size.k, size.m < size.n ? size.m : size.n,
                                      size.m < size.n ? size.n : size.m};
            one->sizes = XXH64(sorted, sizeof sorted, 0);
            one->key = XXH64(one->op_name, strlen(one->op_name), m.d->rank);
            if (m.d->rank) one->key = XXH64(m.d->dims, m.d->rank * sizeof *m.d->dims, one->key);
        }
}

static int by_place(const void *a, const void *b) {
    const matmul *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_key(const void *a, const void *b) {
    const matmul *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return by_place(a, b);
}

/* Pairs matmuls that have no partner yet by key, in the order of the text. */
static void match(side *a, side *b) {
    qsort(a->all, a->count, sizeof *a->all, by_key);
    qsort(b->all, b->count, sizeof *b->all, by_key);
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        matmul *x = &a->all[i], *y = &b->all[j];
        if (x->other || (!y->other && x->key < y->key)) {
            i++;
        } else if (y->other || y->key < x->key) {
            j++;
        } else {
            x->other = y->instr;
            x->other_text = y->text;
            y->other = x->instr;
            i++, j++;
        }
    }
}

/* Returns the last `parts` parts of a path, or "" if the path has fewer parts. Inlining prepends
 * the caller's path, so the last parts identify the instruction. */
static const char *tail(const char *path, int parts) {
    for (const char *at = path + strlen(path); at > path; at--)
        if (at[-1] == '/' && --parts == 0) return at;
    return parts == 1 ? path : "";
}

/* Sets the keys: a hash of the path for matmuls with a path, and a unique key for each other
 * matmul. */
static void set_keys(side *s, int parts, uint64_t seed) {
    for (size_t i = 0; i < s->count; i++) {
        matmul *one = &s->all[i];
        const char *name = parts ? tail(one->op_name, parts) : one->op_name;
        one->key = *name ? XXH64(name, strlen(name), 0) : XXH64(&one->place, 4, seed);
    }
}

static bool is_dot(const matmul *m) {
    return m->instr->op == HLO_OP_DOT;
}

static void keep_diag(void *user, const hlo_diag *diag) {
    *(hlo_diag *)user = *diag;
}

static void put_instr(FILE *out, char sign, const hlo_module *module, const hlo_instruction *instr,
                      const char *text) {
    hlo_diag at = {0}; /* receives the position of the instruction */
    const hlo_diag_sink sink = {keep_diag, &at};
    hlo_diag_emit(module, &sink, HLO_NOTE, HLO_DIAG_VERIFY, instr->offset, 1, "%s", "");
    hlo_print_plain(out, "    %c %s", sign, module->file);
    if (at.line)
        fprintf(out, ":%u:%u", at.line, at.column); /* a binary module has no line numbers */
    hlo_print_plain(out, ": %%%s: %s\n", instr->name, text);
}

static const char *value_text(hlo_arena *scratch, const hlo_literal *literal) {
    enum { SHOWN = 60 };
    char text[SHOWN];
    const bool all = hlo_literal_format(literal, text, sizeof text);
    return hlo_arena_format(scratch, " %s%s", text, all ? "" : "...");
}

/* Formats the first element in which two constants of the same shape differ. Returns "" if they
 * have at most SEEN elements, which are printed completely. */
static const char *element_text(hlo_arena *scratch, const hlo_literal *literal,
                                const hlo_literal *other) {
    enum { SEEN = 10 };
    const hlo_shape *shape = literal->shape;
    const size_t size = hlo_types[shape->type].bytes;
    const char *here = literal->data, *there = other->data;
    if (!here || !there || !hlo_shape_compatible(shape, other->shape)) return "";
    size_t count = (size_t)hlo_shape_count(shape), i = 0;
    while (i < count && memcmp(here + i * size, there + i * size, size) == 0) i++;
    if (i == count || count <= SEEN) return "";
    const hlo_shape scalar = {.type = shape->type};
    const hlo_literal element = {.shape = &scalar, .data = (void *)(uintptr_t)(here + i * size)};
    return hlo_arena_format(scratch, ", element %zu is%s", i, value_text(scratch, &element));
}

static const hlo_literal *value_of(const hlo_instruction *instr) {
    return instr && instr->op == HLO_OP_CONSTANT ? instr->u.literal : NULL;
}

static void put_any(FILE *out, char sign, const side *s, const hlo_instruction *instr,
                    const hlo_instruction *other) {
    if (!instr) return;
    const hlo_literal *value = value_of(instr), *value_there = value_of(other);
    const char *shown = value ? value_text(s->scratch, value) : "";
    const char *element = value && value_there ? element_text(s->scratch, value, value_there) : "";
    put_instr(out, sign, s->module, instr,
              hlo_arena_format(s->scratch, "%s %s%s%s", hlo_ops[instr->op].name,
                               hlo_shape_copy_text(s->scratch, instr->shape, false), shown,
                               element));
}

/* Returns true if all matmuls are unchanged. */
static bool put_matmuls(FILE *out, const side *a, const side *b) {
    size_t changed = 0, removed = 0, added = 0;
    for (size_t i = 0; i < a->count; i++) {
        removed += !a->all[i].other;
        changed += a->all[i].other && strcmp(a->all[i].text, a->all[i].other_text) != 0;
    }
    for (size_t i = 0; i < b->count; i++) added += !b->all[i].other;
    fprintf(out, "matmuls: %zu changed, %zu removed, %zu added, %zu unchanged\n", changed, removed,
            added, a->count - removed - changed);
    for (size_t i = 0; i < a->count; i++) {
        const matmul *one = &a->all[i];
        if (one->other && strcmp(one->text, one->other_text) == 0) continue;
        hlo_print_plain(out, "  %s\n", *one->op_name ? one->op_name : "(no op_name)");
        put_instr(out, '-', a->module, one->instr, one->text);
        if (one->other) put_instr(out, '+', b->module, one->other, one->other_text);
    }
    for (size_t i = 0; i < b->count; i++) {
        const matmul *one = &b->all[i];
        if (one->other) continue;
        hlo_print_plain(out, "  %s\n", *one->op_name ? one->op_name : "(no op_name)");
        put_instr(out, '+', b->module, one->instr, one->text);
    }
    return !changed && !removed && !added;
}

static void put_pairs(FILE *out, const hlo_diff *diff, const side *a, const side *b) {
    fputs("changed computations, with the first changed instruction of each\n", out);
    for (uint32_t i = 0; i < diff->pair_count; i++) {
        const hlo_diff_pair *pair = &diff->pairs[i];
        if (pair->a && pair->b)
            hlo_print_plain(out, "  %%%s: %u instructions, %%%s: %u\n", pair->a->name,
                            pair->a->instr_count, pair->b->name, pair->b->instr_count);
        else
            hlo_print_plain(out, "  %%%s: %s\n", (pair->a ? pair->a : pair->b)->name,
                            pair->a ? "removed" : "added");
        put_any(out, '-', a, pair->first_a, pair->first_b);
        put_any(out, '+', b, pair->first_b, pair->first_a);
        if (pair->a && pair->b && !pair->first_a && !pair->first_b)
            fputs("    the same instructions, but their number, their order or the root differs\n",
                  out);
    }
}

/* Compares two modules, or only their matmuls. */
static hlo_status compare(const hlo_module *a, const hlo_module *b, bool all, FILE *out) {
    jmp_buf recover;
    hlo_arena *scratch = hlo_arena_new(&recover);
    if (!scratch) return HLO_OUT_OF_MEMORY;
    if (setjmp(recover)) {
        hlo_arena_free(scratch);
        return HLO_OUT_OF_MEMORY;
    }
    hlo_diff diff = {0};
    if (all) hlo_diff_modules(a, b, scratch, &diff);
    bool same = diff.same;
    if (!same) {
        side left = {.module = a, .scratch = scratch}, right = {.module = b, .scratch = scratch};
        list_matmuls(&left);
        list_matmuls(&right);
        /* Match by op_name and the dimensions of the result; then by op_name alone; then by ever
         * shorter suffixes of op_name. Finally match a dot and a call by their sizes, because a
         * call has the name of the last instruction that was fused into it. */
        enum { MAX_PARTS = 8, FEWEST_PARTS = 2 };
        match(&left, &right);
        for (int parts = MAX_PARTS + 1; parts >= FEWEST_PARTS; parts--) {
            set_keys(&left, parts % (MAX_PARTS + 1), 1);
            set_keys(&right, parts % (MAX_PARTS + 1), 2);
            match(&left, &right);
        }
        for (size_t i = 0; i < left.count; i++)
            left.all[i].key = left.all[i].sizes ^ is_dot(&left.all[i]);
        for (size_t i = 0; i < right.count; i++)
            right.all[i].key = right.all[i].sizes ^ !is_dot(&right.all[i]);
        match(&left, &right);
        qsort(left.all, left.count, sizeof *left.all, by_place);
        qsort(right.all, right.count, sizeof *right.all, by_place);
        hlo_print_plain(out, "- %s\n", a->file);
        hlo_print_plain(out, "+ %s\n", b->file);
        same = put_matmuls(out, &left, &right) && !all;
        if (all) {
            fputs("changed instructions, ignoring operands\n", out);
            for (int op = 0; op < HLO_OP_COUNT; op++)
                if (diff.removed[op] || diff.added[op])
                    fprintf(out, "  %-28s %8u removed %8u added\n", hlo_ops[op].name,
                            diff.removed[op], diff.added[op]);
        }
        if (diff.header) fputs("changed header attributes\n", out);
        for (int id = 0; diff.header && id < HLO_ATTR_COUNT; id++) {
            if (!diff.header_differs[id]) continue;
            const bool before = hlo_attrs_find(a->attrs, a->attr_count, (hlo_attr_id)id);
            const bool after = hlo_attrs_find(b->attrs, b->attr_count, (hlo_attr_id)id);
            const char *name = hlo_attrs_info[id].name;
            hlo_print_plain(out, "  %-45s %s\n",
                            *name ? name : "fields that exist only in binary modules",
                            before && after ? "changed"
                            : before        ? "removed"
                                            : "added");
        }
        if (diff.pair_count) put_pairs(out, &diff, &left, &right);
    }
    hlo_arena_free(scratch);
    return same ? HLO_OK : HLO_MISMATCH;
}

static hlo_status write_differences(const hlo_module *a, const hlo_module *b, bool all,
                                    hlo_writer *writer) {
    HLO_IN_C_LOCALE;
    FILE *out = hlo_writer_open(writer);
    return out ? hlo_writer_close(out, compare(a, b, all, out)) : HLO_OUT_OF_MEMORY;
}

hlo_status hlo_module_diff(const hlo_module *a, const hlo_module *b, hlo_writer out) {
    return write_differences(a, b, true, &out);
}

hlo_status hlo_module_diff_matmuls(const hlo_module *a, const hlo_module *b, hlo_writer out) {
    return write_differences(a, b, false, &out);
}
