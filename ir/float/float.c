/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between double and every float format, by float.def. */
#include "ir/float/float.h"

#include <math.h>
#include <string.h>

#include "ir/float/encode.h"

typedef struct format {
    int exponent, mantissa, bias;
    special special;
} format;

static const format formats[HLO_TYPE_COUNT] = {
#define HLO_FLOAT(id, exponent, mantissa, bias, special)                                           \
    [HLO_TYPE_##id] = {exponent, mantissa, bias, special},
#include "ir/float/float.def"
#undef HLO_FLOAT
};

static uint64_t sign_bit(const format *f) {
    return f->special == E8M0 ? 0 : UINT64_C(1) << (f->exponent + f->mantissa);
}

static uint64_t largest_code(const format *f) {
    uint64_t all = (UINT64_C(1) << (f->exponent + f->mantissa)) - 1;
    switch (f->special) {
    case IEEE: return all - (UINT64_C(1) << f->mantissa);
    case FN:
    case E8M0: return all - 1;
    case FNUZ:
    case FINITE: return all;
    }
    return all;
}

static uint64_t nan_code(const format *f) {
    switch (f->special) {
    case IEEE: return largest_code(f) + 1 + (UINT64_C(1) << (f->mantissa - 1));
    case FN:
    case E8M0: return largest_code(f) + 1;
    case FNUZ:
    case FINITE: return sign_bit(f);
    }
    return 0;
}

/* Decodes a code without its sign bit as a finite value. */
static double magnitude(const format *f, uint64_t code) {
    uint64_t fraction = code & ((UINT64_C(1) << f->mantissa) - 1);
    int exponent = (int)(code >> f->mantissa);
    if (f->special == E8M0) return ldexp(1.0, exponent - f->bias);
    if (exponent == 0) return ldexp((double)fraction, 1 - f->bias - f->mantissa);
    return ldexp((double)(fraction + (UINT64_C(1) << f->mantissa)),
                 exponent - f->bias - f->mantissa);
}

double hlo_float_decode(hlo_type type, uint64_t bits) {
    if (type == HLO_TYPE_F64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (type == HLO_TYPE_F32) {
        uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        return (double)value;
    }
    const format *f = &formats[type];
    uint64_t sign = bits & sign_bit(f), code = bits & (sign_bit(f) - 1);
    if (f->special == E8M0) code = bits & 0xff;
    if (f->special == FNUZ && sign && code == 0) return NAN;
    double value = code <= largest_code(f)                             ? magnitude(f, code)
                   : f->special == IEEE && code == largest_code(f) + 1 ? (double)INFINITY
                                                                       : (double)NAN;
    return sign ? -value : value;
}

uint64_t hlo_float_encode(hlo_type type, double value) {
    if (type == HLO_TYPE_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    if (type == HLO_TYPE_F32) {
        float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    const format *f = &formats[type];
    uint64_t sign = signbit(value) ? sign_bit(f) : 0;
    if (isnan(value)) return nan_code(f) ^ (f->special == FNUZ ? 0 : sign);
    if (f->special == E8M0) {
        /* Ties round up. Below the smallest normal f32, every value above the smallest code also
         * rounds up. */
        if (!(value > 0) || value >= 0x1.8p127) return 0xff;
        if (value < 0x1p-126) return value > 0x1p-127;
        int exponent;
        double fraction = frexp(value, &exponent);
        return (uint64_t)(exponent - 1 + 127 + (fraction >= 0.75));
    }
    double size = fabs(value);
    uint64_t code;
    if (isinf(size)) {
        code = largest_code(f) + 1;
    } else {
        int exponent;
        frexp(size, &exponent);                /* size = [0.5, 1) * 2^exponent */
        int step = exponent - 1 - f->mantissa; /* exponent of the last place of a normal number */
        int lowest = 1 - f->bias - f->mantissa;
        if (size == 0 || step < lowest) step = lowest;
        double units = nearbyint(ldexp(size, -step)); /* ties to even */
        uint64_t whole = (uint64_t)units;
        code = ((uint64_t)(step - lowest) << f->mantissa) + whole;
    }
    if (code > largest_code(f)) {
        if (f->special == FINITE)
            code = largest_code(f);
        else if (f->special == IEEE)
            code = largest_code(f) + 1;
        else
            return nan_code(f) | (f->special == FN ? sign : 0);
    }
    if (code == 0 && f->special == FNUZ) sign = 0;
    return code | sign;
}

uint64_t hlo_float_nan(hlo_type type, bool negative, uint64_t payload) {
    const format *f = &formats[type];
    if (f->special != IEEE || payload == 0 || payload >> f->mantissa) return 0;
    return (negative ? sign_bit(f) : 0) | (largest_code(f) + 1) | payload;
}

uint64_t hlo_float_payload(hlo_type type, uint64_t bits) {
    const format *f = &formats[type];
    uint64_t code = bits & (sign_bit(f) - 1);
    if (f->special != IEEE || code <= largest_code(f) + 1 || code == nan_code(f)) return 0;
    return code & ((UINT64_C(1) << f->mantissa) - 1);
}

double hlo_float_max(hlo_type type) {
    const format *f = &formats[type];
    return magnitude(f, largest_code(f));
}

uint64_t hlo_float_sign(hlo_type type) {
    return sign_bit(&formats[type]);
}

int hlo_float_precision(hlo_type type) {
    return formats[type].mantissa + 1;
}

double hlo_number_load(hlo_type type, const void *element) {
    uint64_t bits = 0;
    memcpy(&bits, element, hlo_types[type].bytes);
    switch ((hlo_type_class)hlo_types[type].class) {
    case HLO_CLASS_FLOAT: return hlo_float_decode(type, bits);
    case HLO_CLASS_SIGNED: {
        int unused = 64 - 8 * hlo_types[type].bytes;
        return (double)((int64_t)(bits << unused) >> unused);
    }
    default: return (double)bits;
    }
}

void hlo_number_store(hlo_type type, void *element, double value) {
    const hlo_type_info *info = &hlo_types[type];
    uint64_t bits;
    switch ((hlo_type_class)info->class) {
    case HLO_CLASS_FLOAT: bits = hlo_float_encode(type, value); break;
    case HLO_CLASS_PRED: bits = value != 0; break;
    case HLO_CLASS_SIGNED: {
        double limit = ldexp(1.0, info->bits - 1);
        int64_t highest = (int64_t)((UINT64_C(1) << (info->bits - 1)) - 1);
        int64_t whole = isnan(value)      ? 0
                        : value >= limit  ? highest
                        : value <= -limit ? -highest - 1
                                          : (int64_t)value;
        bits = (uint64_t)whole;
        break;
    }
    default: {
        double limit = ldexp(1.0, info->bits);
        uint64_t highest = info->bits == 64 ? UINT64_MAX : (UINT64_C(1) << info->bits) - 1;
        bits = isnan(value) || value <= 0 ? 0 : value >= limit ? highest : (uint64_t)value;
        break;
    }
    }
    memcpy(element, &bits, info->bytes);
}
