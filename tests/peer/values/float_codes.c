/* SPDX-License-Identifier: Apache-2.0 */
/* Runs conversions of the library for a peer test: reads raw elements from standard input, and
 * writes raw elements to standard output.
 *
 *   float_codes decode TYPE     codes of TYPE to f64, by the scalar function
 *   float_codes decode-row TYPE codes of TYPE to f32
 *   float_codes encode TYPE     f64 to codes of TYPE, by the scalar function
 *   float_codes encode-row TYPE f32 to codes of TYPE
 *   float_codes all TYPE        no input; the codes of TYPE of all 2^32 f32, in order */
#include <stdio.h>
#include <string.h>

#include "ir/float/float.h"

enum { COUNT = 1 << 16 };

static size_t encode_all(hlo_type type, size_t size) {
    static float in[COUNT];
    static unsigned char out[COUNT * 2];
    size_t wrote = 0;
    for (uint64_t first = 0; first < UINT64_C(1) << 32; first += COUNT) {
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t bits = (uint32_t)first + i;
            memcpy(&in[i], &bits, sizeof bits);
        }
        hlo_float_encode_row(type, in, COUNT, out, (int64_t)size);
        wrote += fwrite(out, size, COUNT, stdout);
    }
    return wrote;
}

int main(int argc, char **argv) {
    static unsigned char in[COUNT * 8], out[COUNT * 8];
    if (argc != 3) return 2;
    hlo_type type = hlo_type_find(argv[2], strlen(argv[2]));
    if (type == HLO_TYPE_INVALID) return 2;
    size_t size = hlo_types[type].bytes;
    bool decode = strncmp(argv[1], "decode", 6) == 0, row = strstr(argv[1], "-row") != NULL;
    if (strcmp(argv[1], "all") == 0) return encode_all(type, size) != UINT64_C(1) << 32;
    size_t wide = row ? sizeof(float) : sizeof(double);
    size_t from = decode ? size : wide, to = decode ? wide : size, count;
    while ((count = fread(in, from, COUNT, stdin)) > 0) {
        if (row && decode)
            hlo_float_decode_row(type, in, (int64_t)size, (int64_t)count, (void *)out);
        if (row && !decode)
            hlo_float_encode_row(type, (const void *)in, (int64_t)count, out, (int64_t)size);
        for (size_t i = 0; !row && i < count; i++) {
            double value;
            uint64_t code = 0;
            if (decode) {
                memcpy(&code, in + i * size, size);
                value = hlo_float_decode(type, code);
                memcpy(out + i * wide, &value, wide);
            } else {
                memcpy(&value, in + i * wide, wide);
                code = hlo_float_encode(type, value);
                memcpy(out + i * size, &code, size);
            }
        }
        if (fwrite(out, to, count, stdout) != count) return 1;
    }
    return 0;
}
