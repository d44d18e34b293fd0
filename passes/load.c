/* Rules read at run time, by the grammar that rulec uses when the library is built. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/match.h"
#include "passes/vocabulary.h"

/* The caller frees it; NULL with errno when the file cannot be read. */
static char *read_all(const char *path, size_t *out_size) {
    FILE *in = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!in) return NULL;
    size_t size = 0, room = 1 << 14;
    char *text = malloc(room);
    while (text) {
        size += fread(text + size, 1, room - size, in);
        if (size < room) break;
        char *more = realloc(text, room *= 2);
        if (!more) free(text);
        text = more;
    }
    bool failed = !text || ferror(in);
    if (in != stdin) fclose(in);
    if (!failed) {
        *out_size = size;
        return text;
    }
    free(text);
    return NULL;
}

static void cannot_read(const char *path, const hlo_diag_sink *sink) {
    char message[256];
    snprintf(message, sizeof message, "cannot read the file: %s", strerror(errno));
    const hlo_diag diag = {.severity = HLO_ERROR, .message = message, .file = path};
    if (sink) sink->emit(sink->user, &diag);
}

hlo_status hlo_rules_read(const char *text, size_t size, const char *name, unsigned max_errors,
                          const hlo_diag_sink *sink, hlo_module **out_owner,
                          const hlo_rules **out_rules) {
    jmp_buf recover;
    hlo_module *volatile owner = NULL;
    *out_owner = NULL;
    *out_rules = NULL;
    if (setjmp(recover)) {
        hlo_module_free(owner);
        return HLO_OUT_OF_MEMORY;
    }
    owner = hlo_module_new(&recover);
    if (!owner) return HLO_OUT_OF_MEMORY;
    char *copy = hlo_arena_alloc(owner->arena, size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    owner->source = copy;
    owner->source_size = size;
    owner->file = hlo_intern_string(owner, name);
    hlo_status status = hlo_rules_parse(owner, &hlo_rule_words, max_errors, sink, out_rules);
    if (status == HLO_OK)
        *out_owner = owner;
    else
        hlo_module_free(owner);
    return status;
}

hlo_status hlo_rules_load(const char *path, unsigned max_errors, const hlo_diag_sink *sink,
                          hlo_module **out_owner, const hlo_rules **out_rules) {
    size_t size;
    char *text = read_all(path, &size);
    if (!text) {
        cannot_read(path, sink);
        return HLO_INVALID_INPUT;
    }
    hlo_status status = hlo_rules_read(text, size, path, max_errors, sink, out_owner, out_rules);
    free(text);
    return status;
}
