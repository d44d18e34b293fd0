/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fastest of cuBLASLt's algorithms for a call by timing the algorithms on the device.
 *
 * During the search, the operands' memory is filled with numbers, because its contents are
 * undefined when a plan is created, and NaNs would make all results equal. Afterwards, the contents
 * are restored. Each of the heuristic's first algorithms computes the call once. The reference is
 * the result with which most algorithms agree. An algorithm that fails is dropped, with a warning.
 * So is an algorithm whose result differs from the reference by more than a rounding of the
 * result's type plus a fraction of the root mean square. The error of a correct sum never reaches
 * this fraction. The other algorithms are timed: the median of several launches, each after
 * clearing the L2 cache.
 *
 * Choices may be cached in a file. Its JSON object maps a device name, a cuBLASLt version and a
 * problem to the chosen algorithm, the number of algorithms tried and the time. The file is
 * replaced atomically. A file that does not contain such an object is not changed, and the search
 * fails. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/float/float.h"
#include "ir/kernel/kernel.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "matmul/json.h"
#include "runtime/cuda/cublaslt/matmul.h"

static const char version_key[] = "hlo-fp8 autotune cache", entries_key[] = "algorithms";
enum { CACHE_VERSION = 1, ALGO_BYTES = sizeof(lt_algo), HEX = 2 * ALGO_BYTES };

/* ------------------------------------------------------------------------------------- the file */

static hlo_status no_cache(const cuda_device *device, const char *reason, char *why, size_t size) {
    snprintf(why, size, "cannot be tuned: invalid autotune cache %s: %s", device->autotune_cache,
             reason);
    return HLO_INVALID_INPUT;
}

/* Reads the file. A missing file counts as an empty cache. */
static hlo_status read_cache(const cuda_device *device, json_t **out_cache, char *why,
                             size_t size) {
    const char *path = device->autotune_cache;
    if (!path || access(path, F_OK) != 0) {
        *out_cache = json_pack("{s:i, s:{}}", version_key, CACHE_VERSION, entries_key);
        return *out_cache ? HLO_OK : HLO_OUT_OF_MEMORY;
    }
    json_error_t error;
    hlo_content text;
    hlo_status status = hlo_file_read(path, NULL, &text);
    if (status != HLO_OK) {
        hlo_free(text.bytes);
        if (status != HLO_INVALID_INPUT) return status;
        return no_cache(device, "it is not a readable file", why, size);
    }
    bool starved;
    json_t *cache = hlo_json_read(text.bytes, text.size, JSON_REJECT_DUPLICATES, &error, &starved);
    hlo_free(text.bytes);
    if (starved) return HLO_OUT_OF_MEMORY;
    if (!cache) {
        char reason[JSON_ERROR_TEXT_LENGTH + 32];
        snprintf(reason, sizeof reason, "line %d: %s", error.line, error.text);
        return no_cache(device, reason, why, size);
    }
    bool right = json_integer_value(json_object_get(cache, version_key)) == CACHE_VERSION &&
                 json_is_object(json_object_get(cache, entries_key));
    if (!right) {
        json_decref(cache);
        return no_cache(device, "unknown format version", why, size);
    }
    *out_cache = cache;
    return HLO_OK;
}

/* -------------------------------------------------------------------------------------- entries */

static void release_cache(cuda_device *device, void *object) {
    device->tuned = NULL;
    json_decref(object);
}

/* Finds a cached choice that was made among `tried` or more algorithms. The first call reads the
 * file. Returns HLO_INVALID_INPUT if the file is not a cache, or HLO_OUT_OF_MEMORY. */
static hlo_status find_choice(cuda_device *device, const char *key, uint32_t tried, bool *out_known,
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

/* Adds a choice to the cache file. Returns HLO_INVALID_INPUT if the file cannot be written. */
static hlo_status add_choice(cuda_device *device, const char *key, uint32_t tried,
                             double milliseconds, const lt_heuristic *chosen, char *why,
                             size_t size) {
    char hex[HEX + 1];
    const unsigned char *bytes = (const unsigned char *)chosen->algo.data;
    for (int i = 0; i < ALGO_BYTES; i++) snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    json_t *entry =
        json_pack("{s:o, s:I, s:i, s:f}", "algorithm", json_string(hex), "workspace",
                  (json_int_t)chosen->workspace, "tried", (int)tried, "milliseconds", milliseconds);
    json_t *entries = json_object_get(device->tuned, entries_key);
    if (!entry || json_object_set_new(entries, key, entry) != 0) return HLO_OUT_OF_MEMORY;
    const char *path = device->autotune_cache;
    if (!path) return HLO_OK;
    enum { ATTEMPTS = 100 };
    char beside[4096];
    int file = -1;
    for (int i = 0; i < ATTEMPTS && file < 0; i++) {
        snprintf(beside, sizeof beside, "%s.%ld.%d", path, (long)getpid(), i);
        file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST) break;
    }
    bool good = file >= 0 && json_dumpfd(device->tuned, file, JSON_INDENT(1) | JSON_SORT_KEYS) == 0;
    if (file >= 0) good = close(file) == 0 && good;
    good = good && rename(beside, path) == 0;
    if (good) return HLO_OK;
    snprintf(why, size, "cannot be tuned: %s: %s", path, strerror(errno));
    if (file >= 0) unlink(beside);
    return HLO_INVALID_INPUT;
}

enum {
    MAX = 128,         /* maximum number of algorithms */
    TIMES = 9,         /* number of timed launches per algorithm */
    PATTERN = 1 << 18, /* number of elements of the pattern that fills memory */
    PIECES = 16,       /* number of parts of a result that are compared */
    PIECE = 1 << 12,   /* number of elements per part */
    SAMPLE = PIECES * PIECE
};

typedef struct saved {
    char *memory;
    size_t size;
    cuda_address copy;
} saved;

typedef struct tuning {
    cuda_device *device;
    const cuda_library *lib;
    const hlo_job *job;
    const cuda_matmul *p;
    cuda_call *call;
    void *const *addresses;
    saved saved[LT_PART_COUNT];
    uint32_t saved_count;
    cuda_address flush; /* memory of twice the size of the L2 cache, written to clear the cache */
    size_t flush_size;
    cuda_event *begun, *ended;
    void *raw;           /* buffer on the host */
    float *samples[MAX]; /* sample of the result of each algorithm; NULL if the algorithm failed */
    int broken;          /* first nonzero CUresult, which means that the device failed, not an
                          * algorithm */
    int64_t sampled;     /* number of elements per sample */
    char *why;
    size_t size;
} tuning;

static hlo_status failed(tuning *t, int result) {
    char capacity[256];
    snprintf(t->why, t->size, "cannot be tuned: %s",
             cuda_error_text(t->lib, result, capacity, sizeof capacity));
    return result == CUDA_OUT_OF_MEMORY ? HLO_OUT_OF_MEMORY : HLO_INVALID_INPUT;
}

static bool done(tuning *t, int result) {
    if (!t->broken) t->broken = result;
    return !result;
}

static void say(const tuning *t, hlo_severity severity, const char *text) {
    const hlo_instruction *instr = t->job->instr;
    hlo_diag_emit(instr->parent->module, t->device->sink, severity, HLO_DIAG_DEVICE, instr->offset,
                  strlen(instr->name) + 1, "%s", text);
}

/* --------------------------------------------------------------------------------------- memory */

static int64_t matrix_elements(const cuda_matmul *p, lt_part part) {
    const lt_matrix *m = &p->matrices[part];
    return (p->batch - 1) * m->stride + (m->cols - 1) * m->ld + m->rows;
}

/* Returns the type and the number of elements of a part that the call reads. */
static void extent(const tuning *t, lt_part part, hlo_type *out_type, int64_t *out_count) {
    const cuda_pointer *at = &t->p->places[part];
    if (part <= LT_PART_C) {
        *out_type = lt_type_find(t->p->matrices[part].type)->type;
        *out_count = matrix_elements(t->p, part);
        return;
    }
    const hlo_view *view = &t->job->operands[at->index];
    *out_type = view->type;
    *out_count = hlo_view_count(view);
}

static size_t bytes_of(hlo_type type, int64_t count) {
    return type == HLO_TYPE_F4E2M1FN ? (size_t)count / 2 : (size_t)count * hlo_types[type].bytes;
}

/* Fills a part with the same approximately normal numbers in every run, or a scale with 1. */
static int fill(tuning *t, lt_part part, char *memory) {
    hlo_type type;
    int64_t count;
    extent(t, part, &type, &count);
    int64_t drawn = count < PATTERN ? count : PATTERN;
    size_t size = bytes_of(type, count), first = bytes_of(type, drawn);
    const bool scale = part >= LT_PART_A_SCALE && part <= LT_PART_D_SCALE;
    uint64_t state = 1;
    for (size_t i = 0; i < (size_t)drawn; i++) {
        float sum = -2;
        for (int j = 0; j < 4; j++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            sum += (float)(state >> 40) * 0x1p-24f;
        }
        const double value = scale ? 1 : (double)sum * 1.7;
        unsigned char *to = (unsigned char *)t->raw + i * hlo_types[type].bytes, code = 0;
        if (type != HLO_TYPE_F4E2M1FN) {
            hlo_number_store(type, to, value);
            continue;
        }
        hlo_number_store(type, &code, value);
        to = (unsigned char *)t->raw + i / 2; /* two elements per byte */
        *to = (unsigned char)(i % 2 ? *to | code << 4 : code);
    }
    cuda_stream *stream = t->device->stream;
    int result = t->lib->cuMemcpyHtoDAsync(cuda_address_of(memory), t->raw, first, stream);
    if (!result) result = t->lib->cuStreamSynchronize(stream); /* `raw` is reused */
    for (size_t done = first; done < size && !result; done += first) {
        size_t next = size - done < first ? size - done : first;
        result = t->lib->cuMemcpyDtoDAsync(cuda_address_of(memory + done), cuda_address_of(memory),
                                           next, stream);
    }
    return result;
}

static bool is_read(const tuning *t, int part) {
    return t->p->present >> part & 1 && part != LT_PART_D && part != LT_PART_AUX &&
           part != LT_PART_AMAX && part != LT_PART_WORKSPACE;
}

/* -------------------------------------------------------------------------------------- results */

/* True if both samples agree within one rounding of the result's type plus a fraction of the root
 * mean square. The fraction exceeds the error of reordering a sum, even with the 14 bits of fast
 * accumulation. */
static bool agree(const tuning *t, const float *a, const float *b) {
    const double step = lt_type_find(t->p->matrices[LT_PART_D].type)->step;
    double squares = 0;
    for (int64_t i = 0; i < t->sampled; i++) squares += (double)a[i] * a[i];
    double share = (t->p->fp8 ? 0x1p-6 : 0x1p-10) * sqrt(squares / (double)t->sampled);
    for (int64_t i = 0; i < t->sampled; i++)
        if (!(fabs((double)a[i] - b[i]) <= step * fabs((double)a[i]) + share)) return false;
    return true;
}

/* --------------------------------------------------------------------------------------- timing */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median time of an algorithm in milliseconds, or a negative number on failure. */
static double time_algo(tuning *t, const lt_heuristic *algorithm) {
    double times[TIMES];
    const cuda_library *lib = t->lib;
    cuda_stream *stream = t->device->stream;
    for (int i = 0; i < TIMES; i++) {
        float milliseconds = 0;
        if (t->flush &&
            !done(t, lib->cuMemsetD8Async(t->flush, (unsigned char)i, t->flush_size, stream)))
            return -1;
        if (!done(t, lib->cuEventRecord(t->begun, stream)) ||
            cuda_call_launch(t->call, algorithm, t->addresses, t->why, t->size) != HLO_OK ||
            !done(t, lib->cuEventRecord(t->ended, stream)) ||
            !done(t, lib->cuEventSynchronize(t->ended)) ||
            !done(t, lib->cuEventElapsedTime(&milliseconds, t->begun, t->ended)))
            return -1;
        times[i] = (double)milliseconds;
    }
    qsort(times, TIMES, sizeof *times, compare_doubles);
    return times[TIMES / 2];
}

/* Writes the attributes that cuBLASLt reports for an algorithm to `out`. */
static void name_algo(const tuning *t, const lt_algo *algo, char *out, size_t size) {
    static const int attributes[] = {CUDA_LT_ALGO_ID, CUDA_LT_ALGO_TILE, CUDA_LT_ALGO_STAGES,
                                     CUDA_LT_ALGO_SPLIT};
    int values[4] = {0};
    size_t written;
    for (int i = 0; i < 4; i++)
        t->lib->cublasLtMatmulAlgoConfigGetAttribute(algo, attributes[i], &values[i],
                                                     sizeof values[i], &written);
    snprintf(out, size, "algorithm %d (tile %d, stages %d, split-k %d)", values[0], values[1],
             values[2], values[3]);
}

/* Fills the result's memory with NaNs, runs the call with the algorithm, and samples the result.
 * Returns false on failure. */
static bool try_algo(tuning *t, const lt_heuristic *algorithm, float *sample) {
    hlo_type type = lt_type_find(t->p->matrices[LT_PART_D].type)->type;
    const size_t bytes = hlo_types[type].bytes;
    const int64_t count = matrix_elements(t->p, LT_PART_D);
    char *d = t->addresses[LT_PART_D];
    cuda_stream *stream = t->device->stream;
    if (!done(t, t->lib->cuMemsetD8Async(cuda_address_of(d), 0xff, (size_t)count * bytes, stream)))
        return false;
    bool over = t->addresses[LT_PART_C] == d && is_read(t, LT_PART_C);
    if (over && !done(t, fill(t, LT_PART_C, t->addresses[LT_PART_C]))) return false;
    if (cuda_call_launch(t->call, algorithm, t->addresses, t->why, t->size) != HLO_OK ||
        !done(t, t->lib->cuStreamSynchronize(stream)))
        return false;
    /* Copy evenly spread parts of D, converted to f32. */
    const int64_t step = count > SAMPLE ? (count - PIECE) / (PIECES - 1) : PIECE;
    t->sampled = 0;
    for (int64_t first = 0; first < count && t->sampled < SAMPLE; first += step) {
        int64_t size = count - first < PIECE ? count - first : PIECE;
        if (!done(t, t->lib->cuMemcpyDtoHAsync(t->raw, cuda_address_of(d + (size_t)first * bytes),
                                               (size_t)size * bytes, stream)) ||
            !done(t, t->lib->cuStreamSynchronize(stream)))
            return false;
        for (int64_t i = 0; i < size; i++)
            sample[t->sampled + i] =
                (float)hlo_number_load(type, (char *)t->raw + (size_t)i * bytes);
        t->sampled += size;
    }
    return true;
}

static void drop(const tuning *t, const lt_algo *algo, const char *why) {
    char name[128], text[256];
    name_algo(t, algo, name, sizeof name);
    snprintf(text, sizeof text, "cuBLASLt %s %s and is not used", name, why);
    say(t, HLO_WARNING, text);
}

/* Chooses the fastest algorithm whose result agrees with the reference. */
static hlo_status choose(tuning *t, const lt_heuristic *found, uint32_t count,
                         lt_heuristic *out_chosen, double *out_milliseconds) {
    double best = -1, first = -1;
    for (uint32_t i = 0; i < count; i++) {
        float *sample = hlo_malloc(SAMPLE * sizeof *sample);
        if (!sample) return HLO_OUT_OF_MEMORY;
        t->samples[i] = sample;
        if (try_algo(t, &found[i], sample)) continue;
        if (t->broken) return failed(t, t->broken);
        drop(t, &found[i].algo, "fails");
        t->samples[i] = NULL;
        hlo_free(sample);
    }
    /* Find the reference: the sample with which most algorithms agree, or the first such sample in
     * a tie. The reference is NULL if all algorithms failed. */
    const float *reference = NULL;
    for (uint32_t i = 0, most = 0; i < count; i++) {
        uint32_t votes = 0;
        for (uint32_t j = 0; t->samples[i] && j < count; j++)
            votes += t->samples[j] && agree(t, t->samples[i], t->samples[j]);
        if (votes > most) reference = t->samples[i];
        if (votes > most) most = votes;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!t->samples[i]) continue;
        bool right = reference && agree(t, reference, t->samples[i]);
        double milliseconds = right ? time_algo(t, &found[i]) : -1;
        if (t->broken) return failed(t, t->broken);
        if (milliseconds < 0) {
            drop(t, &found[i].algo,
                 right ? "fails" : "returns a different result than most algorithms");
            continue;
        }
        if (first < 0) first = milliseconds;
        if (best >= 0 && milliseconds >= best) continue;
        best = milliseconds;
        *out_chosen = found[i];
    }
    if (best < 0) {
        snprintf(t->why, t->size, "cannot be tuned: all %u algorithms fail", count);
        return HLO_INVALID_INPUT;
    }
    char name[128], text[256];
    name_algo(t, &out_chosen->algo, name, sizeof name);
    snprintf(text, sizeof text,
             "tuned: %s, the fastest of %u, takes %.4g us, the first one %.4g us", name, count,
             best * 1e3, first * 1e3);
    say(t, HLO_NOTE, text);
    *out_milliseconds = best;
    return HLO_OK;
}

/* ---------------------------------------------------------------------------------------- whole */

/* Saves the operands, and fills the parts that the call reads. */
static int set_up(tuning *t) {
    t->raw = hlo_malloc(PATTERN * sizeof(double));
    if (!t->raw) return CUDA_OUT_OF_MEMORY;
    int result = t->lib->cuEventCreate(&t->begun, 0);
    if (!result) result = t->lib->cuEventCreate(&t->ended, 0);
    t->flush_size = 2 * t->device->l2_size;
    if (!result && t->flush_size) result = t->lib->cuMemAlloc(&t->flush, t->flush_size);
    for (int part = 0; part < LT_PART_COUNT && !result; part++) {
        if (!is_read(t, part) || t->p->places[part].kind != CUDA_OPERAND) continue;
        hlo_type type;
        int64_t count;
        extent(t, (lt_part)part, &type, &count);
        saved *s = &t->saved[t->saved_count];
        *s = (saved){t->addresses[part], bytes_of(type, count), 0};
        result = t->lib->cuMemAlloc(&s->copy, s->size);
        if (result) break;
        t->saved_count++;
        result = t->lib->cuMemcpyDtoDAsync(s->copy, cuda_address_of(s->memory), s->size,
                                           t->device->stream);
    }
    if (!result) result = t->lib->cuStreamSynchronize(t->device->stream);
    /* If parts share memory, the last part's numbers remain. */
    for (int part = 0; part < LT_PART_COUNT && !result; part++)
        if (is_read(t, part)) result = fill(t, (lt_part)part, t->addresses[part]);
    return result;
}

/* Restores the operands, and releases the resources that set_up() created. */
static int tear_down(tuning *t) {
    int result = 0;
    for (uint32_t i = 0; i < t->saved_count; i++) {
        const saved *s = &t->saved[i];
        int copied = t->lib->cuMemcpyDtoDAsync(cuda_address_of(s->memory), s->copy, s->size,
                                               t->device->stream);
        if (!result) result = copied;
    }
    int waited = t->lib->cuStreamSynchronize(t->device->stream);
    for (uint32_t i = 0; i < t->saved_count; i++) t->lib->cuMemFree(t->saved[i].copy);
    if (t->flush) t->lib->cuMemFree(t->flush);
    if (t->ended) t->lib->cuEventDestroy(t->ended);
    if (t->begun) t->lib->cuEventDestroy(t->begun);
    for (int i = 0; i < MAX; i++) hlo_free(t->samples[i]);
    hlo_free(t->raw);
    return result ? result : waited;
}

hlo_status cuda_autotune(cuda_device *device, const hlo_job *job, const cuda_matmul *matmul,
                         cuda_call *call, void *const addresses[LT_PART_COUNT],
                         lt_heuristic *out_chosen, char *why, size_t size) {
    tuning t = {.device = device,
                .lib = device->lib,
                .job = job,
                .p = matmul,
                .call = call,
                .addresses = addresses,
                .why = why,
                .size = size};
    uint32_t wanted = device->autotune < MAX ? (uint32_t)device->autotune : MAX;
    jmp_buf recover;
    hlo_arena *arena = hlo_arena_new(&recover);
    if (!arena || setjmp(recover)) {
        hlo_arena_free(arena);
        return HLO_OUT_OF_MEMORY;
    }
    const char *key = hlo_arena_format(arena, "%s, cuBLASLt %d: %s", device->name, device->cublaslt,
                                       cuda_matmul_key(matmul, arena));
    bool known;
    double milliseconds = 0;
    hlo_status status = find_choice(device, key, wanted, &known, out_chosen, why, size);
    if (status == HLO_OK && known) known = cuda_call_accepts(call, out_chosen);
    if (status == HLO_OK && !known) {
        lt_heuristic found[MAX];
        uint32_t count;
        status = cuda_call_heuristic(call, wanted, found, &count, why, size);
        if (status == HLO_OK) {
            int result = set_up(&t);
            status =
                result ? failed(&t, result) : choose(&t, found, count, out_chosen, &milliseconds);
            result = tear_down(&t);
            if (status == HLO_OK && result) status = failed(&t, result);
        }
        if (status == HLO_OK)
            status = add_choice(device, key, wanted, milliseconds, out_chosen, why, size);
    }
    hlo_arena_free(arena);
    return status;
}
