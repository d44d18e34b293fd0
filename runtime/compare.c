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

/* Of (a - b) / sigma, over the elements where all three are finite and sigma is not 0. */
static double root_mean_square(hlo_type type, int64_t count, const char *a, const char *b,
                               const float *sigma) {
    double sum = 0, counted = 0;
    size_t width = hlo_types[type].bytes;
    for (int64_t i = 0; sigma && i < count; i++, a += width, b += width) {
        if (!(sigma[i] > 0) || !isfinite(sigma[i])) continue;
        double d = (hlo_number_load(type, a) - hlo_number_load(type, b)) / sigma[i];
        if (!isfinite(d)) continue;
        sum += d * d;
        counted++;
    }
    return counted ? sqrt(sum / counted) : 0;
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
    if (hlo_types[type].class != HLO_CLASS_COMPLEX)
        out->rms = root_mean_square(type, count, judge->data, other->data, judge->bound);
    return c.violations ? HLO_MISMATCH : HLO_OK;
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
