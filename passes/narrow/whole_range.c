/* Ranges of whole numbers. */
#include "passes/narrow/whole_range.h"

#include "ir/float/float.h"
#include "ir/module/known.h"
#include "passes/analysis/dequantize.h"

typedef hlo_whole_range range;

/* The whole numbers up to which f8e4m3fn has all, and bf16, the least precise of the wide types. */
enum { E4M3_WHOLE = 16, WIDE_WHOLE = 256, LITERAL_LIMIT = 1 << 22 };

bool hlo_whole_range_fits_e4m3(const range *r) {
    return r->known && r->low >= -E4M3_WHOLE && r->high <= E4M3_WHOLE;
}

static bool is_signed(hlo_type type) {
    return hlo_types[type].class == HLO_CLASS_SIGNED;
}

/* Returns the range of all elements of a type; integers of 64 bits have none. */
static range of_type(hlo_type type) {
    const unsigned bits = hlo_types[type].bits;
    if (!hlo_type_is_integer(type) || bits > 32) return (range){.input = true};
    const int64_t count = INT64_C(1) << bits;
    return is_signed(type) ? (range){-count / 2, count / 2 - 1, true, true}
                           : (range){0, count - 1, true, true};
}

/* Returns `r` as a range of `type`: what wraps or is rounded may be any element. */
static range in_type(range r, hlo_type type) {
    range all = of_type(type);
    const int64_t whole = type == HLO_TYPE_F8E4M3FN ? E4M3_WHOLE
                          : hlo_type_is_wide(type)  ? WIDE_WHOLE
                                                    : 0;
    if (whole) all = (range){-whole, whole, true, true};
    const bool open =
        hlo_type_is_integer(type) && !all.known && (is_signed(type) || r.low >= 0); /* 64 bits */
    if (r.known && (open || (all.known && r.low >= all.low && r.high <= all.high))) return r;
    all.known &= hlo_type_is_integer(type);
    all.input = r.input;
    return all;
}

/* Reads the elements of a constant. */
static range of_constant(const hlo_instr *instr) {
    const hlo_literal *literal = instr->u.literal;
    const hlo_type type = instr->shape->type;
    const int64_t count = hlo_shape_count(instr->shape);
    range r = {.known = true};
    if (!literal->data || count < 1 || count > LITERAL_LIMIT ||
        !(hlo_type_is_integer(type) || hlo_type_is_float(type)))
        return (range){0};
    for (int64_t i = 0; i < count; i++) {
        const char *element = (const char *)literal->data + (size_t)i * hlo_types[type].bytes;
        const double number = hlo_number_load(type, element);
        if (!(number >= INT32_MIN && number <= INT32_MAX) || number != (double)(int64_t)number)
            return (range){0};
        const int64_t whole = (int64_t)number;
        if (!i || whole < r.low) r.low = whole;
        if (!i || whole > r.high) r.high = whole;
    }
    return r;
}

static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}

static int64_t most(int64_t x, int64_t y) {
    return x > y ? x : y;
}

static range joined(range x, range y) {
    return (range){least(x.low, y.low), most(x.high, y.high), x.known && y.known,
                   x.input || y.input};
}

/* Returns the range between the products of the bounds. */
static range product(range x, range y, bool input) {
    const int64_t v[] = {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high};
    range r = {v[0], v[0], true, input};
    for (unsigned i = 1; i < 4; i++) r = joined(r, (range){v[i], v[i], true, input});
    return r;
}

/* Computes x & y: not negative where one of both is not, and then not above it. */
static range masked(range x, range y, bool input) {
    if (x.known && x.low >= 0 && (!y.known || y.low < 0 || x.high <= y.high))
        return (range){0, x.high, true, input};
    if (y.known && y.low >= 0) return (range){0, y.high, true, input};
    return (range){.input = input};
}

/* Computes x >> y, for one y of all elements. */
static range shifted(const hlo_instr *instr, range x, range y, bool input) {
    const hlo_type type = instr->shape->type;
    const range all = of_type(type);
    const bool logical = instr->op == HLO_OP_SHIFT_RIGHT_LOGICAL;
    if (!y.known || y.low != y.high || y.low < 0 || y.low >= (int64_t)hlo_types[type].bits)
        return (range){.input = input};
    if (!x.known || (logical && x.low < 0)) {
        if (!all.known) return (range){.input = input};
        if (logical) x = (range){0, all.high - all.low, true, input};
    }
    /* The high bit of an unsigned integer is a sign to an arithmetic shift. */
    if (!logical && !is_signed(type) && (!all.known || x.high > all.high / 2))
        return (range){.input = input};
    return (range){x.low >> y.low, x.high >> y.low, true, input};
}

static bool is_small(const range *r) {
    return r->known && r->low >= INT32_MIN && r->high <= INT32_MAX;
}

/* Computes an operation on two ranges, before it wraps or is rounded. */
static range of_pair(const hlo_instr *instr, range x, range y) {
    const bool input = x.input || y.input;
    if (instr->op == HLO_OP_AND) return masked(x, y, input);
    if (instr->op == HLO_OP_SHIFT_RIGHT_ARITHMETIC || instr->op == HLO_OP_SHIFT_RIGHT_LOGICAL)
        return shifted(instr, x, y, input);
    if (!is_small(&x) || !is_small(&y)) return (range){.input = input};
    switch (instr->op) {
    case HLO_OP_ADD: return (range){x.low + y.low, x.high + y.high, true, input};
    case HLO_OP_SUBTRACT: return (range){x.low - y.high, x.high - y.low, true, input};
    case HLO_OP_MINIMUM: return (range){least(x.low, y.low), least(x.high, y.high), true, input};
    case HLO_OP_MAXIMUM: return (range){most(x.low, y.low), most(x.high, y.high), true, input};
    case HLO_OP_MULTIPLY: return product(x, y, input);
    default: return (range){.input = input};
    }
}

/* Computes a clamp of `x`, whatever that is, to constant bounds. */
static range clamped(range low, range x, range high) {
    if (!is_small(&low) || !is_small(&high)) return (range){.input = true};
    if (!x.known) return (range){least(low.low, high.low), high.high, true, x.input};
    return (range){least(most(x.low, low.low), high.low), least(most(x.high, low.high), high.high),
                   true, x.input};
}

static range of_parts(const hlo_instr *instr, uint32_t from, const range *ranges) {
    range r = ranges[hlo_instr_operand(instr, from)->id];
    for (uint32_t i = from + 1; i < instr->operand_count; i++)
        r = joined(r, ranges[hlo_instr_operand(instr, i)->id]);
    return r;
}

static range computed(const hlo_instr *instr, const range *ranges) {
    const range none = {.input = true};
    if (instr->pin || !hlo_shape_is_array(instr->shape)) return none;
    if (instr->op == HLO_OP_CONSTANT) return of_constant(instr);
    if (!instr->operand_count) return none;
    range x = ranges[hlo_instr_operand(instr, 0)->id], y;
    if (instr->op == HLO_OP_PAD || instr->op == HLO_OP_CONCATENATE)
        return of_parts(instr, 0, ranges);
    if (hlo_instr_moves(instr) || instr->op == HLO_OP_CONVERT) return x;
    switch (instr->op) {
    case HLO_OP_SELECT: return of_parts(instr, 1, ranges);
    case HLO_OP_CLAMP:
        y = ranges[hlo_instr_operand(instr, 1)->id];
        return y.known || hlo_type_is_integer(instr->shape->type)
                   ? clamped(x, y, ranges[hlo_instr_operand(instr, 2)->id])
                   : none;
    case HLO_OP_NEGATE: return is_small(&x) ? (range){-x.high, -x.low, true, x.input} : none;
    default:
        return instr->operand_count == 2
                   ? of_pair(instr, x, ranges[hlo_instr_operand(instr, 1)->id])
                   : none;
    }
}

void hlo_whole_ranges_find(const hlo_computation *comp, hlo_whole_range *ranges) {
    for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
        ranges[instr->id] = in_type(computed(instr, ranges), instr->shape->type);
}
