/* Comparing outputs, element by element. */
#include <math.h>
#include <string.h>

#include "ir/eval/bound.h"
#include "ir/eval/float.h"
#include "runtime/arrays.h"

static bool same_kind(const hlo_array *a, const hlo_array *b) {
    return strcmp(a->type, b->type) == 0 && a->rank == b->rank && a->size == b->size &&
           (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

/* All elements in one dimension: their order is the same in both. */
static hlo_view flat(hlo_type type, const int64_t *count, const int64_t *one, void *data) {
    return (hlo_view){.type = type, .rank = 1, .dims = count, .strides = one, .data = data};
}

/* Sums over the elements that are finite in both arrays: those whose sigma is known, and not 0, in
 * units of sigma; those of which nothing is known, in units of their root mean square. */
typedef struct sums {
    double count[2];
    double squares[2];  /* of a - b */
    double rounding[2]; /* of what one rounding of the type moves a by */
} sums;

/* Bounds as large as this stand for infinity. */
#define UNKNOWN 0x1p120f

typedef struct pair {
    hlo_type type;
    size_t width;
    int64_t count;
    const char *a, *b;
    const float *sigma;
} pair;

static pair pair_of(const hlo_array *judge, const hlo_array *other) {
    hlo_type type = hlo_type_find(judge->type, strlen(judge->type));
    size_t width = hlo_types[type].bytes;
    int64_t count = judge->bound && hlo_type_is_float(type) ? (int64_t)(judge->size / width) : 0;
    return (pair){type, width, count, judge->data, other->data, judge->bound};
}

/* The root mean square of what is finite among the elements of unknown sigma. */
static double unknown_size(const pair *p) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < p->count; i++) {
        double x = hlo_number_load(p->type, p->a + (size_t)i * p->width);
        if (!(p->sigma[i] >= UNKNOWN) || !isfinite(x)) continue;
        sum += x * 0x1p-512 * x * 0x1p-512;
        count++;
    }
    return sum > 0 ? sqrt(sum / count) * 0x1p512 : 1;
}

static sums add_up(const pair *p) {
    sums s = {0};
    /* What fp8 elements may do is in their sigmas. */
    double u = hlo_type_is_fp8(p->type) ? 0 : ldexp(1, -hlo_float_precision(p->type));
    double size = unknown_size(p);
    for (int64_t i = 0; i < p->count; i++) {
        bool unknown = p->sigma[i] >= UNKNOWN;
        double unit = unknown ? size : (double)p->sigma[i];
        double x = hlo_number_load(p->type, p->a + (size_t)i * p->width) / unit;
        double d = x - hlo_number_load(p->type, p->b + (size_t)i * p->width) / unit;
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

void hlo_array_add_sample(hlo_array *judge, const hlo_array *sample) {
    pair p = pair_of(judge, sample);
    sums s = add_up(&p);
    for (int i = 0; i < 2; i++)
        judge->noise[i] =
            fmax(judge->noise[i], mean_root(s.squares[i], s.count[i]) / HLO_BOUND_AMPLITUDE);
}

/* The second judgement, by what samples show; of known and unknown elements, that which is nearer
 * to its limit or further beyond. */
static void judge_noise(const hlo_array *judge, const hlo_array *other, hlo_difference *d) {
    pair p = pair_of(judge, other);
    sums s = add_up(&p);
    d->rms = mean_root(s.squares[0], s.count[0]);
    d->noise_limit = HLO_BOUND_NOISE;
    for (int i = 0; i < 2; i++) {
        double rms = mean_root(s.squares[i], s.count[i]);
        if (judge->noise[i] < 0 || rms == 0) continue;
        double noise = rms / hypot(judge->noise[i], mean_root(s.rounding[i], s.count[i]));
        double limit = HLO_BOUND_NOISE + HLO_BOUND_NOISE_FEW / sqrt(s.count[i]);
        if (noise / limit < d->noise / d->noise_limit) continue;
        d->noise = noise;
        d->noise_limit = limit;
    }
}

hlo_status hlo_array_compare(const hlo_array *judge, const hlo_array *other, hlo_difference *out) {
    *out = (hlo_difference){.worst = -1};
    if (!same_kind(judge, other)) return HLO_INVALID_USAGE;
    hlo_type type = hlo_type_find(judge->type, strlen(judge->type));
    int64_t count = (int64_t)(judge->size / hlo_types[type].bytes), one = 1;
    hlo_view a = flat(type, &count, &one, judge->data), b = flat(type, &count, &one, other->data);
    hlo_view sigma = flat(HLO_TYPE_F32, &count, &one, judge->bound);
    hlo_bound_comparison c;
    hlo_bound_compare(&a, &b, &sigma, &c);
    *out = (hlo_difference){.equal = c.equal,
                            .within = c.within,
                            .one_step = c.steps,
                            .violations = c.violations,
                            .largest = c.largest,
                            .worst = c.worst_index,
                            .judge = c.worst_a,
                            .other = c.worst_b,
                            .bound = c.worst_bound};
    judge_noise(judge, other, out);
    return c.violations || out->noise > out->noise_limit ? HLO_MISMATCH : HLO_OK;
}

static void print_kind(const hlo_array *array, FILE *out) {
    fprintf(out, "%s[", array->type);
    for (uint32_t i = 0; i < array->rank; i++)
        fprintf(out, i ? ",%lld" : "%lld", (long long)array->dims[i]);
    fputc(']', out);
}

static hlo_status compare_one(const hlo_array *judge, const hlo_array *other, size_t index,
                              FILE *out) {
    hlo_difference d;
    hlo_status status = hlo_array_compare(judge, other, &d);
    fprintf(out, "output %zu ", index);
    print_kind(judge, out);
    if (status == HLO_INVALID_USAGE) {
        fputs(" against ", out);
        print_kind(other, out);
        fputc('\n', out);
        return HLO_MISMATCH;
    }
    fprintf(out, ": %lld equal, %lld within bound, %lld one fp8 step, %lld violations",
            (long long)d.equal, (long long)d.within, (long long)d.one_step,
            (long long)d.violations);
    if (d.within) fprintf(out, ", largest %.2g of the bound, rms %.2g sigma", d.largest, d.rms);
    if (d.noise > 0) fprintf(out, ", noise %.2g of %.2g", d.noise, d.noise_limit);
    if (d.worst >= 0)
        fprintf(out, ", worst at %lld: %.9g and %.9g, bound %.3g", (long long)d.worst, d.judge,
                d.other, d.bound);
    fputc('\n', out);
    return status;
}

hlo_status hlo_arrays_compare(const hlo_arrays *judge, const hlo_arrays *other, FILE *out) {
    if (judge->count != other->count) {
        fprintf(out, "compare: %zu outputs against %zu\n", judge->count, other->count);
        return HLO_MISMATCH;
    }
    size_t differ = 0;
    for (size_t i = 0; i < judge->count; i++)
        differ += compare_one(&judge->items[i], &other->items[i], i, out) != HLO_OK;
    if (differ)
        fprintf(out, "compare: %zu of %zu outputs differ\n", differ, judge->count);
    else
        fprintf(out, "compare: %zu outputs agree\n", judge->count);
    return differ ? HLO_MISMATCH : HLO_OK;
}
