/* SPDX-License-Identifier: Apache-2.0 */
/* Custom calls that run LAPACK routines, by lapack.def. The LAPACK library is loaded when a module
 * first needs it. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel.h"
#include "matmul/json.h"
#include "runtime/cpu/cpu.h"

typedef struct routine {
    const char *name, *complex_name, *flags, *operands, *results, *old_operands, *old_results,
        *arguments, *limits;
} routine;

static const routine routines[] = {
#define LAPACK_ROUTINE(...) {__VA_ARGS__},
#include "runtime/cpu/lapack.def"
#undef LAPACK_ROUTINE
};

typedef struct target {
    const char *name, *routine, *operands, *results;
} target;

static const target targets[] = {
#define LAPACK_TARGET(...) {__VA_ARGS__},
#include "runtime/cpu/lapack.def"
#undef LAPACK_TARGET
};

/* ---------------------------------------------------------------------------------- the library */

/* A routine of LAPACK. Fortran passes every argument by reference, and the lengths of strings by
 * value after the other arguments. In the calling conventions of x86-64 and AArch64, a function may
 * be passed more arguments than it has. */
enum { MAX_ARGUMENTS = 22 };
typedef void fortran(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                     void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                     void *, void *);

/* Finds a function. The OpenBLAS in scipy's wheels prefixes its names. */
static void *find_symbol(void *library, const char *name) {
    char prefixed[64];
    snprintf(prefixed, sizeof prefixed, "scipy_%s", name);
    void *symbol = dlsym(library, name);
    return symbol ? symbol : dlsym(library, prefixed);
}

/* Loads the library of the device. Returns an error, or NULL. */
static const char *load_library(cpu_device *cpu, hlo_arena *arena) {
    const char *path = getenv("HLO_LAPACK");
    const bool given = path && *path;
    const char *const names[] = {given ? path : "libopenblas.so.0", "liblapack.so.3"};
    if (cpu->lapack) return NULL;
    for (int i = 0; i < (given ? 1 : 2) && !cpu->lapack; i++)
        cpu->lapack = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!cpu->lapack)
        return hlo_arena_format(
            arena,
            "it requires LAPACK, which cannot be loaded (%s): install the package "
            "libopenblas0, or set HLO_LAPACK to the path of a LAPACK library",
            dlerror());
    /* With one thread, results do not depend on the number of processors. */
    void *symbol = find_symbol(cpu->lapack, "openblas_set_num_threads");
    void (*set_threads)(int);
    memcpy(&set_threads, &symbol, sizeof set_threads);
    if (set_threads) set_threads(1);
    return NULL;
}

/* -------------------------------------------------------------------------------------- reading */

enum { MAX_BUFFERS = 8, MAX_FLAGS = 4, MAX_SCALARS = 8, LETTERS = 26 };

/* An array of the call: a matrix, vector or scalar for each element of the batch. */
typedef struct buffer {
    char name;
    hlo_type type;           /* the element type of the array in the module */
    uint32_t rank;           /* without the batch */
    int64_t dims[2];         /* without the batch */
    int32_t operand, result; /* the number of the leaf; -1: none */
    bool splits; /* pairs of columns of a real matrix become complex conjugate columns */
} buffer;

typedef struct flag {
    const char *name, *letters;
    size_t name_size, letter_count;
    char value;
} flag;

/* A scalar operand that is read when the call runs. */
typedef struct scalar {
    const char *word;
    size_t size;
    uint32_t operand;
} scalar;

/* A call, and the job's state. */
typedef struct lapack_call {
    const routine *routine;
    fortran *function;
    hlo_type type, real, complex;
    bool is_complex, any_layout;
    buffer buffers[MAX_BUFFERS];
    uint32_t buffer_count, flag_count, scalar_count;
    flag flags[MAX_FLAGS];
    scalar scalars[MAX_SCALARS];
    int64_t dims[LETTERS]; /* -1: not known */
    int32_t low, high;
    uint32_t batch_rank;
    const int64_t *batch; /* NULL until the first array is read */
    char why[256];        /* the error of a run */
} lapack_call;

typedef struct reading {
    lapack_call *call;
    const hlo_instruction *instr;
    hlo_arena *arena;
} reading;

/* Returns the next word of a list that applies to the matrix's type, and its size; NULL at the
 * end. */
static const char *next_word(const lapack_call *c, const char **list, size_t *size) {
    for (;;) {
        *list += strspn(*list, " ");
        const char *word = *list;
        if (!*word) return NULL;
        *list += strcspn(*list, " ");
        const bool only = *word == '-' || *word == '+';
        if (only && (*word == '+') != c->is_complex) continue;
        *size = (size_t)(*list - word) - only;
        return word + only;
    }
}

static bool is_word(const char *word, size_t size, const char *text) {
    return strlen(text) == size && !memcmp(word, text, size);
}

static buffer *find_buffer(lapack_call *c, char name) {
    for (uint32_t i = 0; i < c->buffer_count; i++)
        if (c->buffers[i].name == name) return &c->buffers[i];
    return NULL;
}

static flag *find_flag(lapack_call *c, const char *name, size_t size) {
    for (uint32_t i = 0; i < c->flag_count; i++)
        if (c->flags[i].name_size == size && !memcmp(c->flags[i].name, name, size))
            return &c->flags[i];
    return NULL;
}

static int64_t *dim_of(lapack_call *c, char letter) {
    int64_t *dim = &c->dims[letter - 'a'];
    if (letter == 'k' && *dim < 0)
        *dim = c->dims['m' - 'a'] < c->dims['n' - 'a'] ? c->dims['m' - 'a'] : c->dims['n' - 'a'];
    return dim;
}

static const hlo_shape *leaf_of(const hlo_instruction *instr, bool result, uint32_t index) {
    if (!result) return hlo_instr_operand(instr, index)->shape;
    return instr->shape->type == HLO_TYPE_TUPLE ? instr->shape->elements[index] : instr->shape;
}

static const char *describe(const reading *r, const hlo_shape *shape) {
    char *text = hlo_arena_alloc(r->arena, 512);
    hlo_shape_format(shape, true, text, 512);
    return text;
}

/* Checks that elements are in memory as the routine expects: each matrix column after column, the
 * batch in row-major order. */
static bool has_layout(const reading *r, const buffer *b, bool result, uint32_t index,
                       const hlo_shape *shape) {
    const hlo_attr *wanted = hlo_instr_attr(r->instr, HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    if (wanted && !result) shape = wanted->u.shapes->v[index];
    uint32_t at = 0; /* dimensions of one element may be anywhere */
    for (uint32_t i = 0; i < shape->rank; i++) {
        uint32_t dim = shape->rank - 1 - i;
        if (b->rank == 2 && i < 2) dim = shape->rank - 2 + i;
        if (shape->dims[dim] == 1) continue;
        for (;; at++) {
            if (at == shape->rank) return false;
            const int64_t own =
                shape->layout ? shape->layout->minor_to_major[at] : shape->rank - 1 - at;
            if (shape->dims[own] == 1) continue;
            if (own != dim) return false;
            at++;
            break;
        }
    }
    return true;
}

/* Declares or uses the array that `word` names, and checks the shape of the leaf. Returns an error,
 * or NULL. */
static const char *read_array(const reading *r, const char *word, size_t size, bool result,
                              uint32_t index) {
    lapack_call *c = r->call;
    const char *what = result ? "result" : "operand";
    const hlo_shape *shape = leaf_of(r->instr, result, index);
    buffer *b = find_buffer(c, *word);
    /* Find the declaration, which may be in another column, as that of a result of an old call. */
    const char *spec = size > 2 && word[1] == '=' ? word : NULL;
    const char *const lists[] = {c->routine->operands, c->routine->results};
    for (int i = 0; i < 2; i++) {
        size_t length;
        const char *list = lists[i], *other;
        while (!spec && (other = next_word(c, &list, &length)))
            if (other[0] == *word && length > 2 && other[1] == '=') spec = other;
    }
    if (*word == 'I') spec = "I=i";
    if (!b) {
        b = &c->buffers[c->buffer_count++];
        *b = (buffer){.name = *word, .operand = -1, .result = -1};
    }
    b->type = spec[2] == 'T'   ? c->type
              : spec[2] == 'R' ? c->real
              : spec[2] == 'C' ? c->complex
                               : HLO_TYPE_S32;
    b->splits = spec[2] == 'C' && !c->is_complex;
    b->rank = 0;
    const char *letters = spec + 3;
    for (const char *at = letters; *at >= 'a' && *at <= 'z'; at++) b->rank++;
    if (!hlo_shape_is_array(shape) || shape->rank < b->rank || shape->rank > HLO_EVAL_MAX_RANK ||
        !hlo_shape_is_addressable(shape))
        return hlo_arena_format(r->arena, "%s %u is %s", what, index, describe(r, shape));
    const uint32_t batch_rank = shape->rank - b->rank;
    if (!c->batch) {
        c->batch = shape->dims;
        c->batch_rank = batch_rank;
    }
    bool fits = shape->type == b->type && batch_rank == c->batch_rank;
    for (uint32_t d = 0; d < batch_rank && fits; d++) fits = shape->dims[d] == c->batch[d];
    for (uint32_t d = 0; d < b->rank && fits; d++) {
        const bool less = *letters && letters[d + 1] == '-';
        const int64_t found = shape->dims[batch_rank + d];
        if (found > INT32_MAX)
            return hlo_arena_format(r->arena, "%s %u has more than 2^31-1 rows or columns", what,
                                    index);
        int64_t *dim = result ? dim_of(c, letters[d]) : &c->dims[letters[d] - 'a'];
        if (*dim < 0) *dim = found + less;
        b->dims[d] = *dim - (less && *dim > 0);
        fits = b->dims[d] == found;
    }
    if (!fits) {
        const char *need = "";
        for (uint32_t d = 0; d < batch_rank && d < c->batch_rank; d++)
            need = hlo_arena_format(r->arena, "%s%lld,", need, (long long)c->batch[d]);
        for (uint32_t d = 0; d < b->rank; d++) {
            const int64_t dim = *dim_of(c, letters[d]);
            need = dim < 0 ? hlo_arena_format(r->arena, "%s%c,", need, letters[d])
                           : hlo_arena_format(r->arena, "%s%lld,", need,
                                              (long long)dim - (letters[d + 1] == '-' && dim > 0));
        }
        return hlo_arena_format(r->arena, "%s %u is %s, expected %s[%.*s]", what, index,
                                describe(r, shape), hlo_types[b->type].name,
                                (int)strlen(need) - (*need != 0), need);
    }
    if (!c->any_layout && !has_layout(r, b, result, index, shape))
        return hlo_arena_format(
            r->arena,
            "%s %u is %s, but LAPACK requires column-major matrices and a row-major batch", what,
            index, describe(r, shape));
    *(result ? &b->result : &b->operand) = (int32_t)index;
    return NULL;
}

/* Checks the operands or results of the call by a list of words. */
static const char *read_list(const reading *r, const char *list, bool result) {
    lapack_call *c = r->call;
    const char *word;
    const uint32_t count = result ? hlo_call_leaves(r->instr->shape) : r->instr->operand_count;
    const char *why = NULL;
    size_t size;
    uint32_t index = 0;
    while (!why && (word = next_word(c, &list, &size))) {
        if (*word == '?' && index == count) break;
        if (*word == '?') word++, size--;
        const hlo_shape *shape = index < count ? leaf_of(r->instr, result, index) : NULL;
        if (!shape) {
            index++; /* too few: only count */
        } else if (*word >= 'A' && *word <= 'Z') {
            why = read_array(r, word, size, result, index++);
        } else if (result) {
            if (!hlo_shape_is_array(shape)) why = "a result is not an array";
            index++;
        } else {
            const bool is_alpha = *word == 'a' && size == 1;
            if (!hlo_shape_is_scalar(shape) ||
                (is_alpha ? shape->type != c->type
                          : shape->type != HLO_TYPE_S32 && shape->type != HLO_TYPE_U8))
                why = hlo_arena_format(r->arena, "operand %u is %s, expected a scalar of type %s",
                                       index, describe(r, shape),
                                       is_alpha ? hlo_types[c->type].name : "s32 or u8");
            else if (*word != '_')
                c->scalars[c->scalar_count++] = (scalar){word, size, index};
            index++;
        }
    }
    if (!why && index != count)
        why = hlo_arena_format(r->arena, "it has %u %s%s, expected %u", count,
                               result ? "result" : "operand", count == 1 ? "" : "s", index);
    return why;
}

/* Reads the flags' names and letters, and sets their defaults. */
static void read_flags(lapack_call *c) {
    const char *list = c->routine->flags, *word;
    size_t size;
    while ((word = next_word(c, &list, &size))) {
        const size_t name = strcspn(word, ":");
        c->flags[c->flag_count++] = (flag){.name = word,
                                           .name_size = name,
                                           .letters = word + name + 1,
                                           .letter_count = size - name - 1,
                                           .value = word[size - 1]};
    }
}

/* Reads the attributes of a typed call. */
static const char *read_config(const reading *r) {
    lapack_call *c = r->call;
    const char *text = hlo_instr_str(r->instr, HLO_ATTR_BACKEND_CONFIG), *why = NULL;
    const flag *wrong = NULL;
    bool starved = false;
    json_t *json = NULL;
    if (text) why = hlo_mlir_read(text, &json, &starved);
    if (starved) hlo_arena_exhausted(r->arena);
    for (uint32_t i = 0; i < c->flag_count && !why; i++) {
        flag *f = &c->flags[i];
        char key[32];
        snprintf(key, sizeof key, "%.*s", (int)f->name_size, f->name);
        const json_t *value = json_object_get(json, key);
        const json_int_t code = json_is_boolean(value)
                                    ? f->letters[json_is_true(value) && f->letter_count > 1]
                                    : json_integer_value(value);
        if (code > 0 && code <= CHAR_MAX && memchr(f->letters, (int)code, f->letter_count))
            f->value = (char)code;
        else
            wrong = f;
    }
    const json_int_t low = json_integer_value(json_object_get(json, "low"));
    const json_int_t high = json_integer_value(json_object_get(json, "high"));
    if (low >= 0 && low <= INT32_MAX) c->low = (int32_t)low;
    if (high >= 0 && high <= INT32_MAX) c->high = (int32_t)high;
    json_decref(json);
    if (!wrong) return why;
    return hlo_arena_format(r->arena, "its attribute %.*s is not one of the letters %.*s",
                            (int)wrong->name_size, wrong->name, (int)wrong->letter_count,
                            wrong->letters);
}

/* Working memory of these routines has fewer than 9 n^2 elements, which LAPACK counts in s32. */
enum { MAX_ITERATED = 15000 };

/* Checks the relations of dimensions and flags. Without `all`, the values of flags are not known
 * yet. */
static const char *check_limits(lapack_call *c, hlo_arena *arena, bool all) {
    const char *list = c->routine->limits, *word;
    const int64_t m = *dim_of(c, 'm'), n = *dim_of(c, 'n');
    size_t size;
    while ((word = next_word(c, &list, &size))) {
        if (is_word(word, size, "iterates")) {
            if (m > MAX_ITERATED || n > MAX_ITERATED)
                return hlo_arena_format(arena,
                                        "a matrix has more than %d rows or columns, for "
                                        "which LAPACK cannot count its working memory",
                                        MAX_ITERATED);
        } else if (is_word(word, size, "svd")) {
            const int64_t k = *dim_of(c, 'k'), u = *dim_of(c, 'u'), v = *dim_of(c, 'v');
            const bool whole = u == m && v == n, thin = u == k && v == k;
            const char mode = find_flag(c, "mode", 4)->value;
            if ((!whole && !thin) || (all && ((mode == 'A' && !whole) || (mode == 'S' && !thin))))
                return "the dimensions of the singular vectors do not match its mode";
        } else if (word[1] == '=') {
            const char side = find_flag(c, word + 2, size - 2)->value;
            if (all && *dim_of(c, word[0]) != (side == 'L' ? m : n))
                return hlo_arena_format(arena, "the first matrix has %lld rows, expected %lld",
                                        (long long)*dim_of(c, word[0]),
                                        (long long)(side == 'L' ? m : n));
        } else if (*dim_of(c, word[0]) > *dim_of(c, word[3])) {
            return hlo_arena_format(arena, "%c is %lld, expected at most %c, which is %lld",
                                    word[0], (long long)*dim_of(c, word[0]), word[3],
                                    (long long)*dim_of(c, word[3]));
        }
    }
    if (all && strstr(c->routine->arguments, "low") &&
        (n ? c->low < 1 || c->low > c->high || c->high > n : c->low != 1 || c->high != 0))
        return hlo_arena_format(arena, "low and high are %d and %d, expected rows of the matrix",
                                c->low, c->high);
    return NULL;
}

/* Finds the routine that a target names. Returns false if the target names none. `out_type` is the
 * letter of the type, or 0. */
static bool find_routine(const char *name, const routine **out_routine, const target **out_target,
                         char *out_type, bool *out_typed) {
    static const char ending[] = "_ffi";
    *out_type = 0;
    *out_typed = true;
    *out_target = NULL;
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(name, targets[i].name)) {
            *out_target = &targets[i];
            name = targets[i].routine;
            size = strlen(name);
        }
    if (!*out_target) {
        const bool blas = !strncmp(name, "blas_", 5);
        if (!blas && strncmp(name, "lapack_", 7) != 0) return false;
        *out_typed = size > 4 && !strcmp(name + size - 4, ending);
        if (*out_typed) size -= 4;
        name += blas ? 5 : 7;
        size -= blas ? 5 : 7;
        *out_type = *name;
        if (!*name || !strchr("sdcz", *name)) return false;
        name++, size--;
        if (blas != (!*out_typed && is_word(name, size, "trsm"))) return false;
    }
    const bool is_complex = *out_type == 'c' || *out_type == 'z';
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++) {
        *out_routine = &routines[i];
        if (is_word(name, size, is_complex ? routines[i].complex_name : routines[i].name) &&
            (*out_typed || *routines[i].old_operands))
            return true;
    }
    return false;
}

bool cpu_is_lapack(const hlo_instruction *instr) {
    const routine *found;
    const target *xla;
    char type;
    bool typed;
    const char *name =
        instr->op == HLO_OP_CUSTOM_CALL ? hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET) : NULL;
    return name && find_routine(name, &found, &xla, &type, &typed);
}

/* Reads a call. Returns an error (static or in the arena), or NULL. */
static const char *read_call(cpu_device *cpu, const hlo_instruction *instr, hlo_arena *arena,
                             lapack_call *c) {
    static const struct {
        char letter;
        hlo_type type, real, complex;
    } types[] = {{'s', HLO_TYPE_F32, HLO_TYPE_F32, HLO_TYPE_C64},
                 {'d', HLO_TYPE_F64, HLO_TYPE_F64, HLO_TYPE_C128},
                 {'c', HLO_TYPE_C64, HLO_TYPE_F32, HLO_TYPE_C64},
                 {'z', HLO_TYPE_C128, HLO_TYPE_F64, HLO_TYPE_C128}};
    const target *xla;
    bool typed;
    char letter;
    *c = (lapack_call){.low = -1, .high = -1};
    const reading r = {c, instr, arena};
    find_routine(hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET), &c->routine, &xla, &letter,
                 &typed);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (letter ? letter == types[i].letter
                   : instr->operand_count &&
                         types[i].type == hlo_instr_operand(instr, 0)->shape->type) {
            c->type = types[i].type;
            c->real = types[i].real;
            c->complex = types[i].complex;
            c->is_complex = c->type != c->real;
            letter = types[i].letter;
        }
    if (!letter) return "its matrix is not of type f32, f64, c64 or c128";
    for (int i = 0; i < LETTERS; i++) c->dims[i] = -1;
    read_flags(c);
    c->any_layout = xla != NULL;
    const char *why = NULL;
    if (typed && !xla) why = read_config(&r);
    if (!why)
        why = read_list(&r,
                        xla     ? xla->operands
                        : typed ? c->routine->operands
                                : c->routine->old_operands,
                        false);
    if (!why)
        why = read_list(&r,
                        xla     ? xla->results
                        : typed ? c->routine->results
                                : c->routine->old_results,
                        true);
    if (!why) why = check_limits(c, arena, typed);
    flag *uplo = find_flag(c, "uplo", 4);
    const char *config = hlo_instr_str(instr, HLO_ATTR_BACKEND_CONFIG);
    if (xla && uplo && config && !why) {
        config += strspn(config, " \"");
        if (*config == '0') uplo->value = 'U';
        if ((*config != '0' && *config != '1') || config[1] != ',')
            why = "its backend_config is not \"lower,sort,iterations,tolerance\"";
    }
    if (why) return why;
    why = load_library(cpu, arena);
    if (why) return why;
    const char *name = hlo_arena_format(
        arena, "%c%s_", letter, c->is_complex ? c->routine->complex_name : c->routine->name);
    void *symbol = find_symbol(cpu->lapack, name);
    memcpy(&c->function, &symbol, sizeof c->function);
    return symbol ? NULL : hlo_arena_format(arena, "the LAPACK library has no function %s", name);
}

const char *cpu_lapack_refusal(cpu_device *cpu, const hlo_instruction *instr, hlo_arena *arena) {
    lapack_call c;
    return read_call(cpu, instr, arena, &c);
}

void cpu_lapack_prepare(cpu_device *cpu, hlo_job *job, hlo_arena *arena) {
    lapack_call *c = hlo_arena_zero(arena, sizeof *c);
    read_call(cpu, job->instr, arena, c);
    job->state = c;
}

/* ------------------------------------------------------------------------------------ execution */

/* The run of a call on one element of the batch. */
typedef struct running {
    lapack_call *call;
    const hlo_job *job;
    const hlo_eval_env *env;
    hlo_arena *scratch;
    void *data[MAX_BUFFERS];  /* dense, column-major */
    void *parts[MAX_BUFFERS]; /* of buffers that split: the real matrix */
    int32_t leading[MAX_BUFFERS];
    int32_t dims[LETTERS];
    void *work, *rwork, *iwork;
    int32_t work_size, rwork_size, iwork_size;
    double _Complex alpha; /* or an f32, f64 or c64 at the same address */
    int32_t info;
} running;

/* Reads the scalar operands. Returns an error, or NULL. */
static const char *read_scalars(running *run) {
    lapack_call *c = run->call;
    hlo_arena *scratch = run->scratch;
    int64_t batch = 1;
    bool full = true;
    for (uint32_t d = 0; d < c->batch_rank; d++) /* may overflow if the matrices are empty */
        batch = (int64_t)((uint64_t)batch * (uint64_t)c->batch[d]);
    for (uint32_t i = 0; i < c->scalar_count; i++) {
        const scalar *s = &c->scalars[i];
        const hlo_view *view = &run->job->operands[s->operand];
        if (s->size == 1 && *s->word == 'a') {
            memcpy(&run->alpha, view->data, hlo_types[view->type].bytes);
            continue;
        }
        const int64_t value = hlo_view_integer(view, 0);
        flag *f = find_flag(c, s->word, s->size);
        if (s->size == 1 || !f) {
            const int64_t wanted = *s->word == 'b' ? batch : *dim_of(c, *s->word);
            if (is_word(s->word, s->size, "full"))
                full = value != 0;
            else if (is_word(s->word, s->size, "low"))
                c->low = (int32_t)value;
            else if (is_word(s->word, s->size, "high"))
                c->high = (int32_t)value;
            else if (value != wanted)
                return hlo_arena_format(scratch, "operand %u is %lld, expected %lld", s->operand,
                                        (long long)value, (long long)wanted);
            continue;
        }
        if (view->type == HLO_TYPE_U8
                ? value == 0 || !memchr(f->letters, (int)value, f->letter_count)
                : value < 0 || value >= (int64_t)f->letter_count)
            return hlo_arena_format(scratch, "operand %u is %lld, which is not a value of %.*s",
                                    s->operand, (long long)value, (int)f->name_size, f->name);
        f->value = view->type == HLO_TYPE_U8 ? (char)value : f->letters[value];
    }
    flag *mode = find_flag(c, "mode", 4);
    if (mode && mode->value == 'A' && !full) mode->value = 'S';
    return c->scalar_count ? check_limits(c, scratch, true) : NULL;
}

static int64_t size_of(const buffer *b) {
    int64_t size = 1;
    for (uint32_t d = 0; d < b->rank; d++) size *= b->dims[d];
    return size;
}

/* Copies an array of one element of the batch from the operand, or to the result. */
static void copy(const running *run, uint32_t index, const int64_t *batch, bool in) {
    const buffer *b = &run->call->buffers[index];
    const hlo_view *whole = in ? &run->job->operands[b->operand] : &run->job->results[b->result];
    const int64_t strides[] = {1, b->dims[0]};
    const uint32_t outer = run->call->batch_rank;
    hlo_dims at = {{0}};
    if (!size_of(b)) return;
    memcpy(at.v, batch, outer * sizeof *batch);
    const hlo_view part = {b->type, b->rank, b->dims, whole->strides + outer,
                           hlo_view_element(whole, at.v)};
    const hlo_view own = {b->type, b->rank, b->dims, strides, run->data[index]};
    hlo_view_copy(run->env, in ? &part : &own, in ? &own : &part);
}

static double real_at(hlo_type type, const void *data, int64_t index) {
    return type == HLO_TYPE_F32 || type == HLO_TYPE_C64 ? (double)((const float *)data)[index]
                                                        : ((const double *)data)[index];
}

/* True if all numbers of the matrix A are finite. */
static bool is_finite(const running *run) {
    const buffer *a = find_buffer(run->call, 'A');
    const int64_t count = size_of(a) * (run->call->is_complex ? 2 : 1);
    const void *data = run->data[a - run->call->buffers];
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(real_at(run->call->real, data, i))) return false;
    return true;
}

static void store_real(hlo_type type, void *data, int64_t index, double value) {
    if (type == HLO_TYPE_F32 || type == HLO_TYPE_C64)
        ((float *)data)[index] = (float)value;
    else
        ((double *)data)[index] = value;
}

/* Converts eigenvectors of a real matrix: two columns for a pair of conjugate eigenvalues become
 * the vectors x + iy and x - iy. */
static void split(const running *run, uint32_t index) {
    lapack_call *c = run->call;
    const buffer *b = &c->buffers[index];
    const void *imaginary = run->data[find_buffer(c, 'Y') - c->buffers];
    const int64_t n = b->dims[0];
    for (int64_t j = 0; j < n; j++) {
        const bool pair = real_at(c->real, imaginary, j) != 0 && j + 1 < n;
        for (int64_t i = 0; i < n; i++) {
            const double x = real_at(c->real, run->parts[index], j * n + i);
            const double y = pair ? real_at(c->real, run->parts[index], (j + 1) * n + i) : 0;
            for (int64_t k = 0; k <= pair; k++) {
                store_real(b->type, run->data[index], 2 * ((j + k) * n + i), x);
                store_real(b->type, run->data[index], 2 * ((j + k) * n + i) + 1, k ? -y : y);
            }
        }
        j += pair;
    }
}

/* Calls the routine with working memory of run->work_size elements. */
static void call_routine(running *run) {
    lapack_call *c = run->call;
    void *arguments[MAX_ARGUMENTS];
    uint32_t count = 0;
    const char *list = c->routine->arguments, *word;
    size_t size;
    while ((word = next_word(c, &list, &size))) {
        flag *f = size > 1 ? find_flag(c, word, size) : NULL;
        if (f) {
            arguments[count++] = &f->value;
        } else if (*word >= 'A' && *word <= 'Z') {
            const buffer *b = find_buffer(c, *word);
            const uint32_t i = (uint32_t)(b - c->buffers);
            char *data = run->parts[i] ? run->parts[i] : run->data[i];
            arguments[count++] = data + (size > 1 && size_of(b) ? hlo_types[b->type].bytes : 0);
            if (b->rank == 2) arguments[count++] = &run->leading[i];
        } else if (size == 1) {
            arguments[count++] = &run->dims[*word - 'a'];
        } else if (is_word(word, size, "work")) {
            arguments[count++] = run->work;
            arguments[count++] = &run->work_size;
        } else {
            arguments[count++] = is_word(word, size, "alpha")    ? &run->alpha
                                 : is_word(word, size, "low")    ? &c->low
                                 : is_word(word, size, "high")   ? &c->high
                                 : is_word(word, size, "info")   ? &run->info
                                 : is_word(word, size, "rwork")  ? run->rwork
                                 : is_word(word, size, "lrwork") ? &run->rwork_size
                                 : is_word(word, size, "liwork") ? &run->iwork_size
                                 : is_word(word, size, "select") ? NULL
                                                                 : run->iwork;
        }
    }
    /* The lengths of strings follow. */
    while (count < MAX_ARGUMENTS) arguments[count++] = (void *)(intptr_t)1;
    void **a = arguments;
    c->function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
                a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21]);
}

/* Allocates working memory: as much as the routine wants, and for the kinds whose size it does not
 * return, at least as much as any routine needs. Returns false if LAPACK cannot count it. */
static bool allocate_work(running *run) {
    lapack_call *c = run->call;
    const int64_t m = c->dims['m' - 'a'], n = c->dims['n' - 'a'];
    const int64_t most = m > n ? m : n, least = m >= 0 && m < n ? m : n;
    if (!strstr(c->routine->arguments, " work")) return true;
    if (strstr(c->routine->limits, "iterates")) {
        run->iwork_size = (int32_t)(8 * most + 8);
        run->iwork = hlo_arena_array(run->scratch, (size_t)run->iwork_size, sizeof(int32_t));
    }
    if (c->is_complex && strstr(c->routine->arguments, "rwork")) {
        int64_t size = 7 * most + 8;
        if (run->iwork) size += 7 * least * least + 2 * most * least;
        run->rwork_size = (int32_t)size;
        run->rwork = hlo_arena_array(run->scratch, (size_t)size, hlo_types[c->real].bytes);
    }
    double _Complex wanted = 0;
    run->work = &wanted;
    run->work_size = -1; /* the routine only writes the size that it wants */
    call_routine(run);
    /* A size in f32 may have been rounded down. */
    const double size =
        ceil(real_at(c->real, &wanted, 0) * (c->real == HLO_TYPE_F32 ? 1 + 0x1p-23 : 1));
    if (!(size >= 0 && size <= INT32_MAX)) return false;
    run->work_size = size < 1 ? 1 : (int32_t)size;
    run->work = hlo_arena_array(run->scratch, (size_t)run->work_size, hlo_types[c->type].bytes);
    return true;
}

/* Computes one element of the batch, whose operands are in run->data. */
static void compute(running *run) {
    lapack_call *c = run->call;
    run->info = 0;
    bool empty = false;
    for (uint32_t i = 0; i < c->buffer_count; i++)
        empty |= c->buffers[i].operand >= 0 && c->buffers[i].rank == 2 && !size_of(&c->buffers[i]);
    if (empty) {
        /* Nothing is computed. All singular vectors, if requested, are those of the identity. */
        const flag *mode = find_flag(c, "mode", 4);
        for (uint32_t i = 0; i < c->buffer_count; i++)
            for (int64_t j = 0; strchr("UV", c->buffers[i].name) && mode && mode->value == 'A' &&
                                j < c->buffers[i].dims[0];
                 j++)
                store_real(c->real, run->data[i],
                           j * (c->buffers[i].dims[0] + 1) * (c->is_complex ? 2 : 1), 1);
        return;
    }
    if (strstr(c->routine->limits, "iterates") && !is_finite(run)) {
        /* Fill floats with NaN; info is that of JAX's geev. */
        for (uint32_t i = 0; i < c->buffer_count; i++)
            for (int64_t e = 0, count = size_of(&c->buffers[i]) *
                                        (int64_t)(hlo_types[c->buffers[i].type].bytes /
                                                  hlo_types[c->real].bytes);
                 c->buffers[i].type != HLO_TYPE_S32 && e < count; e++)
                store_real(c->real, run->data[i], e, (double)NAN);
        run->info = -4;
        return;
    }
    call_routine(run);
    for (uint32_t i = 0; i < c->buffer_count; i++)
        if (run->parts[i]) split(run, i);
}

hlo_status cpu_lapack_execute(const cpu_device *cpu, const hlo_job *job, const char **why) {
    lapack_call *c = job->state;
    running run = {.call = c, .job = job, .env = &cpu->env, .scratch = cpu->scratch};
    if (c->type == HLO_TYPE_F32 || c->type == HLO_TYPE_C64)
        memcpy(&run.alpha, &(float){1}, sizeof(float));
    else
        memcpy(&run.alpha, &(double){1}, sizeof(double));
    const char *wrong = read_scalars(&run);
    if (wrong) {
        snprintf(c->why, sizeof c->why, "%s", wrong);
        *why = c->why;
        return HLO_INVALID_INPUT;
    }
    for (int i = 0; i < LETTERS; i++) run.dims[i] = (int32_t)c->dims[i];
    size_t sizes[MAX_BUFFERS];
    for (uint32_t i = 0; i < c->buffer_count; i++) {
        const buffer *b = &c->buffers[i];
        sizes[i] = (size_t)size_of(b) * hlo_types[b->type].bytes;
        run.data[i] = hlo_arena_alloc(cpu->scratch, sizes[i]);
        if (b->splits) run.parts[i] = hlo_arena_zero(cpu->scratch, sizes[i] / 2);
        run.leading[i] = b->dims[0] > 1 ? (int32_t)b->dims[0] : 1;
    }
    hlo_dims at = {{0}};
    bool more = false; /* a batch of empty results may be too large to iterate over */
    for (uint32_t i = 0; i < c->buffer_count; i++)
        more |= c->buffers[i].result >= 0 && size_of(&c->buffers[i]) > 0;
    for (uint32_t d = 0; d < c->batch_rank; d++) more &= c->batch[d] > 0;
    if (more && !allocate_work(&run)) {
        *why = "needs more working memory than LAPACK can count";
        return HLO_INVALID_INPUT;
    }
    for (; more; more = hlo_dims_next(c->batch_rank, c->batch, at.v)) {
        if (job->watch && !job->watch->goes_on(job->watch->user)) break;
        for (uint32_t i = 0; i < c->buffer_count; i++) {
            memset(run.data[i], 0, sizes[i]);
            if (c->buffers[i].operand >= 0) copy(&run, i, at.v, true);
        }
        compute(&run);
        for (uint32_t i = 0; i < c->buffer_count; i++) {
            if (c->buffers[i].name == 'I') memcpy(run.data[i], &run.info, sizeof run.info);
            if (c->buffers[i].result >= 0 && job->results[c->buffers[i].result].data)
                copy(&run, i, at.v, false);
        }
    }
    for (uint32_t r = 0; r < job->result_count; r++) {
        /* Working memory of old calls is zero, so that runs are reproducible. */
        bool computed = false;
        for (uint32_t i = 0; i < c->buffer_count; i++)
            computed |= c->buffers[i].result == (int32_t)r;
        if (!computed && job->results[r].data)
            memset(job->results[r].data, 0, hlo_view_bytes(&job->results[r]));
        /* Bounds would depend on the condition of the matrix: there are none. */
        const hlo_view *sigma = job->bounded ? &job->result_sigmas[r] : NULL;
        for (int64_t e = 0; sigma && sigma->data && e < hlo_view_count(sigma); e++)
            ((float *)sigma->data)[e] = computed ? INFINITY : 0;
    }
    return HLO_OK;
}
