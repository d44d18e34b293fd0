/* See json.h. */
#include "matmul/json.h"

#include <errno.h>
#include <string.h>

void hlo_json_watch(void) {
    errno = 0;
}

bool hlo_json_starved(void) {
    return errno == ENOMEM;
}

typedef struct reader {
    const char *at, *end;
    bool starved;
} reader;

/* One byte at a time: what has become of the last one is known when the next is asked for. */
static size_t next_byte(void *to, size_t capacity, void *user) {
    reader *r = user;
    r->starved |= hlo_json_starved();
    if (r->at == r->end || !capacity) return 0;
    *(char *)to = *r->at++;
    return 1;
}

json_t *hlo_json_read(const char *text, size_t size, size_t flags, json_error_t *error,
                      bool *out_starved) {
    reader r = {.at = text, .end = text + size};
    hlo_json_watch();
    json_t *json = json_load_callback(next_byte, &r, flags, error);
    *out_starved = r.starved || hlo_json_starved();
    if (!*out_starved) return json;
    json_decref(json);
    return NULL;
}

json_t *hlo_json_text(hlo_arena *arena, const char *text, size_t flags) {
    bool starved;
    json_t *json = hlo_json_read(text, strlen(text), flags, NULL, &starved);
    if (starved) hlo_arena_exhausted(arena);
    return json;
}

json_t *hlo_json_config(const hlo_instr *instr) {
    const char *config = hlo_instr_str(instr, HLO_ATTR_BACKEND_CONFIG);
    return config ? hlo_json_text(instr->parent->module->arena, config, 0) : NULL;
}
