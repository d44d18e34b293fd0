/* SPDX-License-Identifier: Apache-2.0 */
/* Compares outputs, element by element. */
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/diag.h"
#include "ir/error/rules.h"
#include "ir/float/c_locale.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"
#include "runtime/io/arrays.h"

static bool same_kind(const hlo_array *a, const hlo_array *b) {
    return a->type == b->type && a->rank == b->rank && a->size == b->size &&
           (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

/* True if the arrays have the same kind, and do not have the names of different transfers. */
static bool same_output(const hlo_array *a, const hlo_array *b) {
    return (!a->name || !b->name || !strcmp(a->name, b->name)) && same_kind(a, b);
}

/* Returns the array of the list that bounds an output; NULL if it has none, because the execution
 * of the list has sent other values to the host. */
static hlo_array *judging(const hlo_arrays *judge, size_t index, const hlo_array *output) {
    if (index >= judge->count || !same_output(&judge->items[index], output)) return NULL;
    return &judge->items[index];
}

/* Returns the modulus of a complex element, or any other element as a number. */
static double modulus(hlo_type type, const char *at) {
    if (hlo_types[type].class != HLO_CLASS_COMPLEX) return hlo_number_load(type, at);
    const hlo_type part = type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64;
    return hypot(hlo_number_load(part, at), hlo_number_load(part, at + hlo_types[part].bytes));
}

hlo_status hlo_array_distance(const hlo_array *given_from, const hlo_array *given_to, double *out) {
    hlo_array arrays[2], *from = &arrays[0], *to = &arrays[1];
    if (!hlo_array_take(given_from, from) || !hlo_array_take(given_to, to) || !same_kind(from, to))
        return HLO_INVALID_USAGE;
    const hlo_type type = from->type;
    long double size = 0, moved = 0; /* sums of squares, which may be out of the range of f64 */
    for (size_t at = 0; at < from->size; at += hlo_types[type].bytes) {
        const long double x = modulus(type, (const char *)from->data + at);
        const long double d =
            hlo_error_distance(type, (const char *)from->data + at, (const char *)to->data + at);
        moved = isfinite(d) ? moved + d * d : (long double)INFINITY;
        if (isfinite(x)) size += x * x;
    }
    *out = moved > 0 ? (double)sqrtl(moved / size) : 0;
    return HLO_OK;
}

/* Returns a one-dimensional view of all elements: both arrays have the same memory order. */
static hlo_view flat(hlo_type type, const int64_t *count, const int64_t *one, void *data) {
    return (hlo_view){.type = type, .rank = 1, .dims = count, .strides = one, .data = data};
}

/* Sums over elements that are finite in both arrays. Sums [0] are over elements of known sigma
 * above 0, in units of sigma. Sums [1] are over elements of unknown sigma, in units of their root
 * mean square. */
typedef struct sums {
    double count[2];
    double squares[2];  /* squares of a - b */
    double rounding[2]; /* squares of the error of one rounding to the type */
} sums;

/* Sigmas of at least this value are unknown (infinite). */
#define UNKNOWN 0x1p120f

typedef struct pair {
    hlo_type type;
    size_t width;
    int64_t count;
    const char *a, *b;
    const float *sigma;
} pair;

static pair pair_of(const hlo_array *judge, const hlo_array *other) {
    hlo_type type = judge->type;
    size_t width = hlo_types[type].bytes;
    int64_t count = judge->bound && hlo_type_is_float(type) ? (int64_t)(judge->size / width) : 0;
    return (pair){type, width, count, judge->data, other->data, judge->bound};
}

static sums add_up(const pair *p) {
    sums s = {0};
    /* The sigmas of fp8 elements include their rounding steps. */
    double u = hlo_type_is_fp8(p->type) ? 0 : ldexp(1, -hlo_float_precision(p->type));
    /* Compute the unit of elements of unknown sigma: the RMS of the finite elements. */
    double sum = 0, count = 0;
    for (int64_t i = 0; i < p->count; i++) {
        if (!(p->sigma[i] >= UNKNOWN)) continue;
        double x = hlo_number_load(p->type, p->a + (size_t)i * p->width);
        if (!isfinite(x)) continue;
        sum += x * 0x1p-512 * x * 0x1p-512;
        count++;
    }
    double size = sum > 0 ? sqrt(sum / count) * 0x1p512 : 1;
    double a[HLO_CHUNK], b[HLO_CHUNK];
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t at = i % HLO_CHUNK, n = hlo_chunk_size(p->count - i);
        if (at == 0) {
            hlo_lane_load_f64(p->type, p->a + (size_t)i * p->width, (int64_t)p->width, n, a);
            hlo_lane_load_f64(p->type, p->b + (size_t)i * p->width, (int64_t)p->width, n, b);
        }
        bool unknown = p->sigma[i] >= UNKNOWN;
        double unit = unknown ? size : (double)p->sigma[i];
        double x = a[at] / unit, d = x - b[at] / unit;
        if (!(unit > 0) || !isfinite(d)) continue;
        s.count[unknown]++;
        s.squares[unknown] += d * d;
        s.rounding[unknown] += u * u * x * x;
    }
    return s;
}

static double mean_root(double squares, double count) {
    return count > 0 ? sqrt(squares / count) : 0;
}

/* Sets d->rms and d->noise to the root mean square of the difference of the arrays (d->noise in
 * units of judge->noise), and d->noise_limit to its limit. Returns without a change if types or
 * dimensions differ. `drops`: the judge omits roundings that the other module may have omitted.
 * The samples of such a judge omit them, too, and perturb each result by HLO_ERROR_AMPLITUDE,
 * which is then the limit. Otherwise, the limit is the one for a module and its rewritten form.
 * Elements of known and of unknown sigma are compared separately; d->noise is the larger of
 * both. */
static void compare_noise(const hlo_array *judge, const hlo_array *other, bool drops,
                          hlo_difference *d) {
    if (!same_kind(judge, other)) return;
    pair p = pair_of(judge, other);
    sums s = add_up(&p);
    d->rms = mean_root(s.squares[0], s.count[0]);
    d->noise_limit = drops ? HLO_ERROR_AMPLITUDE : HLO_ERROR_NOISE;
    for (int i = 0; i < 2; i++) {
        double rms = mean_root(s.squares[i], s.count[i]);
        if (judge->noise[i] < 0 || rms == 0) continue;
        double noise = rms / hypot(judge->noise[i], mean_root(s.rounding[i], s.count[i]));
        double limit =
            drops ? HLO_ERROR_AMPLITUDE : HLO_ERROR_NOISE + HLO_ERROR_NOISE_FEW / sqrt(s.count[i]);
        if (noise / limit < d->noise / d->noise_limit) continue;
        d->noise = noise;
        d->noise_limit = limit;
    }
}

hlo_status hlo_array_compare(const hlo_array *given_judge, const hlo_array *given_other,
                             hlo_difference *out) {
    hlo_array arrays[2], *judge = &arrays[0], *other = &arrays[1];
    hlo_difference own = {.worst = -1};
    if (!hlo_array_take(given_judge, judge) || !hlo_array_take(given_other, other) ||
        hlo_options_take("hlo_difference", &(hlo_difference){0}, sizeof own, out, NULL) != HLO_OK)
        return HLO_INVALID_USAGE;
    const size_t size = out->struct_size;
    hlo_options_fill(out, size, &own, sizeof own);
    if (!same_kind(judge, other)) return HLO_INVALID_USAGE;
    hlo_type type = judge->type;
    int64_t count = (int64_t)(judge->size / hlo_types[type].bytes), one = 1;
    hlo_view a = flat(type, &count, &one, judge->data), b = flat(type, &count, &one, other->data);
    hlo_view sigma = flat(HLO_TYPE_F32, &count, &one, judge->bound);
    hlo_error_comparison c;
    hlo_error_compare(&a, &b, &sigma, &c);
    own = (hlo_difference){.equal = c.equal,
                           .within = c.within,
                           .one_step = c.steps,
                           .violations = c.violations,
                           .largest = c.largest,
                           .worst = c.worst_index,
                           .judge = c.worst_a,
                           .other = c.worst_b,
                           .bound = c.worst_bound};
    compare_noise(judge, other, false, &own);
    hlo_options_fill(out, size, &own, sizeof own);
    return c.violations || own.noise > own.noise_limit ? HLO_MISMATCH : HLO_OK;
}

/* -------------------------------------------------------------------------------- whole outputs */

typedef enum outcome { AGREES, ROUNDED, UNJUDGED, QUANTIZED, DIFFERS, OTHER_KIND } outcome;

/* The result of comparing one output. */
typedef struct finding {
    hlo_type type;
    outcome outcome;
    int64_t count, differing, violations;
    int64_t infinite; /* pairs that differ, of which one element is not finite */
    int64_t unjudged; /* pairs that differ, for which neither a bound nor a noise limit applies */
    double noise, noise_limit;
    double max_error, max_relative;
    long double signal, error; /* sums of squares over elements that are finite on both sides */
    int64_t worst;
    double distance, excess; /* the distance and the excess at element `worst` */
} finding;

static const char *element_of(const hlo_array *array, hlo_type type, int64_t i) {
    return (const char *)array->data + (size_t)i * hlo_types[type].bytes;
}

/* Adds element `i` to the finding. `unbounded`: the element's bound is infinite. `sampled`: finite
 * elements without a bound are judged by noise. */
static void note_element(finding *f, const hlo_array *const *sides, int64_t i, float excess,
                         bool unbounded, bool sampled) {
    const char *found = element_of(sides[0], f->type, i);
    const char *expected = element_of(sides[1], f->type, i);
    const double distance = hlo_error_distance(f->type, found, expected);
    const bool same = distance == 0, beyond = excess > 1;
    const bool unjudged = !same && !beyond && unbounded && !(sampled && isfinite(distance));
    f->differing += !same;
    f->violations += beyond && !same;
    f->unjudged += unjudged;
    f->infinite += !isfinite(distance);
    if (isfinite(distance)) {
        const long double size = modulus(f->type, expected), moved = distance;
        f->max_error = fmax(f->max_error, distance);
        if (distance > 0) f->max_relative = fmax(f->max_relative, distance / fabs((double)size));
        if (isfinite(size)) f->signal += size * size;
        f->error += moved * moved;
    }
    if (same) return;
    if (f->worst >= 0 && !((double)excess > f->excess)) return;
    f->worst = i;
    f->excess = (double)excess;
    f->distance = distance;
}

static bool differs(const finding *f) {
    return f->violations || f->noise > f->noise_limit;
}

/* Compares an output; without `judge`, both sides must be equal. `drops`: the judge omits
 * roundings. */
static hlo_status compare_output(const hlo_comparison *c, const hlo_arrays *judge, bool drops,
                                 size_t index, finding *out) {
    const hlo_array *sides[] = {&c->found->items[index], &c->expected->items[index]};
    hlo_type type = sides[0]->type;
    *out = (finding){.type = type, .worst = -1};
    out->count = (int64_t)(sides[0]->size / hlo_types[type].bytes);
    size_t capacity = (size_t)out->count + 1;
    float *excess = hlo_calloc(2 * capacity, sizeof *excess);
    if (!excess) return HLO_OUT_OF_MEMORY;
    hlo_array equal = *sides[1];
    equal.bound = NULL;
    const hlo_array *by = judge ? judging(judge, index, sides[0]) : NULL;
    if (!by) by = &equal;
    /* Compare both sides with the judge by the judge's bounds. Keep the larger noise of both sides,
     * relative to its limit. */
    const int64_t one = 1;
    hlo_view a = flat(type, &out->count, &one, by->data);
    hlo_view sigma = flat(HLO_TYPE_F32, &out->count, &one, by->bound);
    float *scratch = excess + capacity;
    out->noise_limit = HLO_ERROR_NOISE;
    for (int s = 0; s < 2; s++) {
        if (sides[s]->data == by->data) continue;
        hlo_difference d = {0};
        hlo_view b = flat(type, &out->count, &one, sides[s]->data);
        hlo_error_excess(&a, &b, &sigma, scratch);
        for (int64_t i = 0; i < out->count; i++) excess[i] = fmaxf(excess[i], scratch[i]);
        compare_noise(by, sides[s], drops, &d);
        if (d.noise / d.noise_limit < out->noise / out->noise_limit) continue;
        out->noise = d.noise;
        out->noise_limit = d.noise_limit;
    }
    for (int64_t i = 0; i < out->count; i++)
        note_element(out, sides, i, excess[i], by->bound && !(by->bound[i] < UNKNOWN),
                     by->noise[1] >= 0);
    hlo_free(excess);
    return HLO_OK;
}

/* Totals over all outputs by which judges are compared, most important member first. */
typedef struct verdict {
    double differ, violations, noise;
} verdict;

/* Returns the judge that omits roundings, for outputs that other judges reject, or NULL. */
static const hlo_arrays *dropping_judge(const hlo_comparison *c) {
    return c->last_drops && c->judge_count > 1 ? c->judges[c->judge_count - 1] : NULL;
}

/* --------------------------------------------------------------------- the origin of an element */

/* Returns the instruction of the entry computation that computes leaf `leaf` of its result. */
static hlo_instruction *maker(const hlo_module *module, size_t leaf) {
    hlo_instruction *instr = module->entry->root;
    while (instr->op == HLO_OP_TUPLE) {
        uint32_t o = 0;
        for (; o < instr->operand_count; o++) {
            size_t leaves = hlo_shape_leaf_count(hlo_instr_operand(instr, o)->shape);
            if (leaf < leaves) break;
            leaf -= leaves;
        }
        if (o == instr->operand_count) return NULL;
        instr = hlo_instr_operand(instr, o);
    }
    return instr->op == HLO_OP_GET_TUPLE_ELEMENT ? hlo_instr_operand(instr, 0) : instr;
}

enum { MAX_OPERANDS = 8 };

/* Computes all operands of the instruction that computes an output. Sets *out to NULL if that is
 * impossible, for example because an operand is not an array or cannot be executed separately.
 * Returns HLO_OUT_OF_MEMORY if memory runs out. */
static hlo_status operands_of(const hlo_module *module, size_t output, const hlo_arrays *inputs,
                              hlo_arrays **out) {
    hlo_module *copy;
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    *out = NULL;
    hlo_instruction *instr = maker(module, output);
    if (!instr->operand_count || instr->operand_count > MAX_OPERANDS) return HLO_OK;
    for (uint32_t o = 0; o < instr->operand_count; o++)
        if (!hlo_shape_is_array(hlo_instr_operand(instr, o)->shape)) return HLO_OK;
    hlo_status status = hlo_module_clone(module, &copy);
    if (status != HLO_OK) return status;
    hlo_plan_options_init(&options);
    /* Make the operands the result of the copy of the module. */
    instr = maker(copy, output);
    hlo_instruction *operands[MAX_OPERANDS];
    const hlo_shape *shapes[MAX_OPERANDS];
    uint32_t count = instr->operand_count;
    jmp_buf recover;
    for (uint32_t o = 0; o < count; o++) {
        operands[o] = hlo_instr_operand(instr, o);
        shapes[o] = operands[o]->shape;
    }
    hlo_arena_set_recover(copy->arena, &recover);
    bool made = !setjmp(recover);
    if (made)
        hlo_comp_set_root(copy->entry, hlo_instr_new(copy->entry, NULL, HLO_OP_TUPLE,
                                                     hlo_shape_tuple(copy, count, shapes), count,
                                                     operands, NULL));
    hlo_arena_set_recover(copy->arena, NULL);
    status = made ? HLO_OK : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) status = hlo_plan_new(copy, &options, NULL, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, NULL, out);
    hlo_plan_free(plan);
    hlo_module_free(copy);
    return status == HLO_OUT_OF_MEMORY ? status : HLO_OK;
}

/* True if the arrays differ, and rounding `values` to f16 before rounding to the second array's fp8
 * type explains every difference. */
static bool rounds_by_f16(const hlo_array *values, const hlo_array *const *sides) {
    const hlo_type type = sides[1]->type;
    if (!hlo_type_is_fp8(type) || values->type != HLO_TYPE_F32 ||
        values->size != sides[1]->size * sizeof(float))
        return false;
    for (size_t i = 0; i < sides[1]->size; i++) {
        const uint8_t found = ((const uint8_t *)sides[0]->data)[i],
                      expected = ((const uint8_t *)sides[1]->data)[i];
        const uint64_t half =
            hlo_float_encode(HLO_TYPE_F16, (double)((const float *)values->data)[i]);
        if (found != expected &&
            hlo_float_encode(type, hlo_float_decode(HLO_TYPE_F16, half)) != expected)
            return false;
    }
    return memcmp(sides[0]->data, sides[1]->data, sides[1]->size) != 0;
}

/* Prints a line that begins with `name` and shows how `module` computes element `element` of output
 * `output`: the instruction, and its operands' values at that element. Omits the values if the
 * operands cannot be computed. If `sides`, the two arrays that differ, is not NULL, and rounding to
 * f16 first explains all differences, prints a line that says so. Returns HLO_OUT_OF_MEMORY if
 * memory runs out. */
static hlo_status print_element_origin(const hlo_module *module, const char *name,
                                       const hlo_arrays *inputs, size_t output, int64_t element,
                                       const hlo_array *const *sides, FILE *out) {
    hlo_instruction *instr = module ? maker(module, output) : NULL;
    hlo_arrays *values = NULL;
    if (!instr) return HLO_OK;
    hlo_status status = inputs ? operands_of(module, output, inputs, &values) : HLO_OK;
    if (status != HLO_OK) return status;
    hlo_print_plain(out, "  %s: %%%s = %s(", name ? name : "computed by", instr->name,
                    hlo_ops[instr->op].name);
    const hlo_shape *result = instr->shape;
    if (result->type == HLO_TYPE_TUPLE && result->rank) result = result->elements[0];
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        hlo_print_plain(out, o ? ", %%%s" : "%%%s", hlo_instr_operand(instr, o)->name);
        if (!values) continue;
        /* Print the operand's only element, or its element at the same index. */
        const hlo_array *operand = hlo_arrays_at(values, o);
        const hlo_type type = operand->type;
        const size_t width = hlo_types[type].bytes;
        const bool one = operand->size == width;
        if (!one && (operand->rank != result->rank ||
                     (result->rank && memcmp(operand->dims, result->dims,
                                             result->rank * sizeof *result->dims) != 0)))
            continue;
        fputs(" = ", out);
        hlo_print_number(type, (const char *)operand->data + (one ? 0 : (size_t)element * width),
                         out);
    }
    fputs(")\n", out);
    if (sides && values && instr->op == HLO_OP_CONVERT &&
        rounds_by_f16(hlo_arrays_at(values, 0), sides))
        fputs(
            "  hint: all differences are explained by rounding to f16 before converting to FP8, as "
            "in XLA's CPU backend before jaxlib 0.8: try --fp8-rounding=via-f16\n",
            out);
    hlo_arrays_free(values);
    return HLO_OK;
}

/* ------------------------------------------------------------------------------------- the text */

enum { KIND_WIDTH = 160 };

/* Formats the type and the dimensions of an array. Returns `out`. */
static const char *format_kind(const hlo_array *array, char out[KIND_WIDTH]) {
    size_t at = (size_t)snprintf(out, KIND_WIDTH, "%s[", hlo_types[array->type].name);
    for (uint32_t i = 0; i < array->rank && at < KIND_WIDTH; i++)
        at += (size_t)snprintf(out + at, KIND_WIDTH - at, i ? ",%lld" : "%lld",
                               (long long)array->dims[i]);
    if (at < KIND_WIDTH) snprintf(out + at, KIND_WIDTH - at, "]");
    return out;
}

/* Formats the signal-to-noise ratio; "-" if the finite elements are equal. Returns `out`. */
static const char *format_ratio(const finding *f, char out[32]) {
    snprintf(out, 32, "-");
    if (f->error > 0) snprintf(out, 32, "%.1f", 10 * log10((double)(f->signal / f->error)));
    return out;
}

/* Formats what is compared: "output 3", or the name of a transfer to the host. Returns `out`. */
static const char *format_output(const hlo_comparison *c, size_t index, char out[KIND_WIDTH]) {
    const char *name = c->found->items[index].name;
    if (name)
        snprintf(out, KIND_WIDTH, "%s", name);
    else
        snprintf(out, KIND_WIDTH, "output %zu", index);
    return out;
}

/* The widths of the first two columns of the table. */
typedef struct widths {
    int name, kind;
} widths;

/* Prints the heads of the table if `f` is NULL, and the row of an output otherwise. */
static void print_row(const hlo_comparison *c, size_t index, const finding *f, widths width,
                      FILE *out) {
    static const char *const words[] = {
        [AGREES] = "agrees",       [ROUNDED] = "agrees unrounded", [UNJUDGED] = "not judged",
        [QUANTIZED] = "quantized", [DIFFERS] = "differs",          [OTHER_KIND] = "other shape"};
    char name[KIND_WIDTH], kind[KIND_WIDTH], excess[32] = "-", noise[64] = "-", ratio[32];
    if (!f) {
        fprintf(out, "%-*s  %-*s  %-16s %12s %12s %12s %12s %12s %10s %7s\n", width.name, "output",
                width.kind, "shape", "verdict", "elements", "different", "beyond bound",
                "not judged", "error/bound", "noise", "SNR dB");
        return;
    }
    snprintf(name, sizeof name, "%zu", index);
    if (c->found->items[index].name) format_output(c, index, name);
    fprintf(out, "%*s  %-*s  %-16s ", width.name, name, width.kind,
            format_kind(&c->found->items[index], kind), words[f->outcome]);
    if (f->outcome == OTHER_KIND) {
        const hlo_array *expected = &c->expected->items[index];
        fprintf(out, "expected %s", format_kind(expected, kind));
        hlo_print_plain(out, expected->name ? " of %s\n" : "\n", expected->name);
        return;
    }
    fprintf(out, "%12lld %12lld ", (long long)f->count, (long long)f->differing);
    if (f->outcome == QUANTIZED) { /* bounds do not apply */
        fprintf(out, "%12s %12s ", "-", "-");
    } else {
        fprintf(out, "%12lld %12lld ", (long long)f->violations, (long long)f->unjudged);
        if (f->worst >= 0) snprintf(excess, sizeof excess, "%.2g", f->excess);
        if (f->noise > 0) snprintf(noise, sizeof noise, "%.2g/%.2g", f->noise, f->noise_limit);
    }
    fprintf(out, "%12s %10s %7s\n", excess, noise, format_ratio(f, ratio));
}

/* Prints the largest errors of an output that differs, and its worst element. */
static hlo_status print_worst(const hlo_comparison *c, size_t index, const finding *f, FILE *out) {
    char name[KIND_WIDTH];
    fprintf(out, "%s: max abs error %.3g, max rel error %.3g", format_output(c, index, name),
            f->max_error, f->max_relative);
    if (f->infinite) fprintf(out, ", NaN or infinity in only one: %lld", (long long)f->infinite);
    fputc('\n', out);
    if (f->outcome == QUANTIZED || f->worst < 0) return HLO_OK;
    const hlo_array *sides[] = {&c->found->items[index], &c->expected->items[index]};
    fputs("  worst at ", out);
    int64_t rest = f->worst, size = f->count;
    fputc('[', out);
    for (uint32_t d = 0; d < sides[0]->rank; d++) {
        size /= sides[0]->dims[d];
        fprintf(out, d ? ",%lld" : "%lld", (long long)(rest / size));
        rest %= size;
    }
    fputs("]: ", out);
    hlo_print_number(f->type, element_of(sides[0], f->type, f->worst), out);
    fputs(", but ", out);
    hlo_print_number(f->type, element_of(sides[1], f->type, f->worst), out);
    hlo_print_plain(out, " in %s", c->expected_name ? c->expected_name : "the reference");
    double bound = f->distance / f->excess;
    if (f->excess > 0 && isfinite(bound)) fprintf(out, "; bound %.3g", bound);
    fputc('\n', out);
    if (sides[0]->name) return HLO_OK; /* the instruction is unknown */
    hlo_status status = print_element_origin(c->found_module, c->found_name, c->inputs, index,
                                             f->worst, c->expected_module ? NULL : sides, out);
    if (status != HLO_OK) return status;
    return print_element_origin(c->expected_module, c->expected_name, c->inputs, index, f->worst,
                                NULL, out);
}

/* Omitting the rounding to bf16 of a term that is more than 2^-8 of its sum changes at least one in
 * this many elements of the sum. */
enum { DROPPED_MOVES_ONE_IN = 1024 };

static hlo_status compare_one(const hlo_comparison *c, const hlo_arrays *judge, size_t index,
                              finding *out) {
    *out = (finding){.outcome = OTHER_KIND};
    if (!same_output(&c->found->items[index], &c->expected->items[index])) return HLO_OK;
    hlo_status status = compare_output(c, judge, false, index, out);
    if (status != HLO_OK) return status;
    if (c->quantized) {
        out->outcome = out->differing ? QUANTIZED : AGREES;
        return HLO_OK;
    }
    if (!differs(out)) {
        out->outcome = out->unjudged && out->unjudged == out->differing ? UNJUDGED : AGREES;
        return HLO_OK;
    }
    out->outcome = DIFFERS;
    const hlo_arrays *dropping = dropping_judge(c);
    if (!dropping) return HLO_OK;
    /* Elements that an omitted rounding may change have a known sigma above 0. If fewer elements
     * differ than an omitted rounding would change, do not use the judge that omits roundings. */
    const hlo_array *by = judging(dropping, index, &c->found->items[index]);
    const float *sigma = by ? by->bound : NULL;
    int64_t movable = 0;
    for (int64_t i = 0; sigma && i < out->count; i++) movable += sigma[i] > 0 && sigma[i] < UNKNOWN;
    if (out->differing < movable / DROPPED_MOVES_ONE_IN) return HLO_OK;
    finding dropped;
    status = compare_output(c, dropping, true, index, &dropped);
    if (status != HLO_OK) return status;
    if (!differs(&dropped)) {
        out->outcome = ROUNDED;
    } else {
        *out = dropped;
        out->outcome = DIFFERS;
    }
    return HLO_OK;
}

static bool is_shown(const hlo_comparison *c, const finding *f) {
    return c->all || f->outcome != AGREES || f->unjudged;
}

/* Prints a table of the outputs that do not agree, or that have elements without a judge, and the
 * worst elements of the first outputs that differ. With c->all, prints all outputs and all worst
 * elements. */
static hlo_status print_table(const hlo_comparison *c, const finding *findings, FILE *out) {
    enum { FIRST = 3 };
    const size_t count = c->expected->count;
    widths width = {.name = (int)strlen("output")};
    for (size_t i = 0; i < count; i++) {
        char text[KIND_WIDTH];
        if (!is_shown(c, &findings[i])) continue;
        const int kind = (int)strlen(format_kind(&c->found->items[i], text));
        const char *sent = c->found->items[i].name;
        const int name = sent ? (int)strlen(format_output(c, i, text)) : 0;
        if (kind > width.kind) width.kind = kind;
        if (name > width.name) width.name = name;
    }
    if (!width.kind) return HLO_OK;
    print_row(c, 0, NULL, width, out);
    for (size_t i = 0; i < count; i++)
        if (is_shown(c, &findings[i])) print_row(c, i, &findings[i], width, out);
    hlo_status status = HLO_OK;
    size_t explained = 0;
    for (size_t i = 0; i < count && status == HLO_OK; i++)
        if ((findings[i].outcome == DIFFERS || findings[i].outcome == QUANTIZED) &&
            (c->all || explained++ < FIRST))
            status = print_worst(c, i, &findings[i], out);
    return status;
}

/* Notes that no element of an output was judged. */
static void note_unjudged(const hlo_comparison *c, size_t index, const finding *f) {
    char message[160 + KIND_WIDTH], name[KIND_WIDTH];
    if (!c->sink) return;
    snprintf(message, sizeof message,
             "no element of %s was judged: %lld of %lld differ, and their bounds are infinite",
             format_output(c, index, name), (long long)f->unjudged, (long long)f->count);
    hlo_diag_send(c->sink, (hlo_diag){.severity = HLO_NOTE,
                                      .code = HLO_DIAG_NONFINITE,
                                      .message = message,
                                      .file = ""});
}

static hlo_status compare_by(const hlo_comparison *comparison, FILE *out) {
    hlo_comparison own = {.found = NULL};
    hlo_status status = hlo_options_take("hlo_comparison", &own, sizeof own, comparison, NULL);
    if (status == HLO_OK && (!own.found || !own.expected)) status = HLO_INVALID_USAGE;
    if (status != HLO_OK) return status;
    const hlo_comparison *c = &own;
    const size_t count = c->expected->count;
    if (c->found->count != count) {
        const size_t found = hlo_arrays_results(c->found);
        const size_t expected = hlo_arrays_results(c->expected);
        if (out && found == expected)
            fprintf(out, "compare: %zu arrays sent to the host, expected %zu\n",
                    c->found->count - found, count - expected);
        else if (out)
            fprintf(out, "compare: %zu outputs, expected %zu\n", found, expected);
        return HLO_MISMATCH;
    }
    /* Choose the judge with the fewest violations. Each judge assumes that its own module is the
     * original from which the other module was derived, so one judge must accept all outputs. */
    const hlo_arrays *judge = c->judge_count ? c->judges[0] : NULL;
    verdict least = {0};
    const size_t judges = c->judge_count - (dropping_judge(c) != NULL);
    for (size_t j = 0; judges > 1 && j < judges; j++) {
        verdict said = {0};
        for (size_t i = 0; i < count; i++) {
            if (!same_output(&c->found->items[i], &c->expected->items[i])) continue;
            finding f;
            status = compare_output(c, c->judges[j], false, i, &f);
            if (status != HLO_OK) return status;
            said.differ += differs(&f);
            said.violations += (double)f.violations;
            said.noise += f.noise / f.noise_limit;
        }
        const bool milder = said.differ != least.differ ? said.differ < least.differ
                            : said.violations != least.violations
                                ? said.violations < least.violations
                                : said.noise < least.noise;
        if (j && !milder) continue;
        least = said;
        judge = c->judges[j];
    }
    finding *findings = hlo_calloc(count + 1, sizeof *findings);
    if (!findings) return HLO_OUT_OF_MEMORY;
    size_t outcomes[OTHER_KIND + 1] = {0};
    for (size_t i = 0; status == HLO_OK && i < count; i++) {
        status = compare_one(c, judge, i, &findings[i]);
        outcomes[findings[i].outcome]++;
        if (out && status == HLO_OK && findings[i].outcome == UNJUDGED)
            note_unjudged(c, i, &findings[i]);
    }
    if (status == HLO_OK && out) status = print_table(c, findings, out);
    hlo_free(findings);
    if (status != HLO_OK) return status;
    const size_t differ = outcomes[QUANTIZED] + outcomes[DIFFERS] + outcomes[OTHER_KIND];
    if (out && differ)
        fprintf(out, "compare: %zu of %zu outputs differ%s\n", differ, count,
                c->quantized
                    ? ", as expected after quantization; --compare=before checks the rewrite"
                    : "");
    else if (out)
        fprintf(out, count == 1 ? "compare: %zu output agrees" : "compare: %zu outputs agree",
                count);
    if (out && !differ && outcomes[ROUNDED])
        fprintf(out, ", %zu only if roundings to bf16 and f16 are omitted, as XLA may do",
                outcomes[ROUNDED]);
    if (out && !differ) fputc('\n', out);
    return differ ? HLO_MISMATCH : HLO_OK;
}

hlo_status hlo_arrays_compare_by(const hlo_comparison *comparison, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    if (!writer.write) return compare_by(comparison, NULL);
    FILE *out = hlo_writer_open(&writer);
    return out ? hlo_writer_close(out, compare_by(comparison, out)) : HLO_OUT_OF_MEMORY;
}

hlo_status hlo_arrays_compare(const hlo_arrays *judge, const hlo_arrays *other, hlo_writer out) {
    const hlo_comparison c = {.struct_size = sizeof c,
                              .found = other,
                              .expected = judge,
                              .judges = &judge,
                              .judge_count = 1};
    return hlo_arrays_compare_by(&c, out);
}

/* ---------------------------------------------------------------------------------------- noise */

enum { FEWEST = 3, MAX = 16 };

static bool explains(const hlo_arrays *judge, const hlo_arrays *side, bool drops) {
    for (size_t i = 0; side != judge && i < judge->count && i < side->count; i++) {
        hlo_difference d = {0};
        compare_noise(&judge->items[i], &side->items[i], drops, &d);
        if (d.noise > d.noise_limit) return false;
    }
    return true;
}

hlo_status hlo_arrays_sample(hlo_arrays *judge, const hlo_comparison *comparison,
                             const hlo_module *module, const hlo_plan_options *options,
                             const hlo_arrays *inputs, const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    hlo_plan_options perturbed;
    hlo_plan_options_init(&perturbed);
    hlo_status status =
        hlo_options_take("hlo_plan_options", &perturbed, sizeof perturbed, options, sink);
    hlo_comparison own = {.found = NULL};
    if (status == HLO_OK)
        status = hlo_options_take("hlo_comparison", &own, sizeof own, comparison, sink);
    if (status == HLO_OK && (!own.found || !own.expected)) status = HLO_INVALID_USAGE;
    if (status != HLO_OK) return status;
    perturbed.bounds = false;
    perturbed.perturbed = true;
    hlo_plan *plan;
    status = hlo_plan_new(module, &perturbed, sink, &plan);
    if (status != HLO_OK) return status;
    for (int i = 0; i < MAX && status == HLO_OK; i++) {
        if (i >= FEWEST && explains(judge, own.found, own.last_drops) &&
            explains(judge, own.expected, own.last_drops))
            break;
        hlo_arrays *sample;
        status = hlo_plan_run(plan, inputs, sink, &sample);
        for (size_t k = 0; status == HLO_OK && k < judge->count; k++) {
            /* Take the largest noise of all perturbed executions. */
            if (!judging(sample, k, &judge->items[k])) continue;
            const pair p = pair_of(&judge->items[k], &sample->items[k]);
            const sums s = add_up(&p);
            double *noise = judge->items[k].noise;
            for (int n = 0; n < 2; n++)
                noise[n] =
                    fmax(noise[n], mean_root(s.squares[n], s.count[n]) / HLO_ERROR_AMPLITUDE);
        }
        if (status == HLO_OK) hlo_arrays_free(sample);
    }
    hlo_plan_free(plan);
    return status;
}
