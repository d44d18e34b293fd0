/* Grouping of what is told: items that differ in numbers within names alone, such as those of a
 * model's layers, are told as one. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "passes/tell.h"

hlo_status tell_groups_open(tell_groups *groups, size_t most) {
    size_t slots = 2;
    while (slots < 2 * most) slots *= 2;
    *groups = (tell_groups){.slot_mask = slots - 1};
    groups->all = calloc(most + 1, sizeof *groups->all);
    groups->slots = calloc(slots, sizeof *groups->slots);
    return groups->all && groups->slots ? HLO_OK : HLO_OUT_OF_MEMORY;
}

void tell_groups_close(tell_groups *groups) {
    for (size_t i = 0; i < groups->count; i++) free(groups->all[i].key);
    free(groups->all);
    free(groups->slots);
    free(groups->key);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

void tell_groups_key(tell_groups *groups, const char *text, bool name) {
    size_t needed = groups->key_size + (text ? strlen(text) : 0) + 1;
    if (needed > groups->key_room) {
        char *key = realloc(groups->key, 2 * needed);
        if (!key) {
            groups->failed = true;
            return;
        }
        groups->key = key;
        groups->key_room = 2 * needed;
    }
    for (const char *c = text; c && *c; c++) {
        if (name && is_digit(*c) && is_digit(c[1])) continue;
        groups->key[groups->key_size++] = name && is_digit(*c) ? '0' : *c;
    }
    groups->key[groups->key_size++] = '\0';
}

static bool has_key(const tell_group *group, const char *key, size_t size) {
    return group->key_size == size && memcmp(group->key, key, size) == 0;
}

static void add(tell_groups *groups, const void *item) {
    const size_t size = groups->key_size;
    size_t at = XXH3_64bits(groups->key, size) & groups->slot_mask;
    for (; groups->slots[at]; at = (at + 1) & groups->slot_mask) {
        tell_group *group = &groups->all[groups->slots[at] - 1];
        if (!has_key(group, groups->key, size)) continue;
        group->count++;
        return;
    }
    char *key = malloc(size);
    if (!key) {
        groups->failed = true;
        return;
    }
    memcpy(key, groups->key, size);
    groups->all[groups->count] = (tell_group){item, groups->count, 1, key, size};
    groups->slots[at] = (uint32_t)++groups->count;
}

hlo_status tell_groups_add(tell_groups *groups, const void *item) {
    if (!groups->failed) add(groups, item);
    groups->key_size = 0;
    return groups->failed ? HLO_OUT_OF_MEMORY : HLO_OK;
}
