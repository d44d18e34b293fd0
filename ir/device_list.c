/* Groups of devices, read from the values that tell of them. */
#include "ir/device_list.h"

#include <stdlib.h>
#include <string.h>

bool hlo_value_take(const char **at, const char *mark) {
    size_t size = strlen(mark);
    if (strncmp(*at, mark, size) != 0) return false;
    *at += size;
    return true;
}

int64_t hlo_value_int(const char **at) {
    char *end;
    int64_t value = strtoll(*at, &end, 10);
    *at = end;
    return value;
}

static int64_t times(int64_t a, int64_t b) {
    int64_t product;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

/* `{{0,1},{2,3}}` */
static hlo_device_list listed(const char *value) {
    hlo_device_list groups = {.list = value};
    const char *at = value + 1;
    while (hlo_value_take(&at, "{")) {
        int64_t size = 0;
        while (*at && !hlo_value_take(&at, "}")) {
            const char *before = at;
            hlo_value_int(&at);
            hlo_value_take(&at, ",");
            if (at == before) return groups;
            size++;
        }
        hlo_value_take(&at, ",");
        groups.size = groups.count && groups.size != size ? -1 : size;
        groups.empty |= size == 0;
        groups.count++;
        groups.devices += size;
    }
    return groups;
}

const char *hlo_value_past_name(const char *at) {
    for (at++; *at && *at != '\''; at++) at += *at == '\\' && at[1];
    return at + (*at != '\0');
}

/* Past a text in double quotes, or in brackets. */
static const char *past_value(const char *at) {
    bool quoted = false;
    int depth = 0;
    do {
        if (*at == '\\' && quoted && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*at == '{') - (*at == '}');
        at += *at != '\0';
    } while (*at && (quoted || depth > 0));
    return at;
}

static const char *unquoted(hlo_arena *arena, const char *at, const char *end) {
    char *copy = hlo_arena_alloc(arena, (size_t)(end - at) + 1), *to = copy;
    bool quoted = *at == '"';
    for (at += quoted, end -= quoted; at < end; at++) {
        if (*at == '\\' && quoted && at + 1 < end) at++;
        *to++ = *at;
    }
    *to = '\0';
    return copy;
}

bool hlo_value_next_entry(const char **at, hlo_value_pair *out_pair) {
    if (**at != '{' && **at != ',') return false;
    const char *key = *at + 1 + strspn(*at + 1, " "), *value = key + strcspn(key, "=");
    if (!*value) return false;
    *at = past_value(value + 1);
    *out_pair = (hlo_value_pair){key, (size_t)(value - key), value + 1, *at};
    return true;
}

bool hlo_value_is_named(const hlo_value_pair *pair, const char *name) {
    return pair->size == strlen(name) && !memcmp(pair->name, name, pair->size);
}

const char *hlo_value_entry(hlo_arena *arena, const char *entries, const char *name) {
    hlo_value_pair pair;
    while (hlo_value_next_entry(&entries, &pair))
        if (hlo_value_is_named(&pair, name)) return unquoted(arena, pair.value, pair.end);
    return NULL;
}

/* The devices along the axis that is called as `name` says. */
static int64_t axis_size(const char *axes, const char *name) {
    size_t length = (size_t)(hlo_value_past_name(name) - name);
    while (*axes == '\'') {
        const char *size = hlo_value_past_name(axes);
        bool named = (size_t)(size - axes) == length && memcmp(axes, name, length) == 0;
        size += *size == '=';
        int64_t devices = hlo_value_int(&size);
        if (named) return devices;
        axes = size + (*size == ',');
    }
    return -1;
}

/* `mesh['a'=2,'b'=4], device_ids=(..) {'a','b':(1)2}`: a group along those axes. */
static hlo_device_list of_mesh(const char *value) {
    hlo_device_list groups = {.size = 1, .devices = 1};
    const char *at = value;
    if (!hlo_value_take(&at, "mesh["))
        return (hlo_device_list){.count = -1, .size = -1, .devices = -1};
    const char *axes = at;
    while (*at == '\'') {
        at = hlo_value_past_name(at);
        at += *at == '=';
        groups.devices = times(groups.devices, hlo_value_int(&at));
        hlo_value_take(&at, ",");
    }
    at = strrchr(at, '{');
    for (at = at ? at + 1 : ""; *at == '\'';) {
        int64_t size = axis_size(axes, at);
        at = hlo_value_past_name(at);
        if (hlo_value_take(&at, ":(")) {
            hlo_value_int(&at);
            hlo_value_take(&at, ")");
            size = hlo_value_int(&at);
        }
        groups.size = times(groups.size, size);
        hlo_value_take(&at, ",");
    }
    groups.count = groups.size > 0 && groups.devices > 0 ? groups.devices / groups.size : -1;
    return groups;
}

/* `[2,4]<=[4,2]T(1,0)` */
static hlo_device_list of_iota(const char *value) {
    const char *at = value + 1;
    hlo_device_list groups = {.count = hlo_value_int(&at), .devices = 1};
    hlo_value_take(&at, ",");
    groups.size = hlo_value_int(&at);
    hlo_value_take(&at, "]<=[");
    do groups.devices = times(groups.devices, hlo_value_int(&at));
    while (hlo_value_take(&at, ","));
    return groups;
}

hlo_device_list hlo_device_list_read(const char *value) {
    if (!value || *value == '{') return listed(value ? value : "{}");
    return *value == '[' ? of_iota(value) : of_mesh(value);
}

bool hlo_device_list_next(const char **at, int64_t *out_device) {
    *at += strspn(*at, "{,}");
    if (!**at) return false;
    const char *before = *at;
    *out_device = hlo_value_int(at);
    return *at != before;
}
