/* SPDX-License-Identifier: Apache-2.0 */
/* Creates cuBLASLt's descriptors for a problem, queries algorithms, and launches the call. */
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "runtime/cuda/cublaslt/matmul.h"

struct cuda_call {
    const cuda_device *device;
    const cuda_matmul *p;
    lt_desc *desc;
    lt_layout *layouts[4]; /* by lt_part, A to D */
    lt_preference *preference;
    void *addresses[LT_PART_COUNT]; /* addresses to which the descriptor is set */
    union {
        float f32;
        double f64;
    } alpha, beta;
};

typedef struct log_row {
    const char *fragment, *rule;
} log_row;

static const log_row log_rows[] = {
#define LT_LOG(fragment, rule) {fragment, rule},
#include "runtime/cuda/cublaslt/log.def"
#undef LT_LOG
};

/* The most informative line of the log: the first that matches a row of log.def or, if none does,
 * the first line. */
typedef struct log_line {
    char text[512];
    const char *rule;
} log_line;

typedef struct log_target {
    log_line *line;
} log_target;

/* The destination of log lines. It is a variable, because the callback has no user argument.
 * The callback runs on the thread of the call. */
static _Thread_local const log_target *log_to;

static void take_line(int level, const char *function, const char *message) {
    (void)level;
    (void)function;
    log_line *line = log_to ? log_to->line : NULL;
    if (!line || line->rule) return;
    for (size_t i = 0; i < sizeof log_rows / sizeof *log_rows && !line->rule; i++)
        if (strstr(message, log_rows[i].fragment)) line->rule = log_rows[i].rule;
    if (!line->rule && *line->text) return;
    snprintf(line->text, sizeof line->text, "%s", message);
    line->text[strcspn(line->text, "\r\n")] = '\0';
}

/* Calls `again` while the library logs errors and level "info", which has the reasons why no
 * algorithm fits. Sets a log file, because otherwise the library would write to the program's
 * output. */
static void with_log(const cuda_library *lib, void (*again)(void *arg), void *arg,
                     log_line *out_line) {
    enum { ERRORS_AND_INFO = 1 | 8 };
    *out_line = (log_line){0};
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) return;
    const log_target target = {out_line}, *before = log_to;
    log_to = &target;
    lib->cublasLtLoggerSetFile(nowhere);
    lib->cublasLtLoggerSetCallback(take_line);
    lib->cublasLtLoggerSetMask(ERRORS_AND_INFO);
    again(arg);
    lib->cublasLtLoggerSetMask(0);
    lib->cublasLtLoggerSetCallback(NULL);
    lib->cublasLtLoggerSetFile(NULL);
    log_to = before;
    fclose(nowhere);
}

static hlo_status refuse(const cuda_library *lib, const char *function, int status,
                         const log_line *line, char *why, size_t size) {
    const char *name = lib->cublasLtGetStatusName(status);
    int length =
        snprintf(why, size, "is rejected by cuBLASLt: %s: %s", function, name ? name : "?");
    if (line && *line->text && length > 0 && (size_t)length < size)
        snprintf(why + length, size - (size_t)length, ": %s%s%s%s", line->text,
                 line->rule ? " (" : "", line->rule ? line->rule : "", line->rule ? ")" : "");
    return HLO_INVALID_INPUT;
}

/* Sets an attribute of the descriptor, of the layout of a part, or of the preference. */
static int set(const cuda_call *call, lt_object object, int part, int attribute, int64_t value) {
    const cuda_library *lib = call->device->lib;
    const size_t bytes = lt_attribute_find(object, attribute)->bytes;
    union {
        unsigned char one;
        int32_t four;
        int64_t eight;
    } scalar = {.eight = value};
    if (bytes == 1) scalar.one = (unsigned char)value;
    if (bytes == 4) scalar.four = (int32_t)value;
    switch (object) {
    case LT_DESC: return lib->cublasLtMatmulDescSetAttribute(call->desc, attribute, &scalar, bytes);
    case LT_LAYOUT:
        return lib->cublasLtMatrixLayoutSetAttribute(call->layouts[part], attribute, &scalar,
                                                     bytes);
    case LT_PREFERENCE: break;
    }
    return lib->cublasLtMatmulPreferenceSetAttribute(call->preference, attribute, &scalar, bytes);
}

/* Sets the descriptor's pointers. On failure, only some pointers are set, and the call forgets its
 * addresses, so that the next call sets all pointers again. */
static int set_pointers(cuda_call *call, void *const *addresses) {
    int status = 0;
    const cuda_matmul *p = call->p;
    for (uint32_t i = 0; i < p->setting_count && !status; i++) {
        const lt_setting *setting = &p->settings[i];
        if (lt_attribute_find(LT_DESC, setting->attribute)->kind == LT_POINTER)
            status = set(call, LT_DESC, 0, setting->attribute,
                         (int64_t)(uintptr_t)addresses[setting->value]);
    }
    if (status)
        memset(call->addresses, 0xff, sizeof call->addresses);
    else
        memcpy(call->addresses, addresses, sizeof call->addresses);
    return status;
}

uint32_t cuda_alignment_of(const void *address) {
    enum { MAX = 256 };
    const uintptr_t bits = (uintptr_t)address | MAX;
    return (uint32_t)(bits & (~bits + 1));
}

hlo_status cuda_call_new(const cuda_device *device, const cuda_matmul *matmul,
                         void *const addresses[LT_PART_COUNT], char *why, size_t size,
                         cuda_call **out_call) {
    static const int alignments[] = {
        LT_PREFERENCE_MIN_ALIGNMENT_A_BYTES, LT_PREFERENCE_MIN_ALIGNMENT_B_BYTES,
        LT_PREFERENCE_MIN_ALIGNMENT_C_BYTES, LT_PREFERENCE_MIN_ALIGNMENT_D_BYTES};
    cuda_call *call = hlo_calloc(1, sizeof *call);
    if (!call) return HLO_OUT_OF_MEMORY;
    *call = (cuda_call){.device = device, .p = matmul};
    if (matmul->scale_type == LT_TYPE_64F) {
        call->alpha.f64 = matmul->alpha;
        call->beta.f64 = matmul->beta;
    } else {
        call->alpha.f32 = (float)matmul->alpha;
        call->beta.f32 = (float)matmul->beta;
    }
    const cuda_library *lib = device->lib;
    int status = lib->cublasLtMatmulDescCreate(&call->desc, matmul->compute, matmul->scale_type);
    for (uint32_t i = 0; i < matmul->setting_count && !status; i++) {
        const lt_setting *setting = &matmul->settings[i];
        if (lt_attribute_find(LT_DESC, setting->attribute)->kind != LT_POINTER)
            status = set(call, LT_DESC, 0, setting->attribute, setting->value);
    }
    for (lt_part part = LT_PART_A; part <= LT_PART_D && !status; part++) {
        const lt_matrix *m = &matmul->matrices[part];
        status = lib->cublasLtMatrixLayoutCreate(&call->layouts[part], m->type, (uint64_t)m->rows,
                                                 (uint64_t)m->cols, m->ld);
        if (matmul->batch == 1) continue;
        if (!status) status = set(call, LT_LAYOUT, part, LT_LAYOUT_BATCH_COUNT, matmul->batch);
        if (!status) status = set(call, LT_LAYOUT, part, LT_LAYOUT_STRIDED_BATCH_OFFSET, m->stride);
    }
    if (!status) status = set_pointers(call, addresses);
    if (!status) status = lib->cublasLtMatmulPreferenceCreate(&call->preference);
    if (!status)
        status = set(call, LT_PREFERENCE, 0, LT_PREFERENCE_MAX_WORKSPACE_BYTES,
                     (int64_t)matmul->workspace);
    if (!status)
        status =
            set(call, LT_PREFERENCE, 0, LT_PREFERENCE_REDUCTION_SCHEME_MASK, matmul->reductions);
    for (int part = LT_PART_A; part <= LT_PART_D && !status; part++)
        status =
            set(call, LT_PREFERENCE, 0, alignments[part], cuda_alignment_of(call->addresses[part]));
    if (status) {
        cuda_call_free(call);
        return refuse(lib, "a descriptor", status, NULL, why, size);
    }
    *out_call = call;
    return HLO_OK;
}

void cuda_call_free(cuda_call *call) {
    if (!call) return;
    const cuda_library *lib = call->device->lib;
    if (call->preference) lib->cublasLtMatmulPreferenceDestroy(call->preference);
    for (int part = LT_PART_A; part <= LT_PART_D; part++)
        if (call->layouts[part]) lib->cublasLtMatrixLayoutDestroy(call->layouts[part]);
    if (call->desc) lib->cublasLtMatmulDescDestroy(call->desc);
    hlo_free(call);
}

typedef struct query {
    const cuda_call *call;
    int wanted, found, status;
    lt_heuristic *results;
} query;

static void ask(void *arg) {
    query *q = arg;
    const cuda_call *call = q->call;
    q->found = 0;
    q->status = call->device->lib->cublasLtMatmulAlgoGetHeuristic(
        call->device->lt, call->desc, call->layouts[LT_PART_A], call->layouts[LT_PART_B],
        call->layouts[LT_PART_C], call->layouts[LT_PART_D], call->preference, q->wanted, q->results,
        &q->found);
}

hlo_status cuda_call_heuristic(cuda_call *call, uint32_t count, lt_heuristic *out_found,
                               uint32_t *out_count, char *why, size_t size) {
    query q = {.call = call, .wanted = (int)count, .results = out_found};
    ask(&q);
    uint32_t usable = 0;
    for (int i = 0; !q.status && i < q.found; i++)
        if (!out_found[i].state && out_found[i].workspace <= call->p->workspace)
            out_found[usable++] = out_found[i];
    *out_count = usable;
    if (usable) return HLO_OK;
    int status = q.status ? q.status : CUDA_LT_NOT_SUPPORTED;
    log_line line;
    with_log(call->device->lib, ask, &q, &line);
    return refuse(call->device->lib, "cublasLtMatmulAlgoGetHeuristic", status, &line, why, size);
}

bool cuda_call_accepts(const cuda_call *call, lt_heuristic *algorithm) {
    lt_heuristic checked;
    const bool accepts =
        !call->device->lib->cublasLtMatmulAlgoCheck(
            call->device->lt, call->desc, call->layouts[LT_PART_A], call->layouts[LT_PART_B],
            call->layouts[LT_PART_C], call->layouts[LT_PART_D], &algorithm->algo, &checked) &&
        checked.workspace <= call->p->workspace;
    if (accepts) algorithm->workspace = checked.workspace;
    return accepts;
}

typedef struct launch {
    const cuda_call *call;
    const lt_heuristic *algorithm;
    int status;
} launch;

static void run(void *arg) {
    launch *l = arg;
    const cuda_call *call = l->call;
    void *const *at = call->addresses;
    l->status = call->device->lib->cublasLtMatmul(
        call->device->lt, call->desc, &call->alpha, at[LT_PART_A], call->layouts[LT_PART_A],
        at[LT_PART_B], call->layouts[LT_PART_B], &call->beta, at[LT_PART_C],
        call->layouts[LT_PART_C], at[LT_PART_D], call->layouts[LT_PART_D], &l->algorithm->algo,
        at[LT_PART_WORKSPACE], l->algorithm->workspace, call->device->stream);
}

hlo_status cuda_call_launch(cuda_call *call, const lt_heuristic *algorithm,
                            void *const addresses[LT_PART_COUNT], char *why, size_t size) {
    const cuda_library *lib = call->device->lib;
    if (memcmp(call->addresses, addresses, sizeof call->addresses) != 0) {
        int status = set_pointers(call, addresses);
        if (status) return refuse(lib, "a descriptor", status, NULL, why, size);
    }
    launch l = {.call = call, .algorithm = algorithm};
    run(&l);
    if (!l.status) return HLO_OK;
    int status = l.status;
    log_line line;
    with_log(lib, run, &l, &line);
    return refuse(lib, "cublasLtMatmul", status, &line, why, size);
}
