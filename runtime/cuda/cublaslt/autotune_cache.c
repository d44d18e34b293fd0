/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of tuned choices, in memory and in a file. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/text/file.h"
#include "matmul/json.h"
#include "runtime/cuda/cublaslt/autotune.h"

static const char version_key[] = "hlo-fp8 autotune cache", entries_key[] = "algorithms";
enum { VERSION = 1, ALGO_BYTES = sizeof(lt_algo), HEX = 2 * ALGO_BYTES };

const char *cuda_tuned_key(const cuda_device *device, const cuda_matmul *matmul, hlo_arena *arena) {
    return hlo_arena_format(arena, "%s, cuBLASLt %d: %s", device->name, device->cublaslt,
                            cuda_matmul_key(matmul, arena));
}

/* ------------------------------------------------------------------------------------- the file */

static hlo_status no_cache(const cuda_device *device, const char *reason, char *why, size_t size) {
    snprintf(why, size, "cannot be tuned: invalid autotune cache %s: %s", device->autotune_cache,
             reason);
    return HLO_INVALID_INPUT;
}

/* Reads the file; a missing file is an empty cache. */
static hlo_status read_cache(const cuda_device *device, json_t **out_cache, char *why,
                             size_t size) {
    const char *path = device->autotune_cache;
    if (!path || access(path, F_OK) != 0) {
        *out_cache = json_pack("{s:i, s:{}}", version_key, VERSION, entries_key);
        return *out_cache ? HLO_OK : HLO_OUT_OF_MEMORY;
    }
    json_error_t error;
    hlo_content text;
    hlo_status status = hlo_file_read(path, NULL, &text);
    if (status != HLO_OK) {
        free(text.bytes);
        if (status != HLO_INVALID_INPUT) return status;
        return no_cache(device, "it is not a readable file", why, size);
    }
    bool starved;
    json_t *cache = hlo_json_read(text.bytes, text.size, JSON_REJECT_DUPLICATES, &error, &starved);
    free(text.bytes);
    if (starved) return HLO_OUT_OF_MEMORY;
    if (!cache) {
        char reason[JSON_ERROR_TEXT_LENGTH + 32];
        snprintf(reason, sizeof reason, "line %d: %s", error.line, error.text);
        return no_cache(device, reason, why, size);
    }
    bool right = json_integer_value(json_object_get(cache, version_key)) == VERSION &&
                 json_is_object(json_object_get(cache, entries_key));
    if (!right) {
        json_decref(cache);
        return no_cache(device, "unknown format version", why, size);
    }
    *out_cache = cache;
    return HLO_OK;
}

static hlo_status write_cache(const cuda_device *device, const json_t *cache, char *why,
                              size_t size) {
    enum { ATTEMPTS = 100 };
    const char *path = device->autotune_cache;
    char beside[4096];
    int file = -1;
    for (int i = 0; i < ATTEMPTS && file < 0; i++) {
        snprintf(beside, sizeof beside, "%s.%ld.%d", path, (long)getpid(), i);
        file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST) break;
    }
    bool good = file >= 0 && json_dumpfd(cache, file, JSON_INDENT(1) | JSON_SORT_KEYS) == 0;
    if (file >= 0) good = close(file) == 0 && good;
    good = good && rename(beside, path) == 0;
    if (good) return HLO_OK;
    snprintf(why, size, "cannot be tuned: %s: %s", path, strerror(errno));
    if (file >= 0) unlink(beside);
    return HLO_INVALID_INPUT;
}

/* -------------------------------------------------------------------------------------- entries */

static void release_cache(cuda_device *device, void *object) {
    device->tuned = NULL;
    json_decref(object);
}

hlo_status cuda_tuned_find(cuda_device *device, const char *key, uint32_t tried, bool *out_known,
                           lt_heuristic *out_chosen, char *why, size_t size) {
    *out_known = false;
    if (!device->tuned) {
        json_t *cache = NULL;
        hlo_status status = read_cache(device, &cache, why, size);
        if (status != HLO_OK) return status;
        device->tuned = cache;
        if (!cuda_own(device, cache, release_cache)) return HLO_OUT_OF_MEMORY;
    }
    const json_t *entry = json_object_get(json_object_get(device->tuned, entries_key), key);
    lt_heuristic chosen = {.workspace =
                               (size_t)json_integer_value(json_object_get(entry, "workspace"))};
    if (!entry || json_integer_value(json_object_get(entry, "tried")) < tried) return HLO_OK;
    const char *hex = json_string_value(json_object_get(entry, "algorithm"));
    if (!hex || strlen(hex) != HEX || strspn(hex, "0123456789abcdef") != HEX)
        return no_cache(device, "invalid algorithm entry", why, size);
    unsigned char *bytes = (unsigned char *)chosen.algo.data;
    for (int i = 0; i < ALGO_BYTES; i++) {
        char byte[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(byte, NULL, 16);
    }
    *out_chosen = chosen;
    *out_known = true;
    return HLO_OK;
}

hlo_status cuda_tuned_add(cuda_device *device, const char *key, uint32_t tried, double milliseconds,
                          const lt_heuristic *chosen, char *why, size_t size) {
    char hex[HEX + 1];
    const unsigned char *bytes = (const unsigned char *)chosen->algo.data;
    for (int i = 0; i < ALGO_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    json_t *entry =
        json_pack("{s:o, s:I, s:i, s:f}", "algorithm", json_string(hex), "workspace",
                  (json_int_t)chosen->workspace, "tried", (int)tried, "milliseconds", milliseconds);
    json_t *entries = json_object_get(device->tuned, entries_key);
    if (!entry || json_object_set_new(entries, key, entry) != 0) return HLO_OUT_OF_MEMORY;
    return device->autotune_cache ? write_cache(device, device->tuned, why, size) : HLO_OK;
}
