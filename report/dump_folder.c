/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files of an --xla_dump_to folder by their names. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "hlo/dump.h"
#include "hlo/text.h"
#include "ir/memory.h"
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
    size_t compilations; /* number of modules of the folder with this name and these stages */
} module_stages;

struct hlo_dump {
    hlo_arena *arena;
    stage *stages; /* all stages, sorted by module and rank */
    uint32_t stage_count, stage_capacity;
    module_stages *modules;
    size_t module_count;
    const char *other; /* the hint about a folder without dumps that has other files, or NULL */
};

/* Suffixes of the file name of a stage. */
static const char *const forms[] = {".txt", ".hlo", ".txt.gz", ".hlo.pb", ".hlo.pb.gz"};
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
    /* A number before the number of the stage is the end of the module's name. */
    if (counted && end[1 + strspn(end + 1, "0123456789")] == '.' && end[1] != '.') return -1;
    return counted && number < LAST - NUMBERED && strstr(name, ".after_") ? NUMBERED + number : -1;
}

/* Returns the part of the name that starts with `module_`, after the time stamp of
 * --xla_dump_include_timestamp; NULL if there is no such part. */
static const char *name_of(const char *file) {
    const size_t digits = strspn(file, "0123456789");
    const char *name = digits && file[digits] == '.' ? file + digits + 1 : file;
    return starts(name, "module_") ? name : NULL;
}

static void add_file(hlo_dump *dump, const char *folder, const char *file) {
    size_t length = strlen(file), module = 0;
    int form = 0;
    long rank = -1;
    if (ends(file, length, ".mlir"))
        dump->other = "the folder has MLIR files, but no XLA dumps; convert a file with: "
                      "python -m hlofp8 to-hlo FILE -o out.hlo";
    if (strcmp(file, "saved_model.pb") == 0)
        dump->other = "this is a SavedModel of TensorFlow, not HLO; load it, and set "
                      "XLA_FLAGS=--xla_dump_to=DIR, or print HLO with "
                      "f.experimental_get_compiler_ir(...)(stage=\"hlo\")";
    while (form < FORM_COUNT && !ends(file, length, forms[form])) form++;
    if (form == FORM_COUNT) return;
    length -= strlen(forms[form]);
    /* `module_NNNN.NAME` is followed by a `.` and the name of a stage. NAME may contain dots, so
     * use the longest name of a stage. XLA omits a long NAME. A time stamp may precede `module_`.
     */
    const char *dot = name_of(file);
    for (dot = dot ? strchr(dot, '.') : NULL; rank < 0 && dot && (size_t)(dot - file) < length;
         dot = strchr(dot + 1, '.')) {
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

static bool equal_files(const char *a, const char *b) {
    enum { CHUNK = 1 << 12 };
    char one[CHUNK], other[CHUNK];
    struct stat of_a, of_b;
    if (stat(a, &of_a) != 0 || stat(b, &of_b) != 0 || of_a.st_size != of_b.st_size ||
        !S_ISREG(of_a.st_mode) || !S_ISREG(of_b.st_mode))
        return false;
    FILE *files[] = {fopen(a, "rb"), fopen(b, "rb")};
    bool equal = files[0] && files[1];
    for (size_t size = CHUNK; equal && size == CHUNK;) {
        size = fread(one, 1, CHUNK, files[0]);
        equal = fread(other, 1, CHUNK, files[1]) == size && memcmp(one, other, size) == 0;
    }
    for (int i = 0; i < 2; i++) {
        if (!files[i]) continue;
        equal &= !ferror(files[i]);
        fclose(files[i]);
    }
    return equal;
}

/* True if two binary modules are equal apart from the ids that text does not have, such as that of
 * the compilation. */
static bool equal_modules(const stage *a, const stage *b) {
    const char *const paths[] = {a->path, b->path};
    char *texts[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    bool equal = a->format == b->format && strstr(forms[a->format], ".pb");
    for (int i = 0; i < 2 && equal; i++) {
        hlo_module *module;
        equal = hlo_module_parse_file(paths[i], NULL, &module) == HLO_OK &&
                hlo_module_to_text(module, NULL, &texts[i], &sizes[i]) == HLO_OK;
        hlo_module_free(module);
    }
    equal = equal && sizes[0] == sizes[1] && memcmp(texts[0], texts[1], sizes[0]) == 0;
    hlo_free(texts[0]);
    hlo_free(texts[1]);
    return equal;
}

/* True if two modules are compilations of one module: their names without numbers and all their
 * stages are equal. */
static bool compiled_again(const module_stages *a, const module_stages *b) {
    const char *name = strchr(name_of(a->name), '.'), *other = strchr(name_of(b->name), '.');
    bool equal = name && other && strcmp(name, other) == 0 && a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++)
        equal = strcmp(a->stages[i].name, b->stages[i].name) == 0;
    for (size_t i = 0; i < a->count && equal; i++)
        equal = equal_files(a->stages[i].path, b->stages[i].path) ||
                equal_modules(&a->stages[i], &b->stages[i]);
    return equal;
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
            *open = (module_stages){.name = s->module, .stages = s, .compilations = 1};
        }
        open->count++;
    }
    const size_t listed = dump->module_count;
    dump->module_count = 0;
    for (size_t i = 0; i < listed; i++) {
        size_t same = 0;
        while (same < dump->module_count &&
               !compiled_again(&dump->modules[same], &dump->modules[i]))
            same++;
        if (same < dump->module_count)
            dump->modules[same].compilations++;
        else
            dump->modules[dump->module_count++] = dump->modules[i];
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
    if (!entries) return hlo_diag_refuse(sink, HLO_DIAG_FILE, folder, 0, 0, "%s", strerror(errno));
    hlo_status status = list(out_dump, folder, entries);
    closedir(entries);
    if (status == HLO_OK && !(*out_dump)->module_count)
        status =
            hlo_diag_refuse(sink, HLO_DIAG_FILE, folder, 0, 0, "%s",
                            (*out_dump)->other ? (*out_dump)->other
                                               : "no XLA dumps found (expected files such as "
                                                 "module_0000.NAME.before_optimizations.txt; see "
                                                 "--xla_dump_to)");
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

size_t hlo_dump_compilation_count(const hlo_dump *dump, size_t module) {
    return dump->modules[module].compilations;
}

const char *hlo_dump_target(const hlo_dump *dump, size_t module) {
    return dump->modules[module].target;
}

size_t hlo_dump_keep(hlo_dump *dump, const char *glob) {
    size_t kept = 0;
    for (size_t i = 0; i < dump->module_count; i++) {
        const char *name = dump->modules[i].name, *bare = name_of(name), *dot = strchr(bare, '.');
        if (fnmatch(glob, name, 0) == 0 || fnmatch(glob, bare, 0) == 0 ||
            (dot && fnmatch(glob, dot + 1, 0) == 0))
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
