/* SPDX-License-Identifier: Apache-2.0 */
/* A fake libcublasLt. It has objects, attributes with the library's sizes, four algorithms of
 * different speed, and the logger.
 *
 * Environment, in addition to that of standin.h:
 *   HLO_STANDIN_CUBLASLT  the result of cublasLtGetVersion(); 130100 if unset
 *   HLO_STANDIN_SAYS      a line that each query of the heuristic logs
 *   HLO_STANDIN_WRONG     the index of an algorithm, from 0, whose result is wrong */
#include <stdlib.h>
#include <string.h>

#include "cublaslt.h"

enum { NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID = 7, EXECUTION_FAILED = 13, NONE_FOUND = 15 };

struct lt_handle {
    int unused;
};

static struct {
    int descs, layouts, preferences;
    lt_log_callback callback;
    FILE *file;
    int mask;
} library;

/* --------------------------------------------------------------------------------------- logger */

static void say(const char *function, const char *line) {
    enum { INFO = 4, INFO_BIT = 8 };
    if (!line || !(library.mask & INFO_BIT)) return;
    if (library.callback) library.callback(INFO, function, line);
    FILE *out = library.file ? library.file : stdout;
    fprintf(out, "[cublasLt][Info][%s] %s\n", function, line);
}

int cublasLtLoggerSetCallback(lt_log_callback callback) {
    library.callback = callback;
    return 0;
}

int cublasLtLoggerSetFile(FILE *file) {
    library.file = file;
    return 0;
}

int cublasLtLoggerSetMask(int mask) {
    library.mask = mask;
    return 0;
}

const char *cublasLtGetStatusName(int status) {
    switch (status) {
    case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case INVALID: return "CUBLAS_STATUS_INVALID_VALUE";
    case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case NONE_FOUND: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_?";
    }
}

/* -------------------------------------------------------------------------------------- objects */

size_t standin_version(void) {
    const char *version = getenv("HLO_STANDIN_CUBLASLT");
    return version ? (size_t)atol(version) : 130100;
}

size_t cublasLtGetVersion(void) {
    return standin_version();
}

int cublasLtCreate(lt_handle **handle) {
    ENTER("cublasLtCreate");
    *handle = calloc(1, sizeof **handle);
    return *handle ? 0 : ALLOC_FAILED;
}

int cublasLtDestroy(lt_handle *handle) {
    ENTER("cublasLtDestroy");
    free(handle);
    return 0;
}

/* The size of each attribute in bytes; 0 if the attribute is unsupported. */
static const unsigned char desc_sizes[DESC_ATTRIBUTES] = {
    [0] = 4,  [1] = 4,  [2] = 4,  [3] = 4,  [4] = 4,  [5] = 4,  [6] = 4,  [7] = 4,  [8] = 8,
    [10] = 8, [11] = 8, [12] = 8, [13] = 8, [14] = 8, [15] = 4, [17] = 8, [18] = 8, [19] = 8,
    [20] = 8, [21] = 8, [22] = 4, [23] = 8, [24] = 8, [25] = 1, [26] = 4, [31] = 4, [32] = 4,
    [33] = 4, [34] = 4, [35] = 4, [36] = 8, [37] = 4, [38] = 8,
};
static const unsigned char layout_sizes[LAYOUT_ATTRIBUTES] = {4, 4, 8, 8, 8, 4, 8, 8, 4};
static const unsigned char preference_sizes[PREFERENCE_ATTRIBUTES] = {
    [0] = 4, [1] = 8, [3] = 4, [5] = 4, [6] = 4, [7] = 4, [8] = 4, [9] = 4, [12] = 8,
};

/* Writes "attribute N, N bytes: VALUE" to a buffer of `capacity` bytes. */
static const char *told(int attribute, const void *value, size_t size, char capacity[128]) {
    char name[64];
    uint64_t number = 0;
    int32_t word;
    memcpy(&number, value, size < sizeof number ? size : sizeof number);
    memcpy(&word, &number, sizeof word);
    const char *memory = size == 8 ? standin_name((const void *)(uintptr_t)number, name) : NULL;
    int length = snprintf(capacity, 128, "attribute %d, %zu bytes: ", attribute, size);
    if (memory)
        snprintf(capacity + length, 128 - (size_t)length, "%s", memory);
    else
        snprintf(capacity + length, 128 - (size_t)length, "%lld",
                 size == 4 ? (long long)word : (long long)number);
    return capacity;
}

static int set(attributes *at, const unsigned char *sizes, int count, int attribute,
               const void *value, size_t size) {
    if (attribute < 0 || attribute >= count || size != sizes[attribute]) return INVALID;
    at->value[attribute] = 0;
    memcpy(&at->value[attribute], value, size);
    return 0;
}

static int get(const attributes *at, const unsigned char *sizes, int count, int attribute,
               void *value, size_t size, size_t *written) {
    if (attribute < 0 || attribute >= count || !sizes[attribute]) return INVALID;
    if (written) *written = sizes[attribute];
    if (size && size != sizes[attribute]) return INVALID;
    if (size) memcpy(value, &at->value[attribute], size);
    return 0;
}

int cublasLtMatmulDescCreate(lt_desc **desc, int compute, int scale_type) {
    ENTER("cublasLtMatmulDescCreate desc %d: compute %d, scale type %d", library.descs + 1, compute,
          scale_type);
    lt_desc *made = calloc(1, sizeof *made);
    if (!made) return ALLOC_FAILED;
    *made = (lt_desc){.ordinal = ++library.descs, .compute = compute, .scale = scale_type};
    made->at.value[7] = 1;
    made->at.value[22] = made->at.value[26] = UINT32_MAX;
    *desc = made;
    return 0;
}

int cublasLtMatmulDescDestroy(lt_desc *desc) {
    free(desc);
    ENTER("cublasLtMatmulDescDestroy");
    return 0;
}

int cublasLtMatmulDescSetAttribute(lt_desc *desc, int attribute, const void *value, size_t size) {
    char capacity[128];
    ENTER("cublasLtMatmulDescSetAttribute desc %d %s", desc->ordinal,
          told(attribute, value, size, capacity));
    return set(&desc->at, desc_sizes, DESC_ATTRIBUTES, attribute, value, size);
}

int cublasLtMatmulDescGetAttribute(lt_desc *desc, int attribute, void *value, size_t size,
                                   size_t *written) {
    return get(&desc->at, desc_sizes, DESC_ATTRIBUTES, attribute, value, size, written);
}

int cublasLtMatrixLayoutCreate(lt_layout **layout, int type, uint64_t rows, uint64_t cols,
                               int64_t ld) {
    ENTER("cublasLtMatrixLayoutCreate layout %d: type %d, %llux%llu, ld %lld", library.layouts + 1,
          type, (unsigned long long)rows, (unsigned long long)cols, (long long)ld);
    lt_layout *made = calloc(1, sizeof *made);
    if (!made) return ALLOC_FAILED;
    *made = (lt_layout){
        .ordinal = ++library.layouts,
        .at = {{[0] = (uint64_t)type, [2] = rows, [3] = cols, [4] = (uint64_t)ld, [5] = 1}}};
    *layout = made;
    return 0;
}

int cublasLtMatrixLayoutDestroy(lt_layout *layout) {
    free(layout);
    ENTER("cublasLtMatrixLayoutDestroy");
    return 0;
}

int cublasLtMatrixLayoutSetAttribute(lt_layout *layout, int attribute, const void *value,
                                     size_t size) {
    char capacity[128];
    ENTER("cublasLtMatrixLayoutSetAttribute layout %d %s", layout->ordinal,
          told(attribute, value, size, capacity));
    return set(&layout->at, layout_sizes, LAYOUT_ATTRIBUTES, attribute, value, size);
}

int cublasLtMatrixLayoutGetAttribute(lt_layout *layout, int attribute, void *value, size_t size,
                                     size_t *written) {
    return get(&layout->at, layout_sizes, LAYOUT_ATTRIBUTES, attribute, value, size, written);
}

int cublasLtMatmulPreferenceCreate(lt_preference **preference) {
    ENTER("cublasLtMatmulPreferenceCreate preference %d", library.preferences + 1);
    lt_preference *made = calloc(1, sizeof *made);
    if (!made) return ALLOC_FAILED;
    made->ordinal = ++library.preferences;
    for (int alignment = 5; alignment <= 8; alignment++) made->at.value[alignment] = 256;
    *preference = made;
    return 0;
}

int cublasLtMatmulPreferenceDestroy(lt_preference *preference) {
    free(preference);
    ENTER("cublasLtMatmulPreferenceDestroy");
    return 0;
}

int cublasLtMatmulPreferenceSetAttribute(lt_preference *preference, int attribute,
                                         const void *value, size_t size) {
    char capacity[128];
    ENTER("cublasLtMatmulPreferenceSetAttribute preference %d %s", preference->ordinal,
          told(attribute, value, size, capacity));
    return set(&preference->at, preference_sizes, PREFERENCE_ATTRIBUTES, attribute, value, size);
}

int cublasLtMatmulPreferenceGetAttribute(lt_preference *preference, int attribute, void *value,
                                         size_t size, size_t *written) {
    return get(&preference->at, preference_sizes, PREFERENCE_ATTRIBUTES, attribute, value, size,
               written);
}

/* ----------------------------------------------------------------------------------- algorithms */

/* Algorithms in the heuristic's order, which differs from the order of their times. The times are
 * much longer than the time that the fake takes to compute a matmul. */
static const struct {
    float milliseconds;
    size_t workspace;
} algorithms[] = {{3e5f, 0}, {2e5f, 1 << 20}, {1e5f, 2 << 20}, {4e5f, 0}};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms, MAGIC = 0x616c676f };

int cublasLtMatmulAlgoGetHeuristic(lt_handle *handle, lt_desc *desc, lt_layout *a, lt_layout *b,
                                   lt_layout *c, lt_layout *d, lt_preference *preference,
                                   int wanted, lt_heuristic *results, int *found) {
    int status;
    *found = 0;
    say("cublasLtMatmulAlgoGetHeuristic", getenv("HLO_STANDIN_SAYS"));
    ENTER("cublasLtMatmulAlgoGetHeuristic desc %d, layouts %d %d %d %d, preference %d, %d wanted",
          desc->ordinal, a->ordinal, b->ordinal, c->ordinal, d->ordinal, preference->ordinal,
          wanted);
    if (!handle) return NOT_INITIALIZED;
    const problem p = {.desc = *desc, .a = *a, .b = *b, .c = *c, .d = *d};
    const char *line = standin_refusal(&p, &status);
    if (line) {
        standin_note("  refused: %s", line);
        say("cublasLtMatmulAlgoGetHeuristic", line);
        return status;
    }
    for (int i = 0; i < ALGORITHMS && *found < wanted; i++)
        if (algorithms[i].workspace <= preference->at.value[1])
            results[(*found)++] = (lt_heuristic){
                .algo = {{MAGIC, (uint64_t)i}}, .workspace = algorithms[i].workspace, .waves = 1};
    return *found ? 0 : NONE_FOUND;
}

int cublasLtMatmulAlgoCheck(lt_handle *handle, lt_desc *desc, lt_layout *a, lt_layout *b,
                            lt_layout *c, lt_layout *d, const lt_algo *algo, lt_heuristic *result) {
    int status;
    ENTER("cublasLtMatmulAlgoCheck desc %d, algorithm %llu", desc->ordinal,
          (unsigned long long)algo->data[1]);
    if (!handle) return NOT_INITIALIZED;
    const problem p = {.desc = *desc, .a = *a, .b = *b, .c = *c, .d = *d};
    if (standin_refusal(&p, &status)) return status;
    if (algo->data[0] != MAGIC || algo->data[1] >= ALGORITHMS) return INVALID;
    *result = (lt_heuristic){.algo = *algo, .workspace = algorithms[algo->data[1]].workspace};
    return 0;
}

int cublasLtMatmulAlgoConfigGetAttribute(const lt_algo *algo, int attribute, void *value,
                                         size_t size, size_t *written) {
    if (attribute < 0 || attribute > 6 || (size && size != sizeof(int))) return INVALID;
    *written = sizeof(int);
    if (size) *(int *)value = attribute == 0 ? (int)algo->data[1] : 1;
    return 0;
}

typedef struct queued {
    problem p;
    int algorithm;
    void *workspace;
    size_t workspace_size;
} queued;

static void run(void *argument) {
    queued *q = argument;
    const char *wrong = getenv("HLO_STANDIN_WRONG");
    q->p.wrong = wrong && atoi(wrong) == q->algorithm;
    if (q->workspace_size) memset(q->workspace, 0x5a, q->workspace_size);
    if (!standin_matmul(&q->p)) standin_note("  outside of the device's memory");
    standin_pass(algorithms[q->algorithm].milliseconds);
}

static double number(int type, const void *at) {
    return type == R_64F ? *(const double *)at : (double)*(const float *)at;
}

static const char *launch_refusal(const problem *p, const lt_algo *algo, const void *workspace,
                                  size_t workspace_size, int *out_status) {
    const char *line = standin_refusal(p, out_status);
    if (line) return line;
    *out_status = INVALID;
    if (!algo || algo->data[0] != MAGIC || algo->data[1] >= ALGORITHMS) return "not an algorithm";
    if (algorithms[algo->data[1]].workspace > workspace_size) return "workspace is too small";
    if (!workspace_size) return NULL;
    if ((uintptr_t)workspace % 256) return "workspace pointer must be aligned";
    return standin_allocated(workspace, workspace_size) ? NULL
                                                        : "workspace is not in device memory";
}

int cublasLtMatmul(lt_handle *handle, lt_desc *desc, const void *alpha, const void *a,
                   lt_layout *a_layout, const void *b, lt_layout *b_layout, const void *beta,
                   const void *c, lt_layout *c_layout, void *d, lt_layout *d_layout,
                   const lt_algo *algo, void *workspace, size_t workspace_size,
                   cuda_stream *stream) {
    int status;
    char rooms[4][64];
    queued q = {.p = {*desc, *a_layout, *b_layout, *c_layout, *d_layout, number(desc->scale, alpha),
                      number(desc->scale, beta), a, b, c, d, false},
                .algorithm = algo ? (int)algo->data[1] : -1,
                .workspace = workspace,
                .workspace_size = workspace_size};
    ENTER("cublasLtMatmul desc %d, layouts %d %d %d %d, alpha %g, beta %g, a %s, b %s, c %s, d %s, "
          "algorithm %d, workspace %zu",
          desc->ordinal, a_layout->ordinal, b_layout->ordinal, c_layout->ordinal, d_layout->ordinal,
          q.p.alpha, q.p.beta, standin_name(a, rooms[0]), standin_name(b, rooms[1]),
          c ? standin_name(c, rooms[2]) : "NULL", standin_name(d, rooms[3]), q.algorithm,
          workspace_size);
    if (!handle) return NOT_INITIALIZED;
    const char *line = launch_refusal(&q.p, algo, workspace, workspace_size, &status);
    if (line) {
        standin_note("  refused: %s", line);
        say("cublasLtMatmul", line);
        return status;
    }
    return standin_enqueue(stream, STANDIN_OTHER, run, &q, sizeof q) ? EXECUTION_FAILED : 0;
}
