/* SPDX-License-Identifier: Apache-2.0 */
/* Reads groups of devices from attribute values. */
#include "ir/device_list.h"

#include <string.h>

bool hlo_value_take(const char **at, const char *mark) {
    size_t size = strlen(mark);
    if (strncmp(*at, mark, size) != 0) return false;
    *at += size;
    return true;
}

bool hlo_value_next_entry(const char **at, hlo_value_pair *out_pair) {
    if (**at != '{' && **at != ',') return false;
    const char *key = *at + 1 + strspn(*at + 1, " "), *value = key + strcspn(key, "=");
    if (!*value) return false;
    /* Skip a text in double quotes, or in brackets. */
    const char *end = value + 1;
    bool quoted = false;
    int depth = 0;
    do {
        if (*end == '\\' && quoted && end[1])
            end++;
        else if (*end == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*end == '{') - (*end == '}');
        end += *end != '\0';
    } while (*end && (quoted || depth > 0));
    *at = end;
    *out_pair = (hlo_value_pair){key, (size_t)(value - key), value + 1, *at};
    return true;
}

bool hlo_value_is_named(const hlo_value_pair *pair, const char *name) {
    return pair->size == strlen(name) && !memcmp(pair->name, name, pair->size);
}

const char *hlo_value_entry(hlo_arena *arena, const char *entries, const char *name) {
    hlo_value_pair pair;
    while (hlo_value_next_entry(&entries, &pair))
        if (hlo_value_is_named(&pair, name)) {
            const char *at = pair.value;
            const char *end = pair.end;
            char *copy = hlo_arena_alloc(arena, (size_t)(end - at) + 1), *to = copy;
            bool quoted = *at == '"';
            for (at += quoted, end -= quoted; at < end; at++) {
                if (*at == '\\' && quoted && at + 1 < end) at++;
                *to++ = *at;
            }
            *to = '\0';
            return copy;
        }
    return NULL;
}

int64_t hlo_dims_product(const int64_t *factors, size_t count) {
    int64_t all = 1;
    for (size_t i = 0; i < count; i++)
        if (factors[i] < 1 || __builtin_mul_overflow(all, factors[i], &all)) return -1;
    return all;
}

/* Multiplies; -1 if a factor is negative or the product overflows. */
static int64_t times(int64_t a, int64_t b) {
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

static int64_t product(const hlo_ints *ints) {
    int64_t all = 1;
    for (uint32_t i = 0; i < ints->count; i++) all = times(all, ints->v[i]);
    return all;
}

void hlo_groups_measure(hlo_groups *g, hlo_arena *scratch) {
    if (g->sizes) {
        const hlo_ints *listed = g->mesh.devices.listed;
        g->count = g->sizes->count;
        g->devices = listed->count;
        for (uint32_t i = 0; i < g->sizes->count; i++) {
            g->size = i && g->size != g->sizes->v[i] ? -1 : g->sizes->v[i];
            g->empty |= g->sizes->v[i] == 0;
        }
        hlo_arena_mark mark = hlo_arena_here(scratch);
        bool *seen = hlo_arena_zero(scratch, listed->count);
        for (uint32_t i = 0; i < listed->count && !g->misfit; i++) {
            g->odd = listed->v[i];
            g->misfit = g->odd < 0 || g->odd >= listed->count || seen[g->odd];
            if (!g->misfit) seen[g->odd] = true;
        }
        hlo_arena_release(scratch, mark);
        return;
    }
    const hlo_device_array *of = &g->mesh.devices;
    if (!g->mesh.names) {
        g->count = of->dims->v[0];
        g->size = of->dims->v[1];
        g->devices = product(of->iota);
        return;
    }
    g->size = 1;
    for (uint32_t i = 0; i < g->axes->count; i++) g->size = times(g->size, g->axes->v[i].size);
    g->devices = product(of->dims);
    g->count = g->size > 0 && g->devices > 0 ? g->devices / g->size : -1;
}

const hlo_groups *hlo_instr_groups(const hlo_instruction *instr, hlo_attr_id id) {
    const hlo_attr *attr = hlo_instr_attr(instr, id);
    return attr ? attr->u.groups : NULL;
}

const char *const hlo_sharding_words[] = {"maximal", "manual", "unreduced", "replicated",
                                          "unknown"};
const hlo_sharding_kind hlo_sharding_sets[] = {HLO_SHARDING_REPLICATED, HLO_SHARDING_UNREDUCED,
                                               HLO_SHARDING_MANUAL};

const hlo_sharding *hlo_instr_sharding(const hlo_instruction *instr) {
    const hlo_attr *attr = hlo_instr_attr(instr, HLO_ATTR_SHARDING);
    return attr ? attr->u.sharding : NULL;
}

bool hlo_sharding_has(const hlo_sharding *s, hlo_sharding_kind kind) {
    bool has = s->kind == kind || (s->kinds && hlo_ints_contain(s->kinds, kind));
    for (size_t i = 0; i < HLO_SHARDING_SETS; i++)
        has |= s->sets[i] && hlo_sharding_sets[i] == kind;
    for (uint32_t i = 0; s->v && i < s->count && !has; i++) has = hlo_sharding_has(s->v[i], kind);
    return has;
}
