/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes files of amaxes. */
#include "passes/quantize/amaxes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hlo/text.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "matmul/json.h"

enum { VERSION = 1, FINGERPRINT_SIZE = 17 };

/* Computes a hash of the module's text without metadata. */
static hlo_status fingerprint_of(const hlo_module *module, char out[FINGERPRINT_SIZE]) {
    char *text = NULL;
    size_t size;
    hlo_print_options how;
    hlo_print_options_init(&how, HLO_PRINT_NO_METADATA);
    const hlo_status status = hlo_module_to_text(module, &how, &text, &size);
    if (status == HLO_OK) snprintf(out, FINGERPRINT_SIZE, "%016" PRIx64, XXH3_64bits(text, size));
    hlo_free(text);
    return status;
}

/* Emits an error at the position of the word `"key"` after the word "amaxes", or at the start of
 * the file. */
static hlo_status refuse_at(const hlo_content *text, const char *key, const hlo_diag_sink *sink,
                            const char *path, const char *message) {
    const char *const words[] = {"amaxes", key}, *at = text->bytes, *end = at + text->size;
    for (int i = 0; i < 2 && at; i++) {
        char quoted[256];
        snprintf(quoted, sizeof quoted, "\"%s\"", words[i]);
        at = memmem(at, (size_t)(end - at), quoted, strlen(quoted));
    }
    int line = 1, column = 1;
    for (const char *c = text->bytes; at && c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, line, column, "amax of '%.80s' %s", key,
                           message);
}

static bool is_amax(const json_t *number) {
    return json_is_number(number) && isfinite(json_number_value(number)) &&
           json_number_value(number) >= 0;
}

static hlo_status check(const json_t *document, const hlo_module *module, const hlo_content *text,
                        const char *path, const hlo_diag_sink *sink) {
    const char *print = json_string_value(json_object_get(document, "fingerprint"));
    const char *name = json_string_value(json_object_get(document, "module")), *key;
    json_t *amaxes = json_object_get(document, "amaxes"), *value, *item;
    size_t index;
    if (!json_is_integer(json_object_get(document, "version")) || !print || !name ||
        !json_is_object(amaxes))
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, 1, 1,
                               "not a file of amaxes: expected the output of hlo-fp8-run "
                               "--record-amaxes");
    if (json_integer_value(json_object_get(document, "version")) != VERSION)
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, 1, 1,
                               "amaxes have version %lld, expected %d; record them again with "
                               "hlo-fp8-run --record-amaxes",
                               (long long)json_integer_value(json_object_get(document, "version")),
                               VERSION);
    char own[FINGERPRINT_SIZE];
    const hlo_status status = fingerprint_of(module, own);
    if (status != HLO_OK) return status;
    if (strcmp(print, own) != 0)
        return hlo_diag_refuse(sink, HLO_DIAG_DOCUMENT, path, 1, 1,
                               "amaxes are those of module '%.80s' with fingerprint %.40s, but "
                               "module '%.80s' has fingerprint %s; record them again with "
                               "hlo-fp8-run --record-amaxes",
                               name, print, module->name, own);
    json_object_foreach(amaxes, key, value) {
        bool good = json_is_array(value) || is_amax(value);
        json_array_foreach(value, index, item) good &= is_amax(item);
        if (!good)
            return refuse_at(text, key, sink, path,
                             "must be a finite number of at least 0, or a list of such numbers");
    }
    return HLO_OK;
}

hlo_status hlo_amaxes_read(const hlo_pass_options *options, const hlo_module *module,
                           json_t **out_amaxes) {
    const char *path = options->amaxes ? options->amaxes : "amaxes";
    hlo_content read = {0}, text = {.bytes = (char *)options->amaxes_text};
    hlo_status status = HLO_OK;
    if (text.bytes) {
        text.size = strlen(text.bytes);
    } else {
        status = hlo_file_read(path, options->sink, &read);
        text = read;
    }
    json_error_t error;
    bool starved = false;
    json_t *document = status == HLO_OK ? hlo_json_read(text.bytes, text.size,
                                                        JSON_REJECT_DUPLICATES, &error, &starved)
                                        : NULL;
    if (starved)
        status = HLO_OUT_OF_MEMORY;
    else if (status == HLO_OK && !document)
        status = hlo_diag_refuse(options->sink, HLO_DIAG_DOCUMENT, path, error.line, error.column,
                                 "%s", error.text);
    if (status == HLO_OK) status = check(document, module, &text, path, options->sink);
    if (status == HLO_OK) *out_amaxes = json_incref(json_object_get(document, "amaxes"));
    json_decref(document);
    hlo_free(read.bytes);
    return status;
}

bool hlo_amaxes_find(const json_t *amaxes, const char *name, uint32_t count, double *out) {
    const json_t *value = json_object_get(amaxes, name), *item;
    size_t index;
    *out = 0;
    if (count) {
        if (json_array_size(value) != count) return false;
        json_array_foreach(value, index, item) {
            out[index] = json_number_value(item);
            if (out[index] == 0) return false;
        }
        return true;
    }
    if (json_is_number(value)) *out = json_number_value(value);
    json_array_foreach(value, index, item) *out = fmax(*out, json_number_value(item));
    return *out > 0;
}

hlo_status hlo_amaxes_write(json_t *amaxes, const hlo_module *module, FILE *out) {
    char print[FINGERPRINT_SIZE];
    const hlo_status status = fingerprint_of(module, print);
    if (status != HLO_OK) return status;
    hlo_json_watch();
    json_t *document = json_pack("{s:i, s:s, s:s, s:O}", "version", VERSION, "module", module->name,
                                 "fingerprint", print, "amaxes", amaxes);
    char *text = document ? json_dumps(document, JSON_INDENT(1)) : NULL;
    json_decref(document);
    if (!text || hlo_json_starved()) {
        free(text); /* jansson uses malloc() */
        return HLO_OUT_OF_MEMORY;
    }
    const bool written = fprintf(out, "%s\n", text) >= 0;
    free(text);
    return written ? HLO_OK : HLO_INVALID_INPUT;
}
