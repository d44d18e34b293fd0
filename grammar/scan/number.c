/* Numbers in HLO text, as XLA's reader takes them. */
#include <stdlib.h>

#include "grammar/scan/parser.h"

/* Reads digits as a uint64, as HLO reads integers of every type; false: they do not fit. */
static bool digits(const char *from, const char *to, uint64_t *out) {
    uint64_t value = 0;
    for (; from < to; from++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*from - '0'), &value))
            return false;
    *out = value;
    return true;
}

bool hlo_number_is_digits(const char *from, const char *to) {
    for (const char *at = from; at < to; at++)
        if (*at < '0' || *at > '9') return false;
    return to > from;
}

bool hlo_number_read_int(const char *from, const char *to, int64_t *out) {
    bool negative = *from == '-';
    uint64_t value;
    if (!hlo_number_is_digits(from + negative, to) || !digits(from + negative, to, &value))
        return false;
    if (negative && value > (uint64_t)INT64_MAX + 1) return false;
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

/* True for decimal digits with at most one point and an exponent: XLA and strtod() read these
 * alike. */
static bool is_decimal(const char *from, const char *to) {
    const char *at = from + (*from == '-');
    if (at == to || *at < '0' || *at > '9') return false;
    while (at < to && *at >= '0' && *at <= '9') at++;
    if (at < to && *at == '.') do
            at++;
        while (at < to && *at >= '0' && *at <= '9');
    if (at < to && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < to && (*at == '-' || *at == '+')) at++;
        if (at == to) return false;
        while (at < to && *at >= '0' && *at <= '9') at++;
    }
    return at == to;
}

/* Reads a number of at most 15 digits and a power of ten up to 22: both are doubles, and one
 * operation rounds once, so that the value is exact. */
static bool quick_decimal(const char *from, const char *to, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool negative = *from == '-';
    uint64_t value = 0;
    int count = 0, scale = 0;
    bool point = false;
    const char *at = from + negative;
    for (; at < to && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        value = value * 10 + (uint64_t)(*at - '0');
        scale -= point;
        if (++count > 15) return false;
    }
    if (at < to) {
        int exponent = 0;
        bool minus = *++at == '-';
        if (*at == '-' || *at == '+') at++;
        if (to - at > 3) return false;
        while (at < to) exponent = exponent * 10 + (*at++ - '0');
        scale += minus ? -exponent : exponent;
    }
    if (scale < -22 || scale > 22) return false;
    double number = (double)value;
    number = scale < 0 ? number / powers[-scale] : number * powers[scale];
    *out = negative ? -number : number;
    return true;
}

bool hlo_number_read_decimal(const char *from, const char *to, double *out) {
    if (!is_decimal(from, to)) return false;
    if (!quick_decimal(from, to, out)) *out = strtod(from, NULL);
    return true;
}
