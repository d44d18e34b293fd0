/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over a thread's elements: hoists loads and computations out of them. */
#include <string.h>

#include "runtime/cuda/codegen/emit.h"

enum { EARLY = 16 }; /* maximum number of packs that are loaded early, limited by registers */

static void append(emit *e, emit_lines *to, const emit_lines *from) {
    for (uint32_t i = 0; i < from->count; i++) emit_add(e, to, from->v[i].target, from->v[i].text);
}

/* ------------------------------------------------------------------ what is the same every time */

/* Marks the variables that a line may set: its target, and a variable at its start. */
static void mark_set(const emit_line *line, bool *set, uint32_t count) {
    size_t length;
    const char *word = emit_word(line->text, &length);
    const uint32_t name = emit_name_at(word, length);
    if (name < count) set[name] = true;
    if (line->target) emit_mark_names(line->target, set, count);
}

/* Marks the variables that the lines read, and returns the lines of `from` that they need. */
static emit_lines needed(emit *e, const emit_lines *lines, const emit_lines *from) {
    bool *read = hlo_arena_zero(e->arena, e->next_name + 1);
    bool *need = hlo_arena_zero(e->arena, from->count + 1);
    for (uint32_t i = lines->count + from->count; i-- > 0;) {
        const bool own = i >= from->count;
        const emit_line *line = own ? &lines->v[i - from->count] : &from->v[i];
        if (!own && (!line->target || !read[emit_name_at(line->target, strlen(line->target))]))
            continue;
        if (!own) need[i] = true;
        emit_mark_names(line->text, read, e->next_name);
    }
    emit_lines out = {0};
    for (uint32_t i = 0; i < from->count; i++)
        if (need[i]) emit_add(e, &out, from->v[i].target, from->v[i].text);
    return out;
}

/* True if the line reads the counter or a marked name. */
static bool depends(const emit_line *line, const char *counter, const bool *set, uint32_t count) {
    size_t length;
    for (const char *word = emit_word(line->text, &length); length;
         word = emit_word(word + length, &length)) {
        uint32_t name = emit_name_at(word, length);
        if (name < count && set[name]) return true;
        if (length == strlen(counter) && memcmp(word, counter, length) == 0) return true;
    }
    return false;
}

/* Finds the loop-invariant lines: those that depend neither on the counter nor on variables set in
 * the loop. `head`: lines of the loop before `lines`. `depth`: maximum nesting of blocks in `lines`
 * with such lines. Every iteration computes them, and there is at least one iteration; lines in
 * deeper blocks are excluded. */
static bool *find_constants(emit *e, const emit_lines *head, const emit_lines *lines, int depth,
                            const char *counter) {
    const uint32_t names = e->next_name;
    bool *set = hlo_arena_zero(e->arena, names + 1);
    bool *same = hlo_arena_zero(e->arena, lines->count + 1);
    for (uint32_t i = 0; i < head->count; i++) mark_set(&head->v[i], set, names);
    for (uint32_t i = 0; i < lines->count; i++) {
        const emit_line *line = &lines->v[i];
        size_t length = strlen(line->text);
        if (line->text[0] == '}') depth++;
        same[i] = depth == 0 && line->target && strncmp(line->text, "const ", 6) == 0;
        if (length && line->text[length - 1] == '{') depth--;
        if (!same[i]) mark_set(line, set, names);
    }
    for (uint32_t i = 0; i < lines->count; i++) {
        if (!same[i] || !depends(&lines->v[i], counter, set, names)) continue;
        same[i] = false;
        mark_set(&lines->v[i], set, names);
    }
    return same;
}

/* Moves the loop-invariant lines to `out`; see find_constants() for the arguments. */
static void move_constants(emit *e, const emit_lines *head, emit_lines *lines, int depth,
                           const char *counter, emit_lines *out) {
    const bool *same = find_constants(e, head, lines, depth, counter);
    emit_lines kept = {0};
    for (uint32_t i = 0; i < lines->count; i++)
        emit_add(e, same[i] ? out : &kept, lines->v[i].target, lines->v[i].text);
    *lines = kept;
}

/* ------------------------------------------------------------------------------------ the loops */

void emit_open_repeat(emit *e, const char *name, int count) {
    e->repeat = name;
    e->repeat_count = count;
    e->repeat_from = e->out->count;
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int %s = 0; %s < %d; %s++) {", name, name, count, name);
}

/* Moves the first loads of the unrolled loop, and the computation of their addresses, to a loop
 * before it. Moves the `constants` that are loop-invariant before both loops. */
static void load_early(emit *e, emit_lines *constants) {
    emit_lines *out = e->out, loop = {0}, early = {0}, rest = {0};
    for (uint32_t i = e->repeat_from; i < out->count; i++)
        emit_add(e, &loop, out->v[i].target, out->v[i].text);
    out->count = e->repeat_from;
    move_constants(e, &loop, constants, 0, e->repeat, out);
    int loads = 0;
    for (uint32_t i = 0; i < e->before.count; i++) {
        const emit_line *line = &e->before.v[i];
        const bool first = line->target && (loads + 1) * e->repeat_count <= EARLY;
        loads += first;
        emit_add(e, first ? &early : &rest, line->target, line->text);
    }
    append(e, out, &e->across);
    append(e, out, &e->declared);
    if (loads) {
        const emit_lines needs = needed(e, &early, constants);
        append(e, out, &loop);
        append(e, out, &needs);
        append(e, out, &early);
        emit_add(e, out, NULL, "}");
    }
    append(e, out, &loop);
    e->before = rest;
    e->repeat = NULL;
}

void emit_elements_begin(emit *e, emit_lines *inner) {
    *inner = (emit_lines){0};
    e->inner = inner;
    e->around = e->out;
    e->out = inner;
    e->before = e->after = e->declared = e->across = (emit_lines){0};
    e->pack_count = e->derived_count = e->moved_count = 0;
    if (e->width > 1) emit_open(e, "for (int u = 0; u < %d; u++) {", e->width);
    e->pack_depth = e->open_count;
}

void emit_note_start(emit *e, const char *name) {
    if (!emit_in_elements(e) || emit_is_outer(e, name, false)) return;
    const emit_lines none = {0};
    const bool *same = find_constants(e, &none, e->inner, 1, "u");
    for (uint32_t i = 0; i < e->inner->count; i++)
        if (same[i] && strcmp(e->inner->v[i].target, name) == 0) emit_add_derived(e, name);
}

void emit_elements_end(emit *e) {
    const emit_lines none = {0};
    emit_lines constants = {0};
    if (e->width > 1) {
        emit_close(e);
        move_constants(e, &none, e->inner, 1, "u", &constants);
    }
    e->out = e->around;
    if (e->repeat) load_early(e, e->width > 1 ? &constants : e->inner);
    if (e->width > 1) append(e, e->out, &constants);
    append(e, e->out, &e->before);
    if (e->width > 1) emit_text(e, "#pragma unroll");
    append(e, e->out, e->inner);
    append(e, e->out, &e->after);
    e->pack_depth = 0;
}
