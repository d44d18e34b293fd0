/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files of an --xla_dump_to folder by their names. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "hlo/dump.h"
#include "ir/text/diag.h"

typedef struct stage {
    const char *module, *name, *path;
    long rank;  /* sorts the stages of a module */
    int format; /* index into forms[]; a lower index is preferred */
} stage;

typedef struct module_stages {
    const char *name, *target;
    stage *stages;
    size_t count;
} module_stages;

struct hlo_dump {
    hlo_arena *arena;
    stage *stages; /* all stages, sorted by module and rank */
    uint32_t stage_count, stage_capacity;
    module_stages *modules;
    size_t module_count;
};

/* Suffixes of the file name of a stage. */
static const char *const forms[] = {".txt", ".hlo", ".txt.gz", ".hlo.pb"};
enum { FORM_COUNT = sizeof forms / sizeof *forms };

/* Ranks of stages. NUMBERED is the rank of stage 0000. The final position of the partitioner's
 * stage is computed when all stages are known. */
enum { FIRST, PARTITIONED, NUMBERED };
#define LAST LONG_MAX

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, size_t length, const char *with) {
    size_t size = strlen(with);
    return length >= size && memcmp(text + length - size, with, size) == 0;
}

/* Returns the rank of the stage `name`; a negative number if `name` is not a stage. */
static long rank_of(const char *name, size_t length) {
    char *end;
    if (length == strlen("before_optimizations") && starts(name, "before_optimizations"))
        return FIRST;
    if (length == strlen("after_spmd_partitioner") && starts(name, "after_spmd_partitioner"))
        return PARTITIONED;
    if (ends(name, length, "after_optimizations")) return LAST;
    errno = 0;
    long number = strtol(name, &end, 10);
    bool counted = *name >= '0' && *name <= '9' && end - name >= 4 && *end == '.' && !errno;
    return counted && number < LAST - NUMBERED && strstr(name, ".after_") ? NUMBERED + number : -1;
}

static void add_file(hlo_dump *dump, const char *folder, const char *file) {
    size_t length = strlen(file), module = 0;
    int form = 0;
    long rank = -1;
    while (form < FORM_COUNT && !ends(file, length, forms[form])) form++;
    if (form == FORM_COUNT) return;
    length -= strlen(forms[form]);
    /* `module_NNNN.NAME` is followed by a `.` and the name of a stage. NAME may contain dots, so
     * use the longest name of a stage. */
    const char *dot = starts(file, "module_") ? strchr(file, '.') : NULL;
    while (rank < 0 && dot && (dot = strchr(dot + 1, '.')) && (size_t)(dot - file) < length) {
        module = (size_t)(dot - file);
        rank = rank_of(dot + 1, length - module - 1);
        /* The TARGET of TARGET_after_optimizations contains a dot only in names such as
         * sm_9.0a_gpu. */
        if (rank == LAST && !starts(dot + 1, "sm_") && memchr(dot + 1, '.', length - module - 1))
            rank = -1;
    }
    if (rank < 0) return;
    hlo_arena_grow(dump->arena, &dump->stages, dump->stage_count, &dump->stage_capacity,
                   sizeof *dump->stages);
    dump->stages[dump->stage_count++] = (stage){
        hlo_arena_format(dump->arena, "%.*s", (int)module, file),
        hlo_arena_format(dump->arena, "%.*s", (int)(length - module - 1), file + module + 1),
        hlo_arena_format(dump->arena, "%s/%s", folder, file), rank, form};
}

static int by_module(const void *a, const void *b) {
    const stage *x = a, *y = b;
    int order = strcmp(x->module, y->module);
    if (order) return order;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    order = strcmp(x->name, y->name);
    return order ? order : x->format - y->format;
}

/* Lists the folder and groups its files by module. This is a separate function because local
 * variables of a function that calls setjmp() may be undefined after a jump. */
static hlo_status list(hlo_dump **out_dump, const char *folder, DIR *entries) {
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_arena *arena;
    hlo_dump *dump = *out_dump = hlo_arena_new_with(&recover, sizeof *dump, &arena);
    if (!dump) return HLO_OUT_OF_MEMORY;
    dump->arena = arena;
    for (const struct dirent *entry; (entry = readdir(entries));)
        add_file(dump, folder, entry->d_name);
    uint32_t kept = 0;
    if (dump->stage_count) qsort(dump->stages, dump->stage_count, sizeof *dump->stages, by_module);
    for (size_t i = 0; i < dump->stage_count; i++) {
        const stage *s = &dump->stages[i], *last = kept ? &dump->stages[kept - 1] : NULL;
        if (last && strcmp(last->module, s->module) == 0 && strcmp(last->name, s->name) == 0)
            continue;
        dump->stages[kept++] = *s;
    }
    dump->stage_count = kept;
    dump->modules = hlo_arena_array(dump->arena, kept + 1, sizeof *dump->modules);
    for (size_t i = 0; i < kept; i++) {
        stage *s = &dump->stages[i];
        module_stages *open = dump->module_count ? &dump->modules[dump->module_count - 1] : NULL;
        if (!open || strcmp(open->name, s->module) != 0) {
            open = &dump->modules[dump->module_count++];
            *open = (module_stages){s->module, NULL, s, 0};
        }
        open->count++;
    }
    for (size_t i = 0; i < dump->module_count; i++) {
        module_stages *of = &dump->modules[i];
        /* Move the stage after_spmd_partitioner after the partitioner's last numbered stage. */
        stage *stages = of->stages;
        const size_t count = of->count;
        size_t at = 0, to;
        while (at < count && stages[at].rank != PARTITIONED) at++;
        if (at != count) {
            to = at;
            for (size_t j = at + 1; j < count; j++) {
                const char *pipeline = strchr(stages[j].name, '.');
                if (pipeline && (starts(pipeline, ".spmd") || starts(pipeline, ".pre-spmd")))
                    to = j;
            }
            const stage partitioned = stages[at];
            memmove(&stages[at], &stages[at + 1], (to - at) * sizeof *stages);
            stages[to] = partitioned;
        }
        /* Read the TARGET in TARGET_after_optimizations. */
        const stage *final = &of->stages[of->count - 1];
        static const char ending[] = "_after_optimizations";
        size_t length = strlen(final->name), after = strlen(ending);
        of->target =
            final->rank != LAST || length <= after
                ? NULL
                : hlo_arena_format(dump->arena, "%.*s", (int)(length - after), final->name);
    }
    hlo_arena_set_recover(arena, NULL);
    return HLO_OK;
}

hlo_status hlo_dump_open(const char *folder, const hlo_diag_sink *sink, hlo_dump **out_dump) {
    *out_dump = NULL;
    DIR *entries = opendir(folder);
    if (!entries && errno == ENOMEM) return HLO_OUT_OF_MEMORY;
    if (!entries) return hlo_diag_refuse(sink, folder, 0, 0, "%s", strerror(errno));
    hlo_status status = list(out_dump, folder, entries);
    closedir(entries);
    if (status == HLO_OK && !(*out_dump)->module_count)
        status = hlo_diag_refuse(sink, folder, 0, 0,
                                 "no XLA dumps found (expected files such as "
                                 "module_0000.NAME.before_optimizations.txt; see --xla_dump_to)");
    if (status == HLO_OK) return status;
    hlo_dump_free(*out_dump);
    *out_dump = NULL;
    return status;
}

void hlo_dump_free(hlo_dump *dump) {
    if (dump) hlo_arena_free(dump->arena);
}

size_t hlo_dump_module_count(const hlo_dump *dump) {
    return dump->module_count;
}

const char *hlo_dump_module(const hlo_dump *dump, size_t module) {
    return dump->modules[module].name;
}

size_t hlo_dump_stage_count(const hlo_dump *dump, size_t module) {
    return dump->modules[module].count;
}

const char *hlo_dump_target(const hlo_dump *dump, size_t module) {
    return dump->modules[module].target;
}

size_t hlo_dump_keep(hlo_dump *dump, const char *glob) {
    size_t kept = 0;
    for (size_t i = 0; i < dump->module_count; i++) {
        const char *name = dump->modules[i].name, *dot = strchr(name, '.');
        if (fnmatch(glob, name, 0) == 0 || (dot && fnmatch(glob, dot + 1, 0) == 0))
            dump->modules[kept++] = dump->modules[i];
    }
    return dump->module_count = kept;
}

const char *hlo_dump_stage(const hlo_dump *dump, size_t module, size_t index) {
    return dump->modules[module].stages[index].name;
}

const char *hlo_dump_path(const hlo_dump *dump, size_t module, size_t index) {
    return dump->modules[module].stages[index].path;
}
