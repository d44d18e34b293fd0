/* The JSON of a matmul call's backend_config. */
#include "matmul/config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/suggest.h"
#include "matmul/json.h"

/* -------------------------------------------------------------------------------------- reading */

/* XLA writes 64-bit integers as strings, and reads both. */
static bool read_integer(const json_t *json, int64_t *out_value) {
    if (json_is_integer(json)) {
        *out_value = json_integer_value(json);
        return true;
    }
    const char *text = json_string_value(json);
    if (!text || !(isdigit((unsigned char)*text) || *text == '-')) return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end || errno) return false;
    *out_value = value;
    return true;
}

static bool read_dims(const json_t *numbers, const char *key, hlo_config_dims *out_dims) {
    const json_t *list = json_object_get(numbers, key);
    if (!list) return true;
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > HLO_CONFIG_DIMS) return false;
    out_dims->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        if (!read_integer(json_array_get(list, i), &out_dims->v[i])) return false;
    return true;
}

/* What JSON has no number for: words that stand for it, as in protobuf's JSON, which is what XLA
 * writes and reads. */
static const struct {
    const char *word;
    double value;
} unusual[] = {{"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"NaN", NAN}};

static bool read_text_number(const char *text, double *out_value) {
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        if (strcmp(text, unusual[i].word) == 0) {
            *out_value = unusual[i].value;
            return true;
        }
    const char *digits = text + (*text == '-');
    char *end;
    *out_value = strtod(text, &end);
    return isdigit((unsigned char)*digits) && !*end &&
           strspn(text, "+-.0123456789Ee") == strlen(text);
}

/* Also in quotes, which protobuf allows for any number. */
static bool read_number(const json_t *config, const char *key, double *out_value) {
    const json_t *json = json_object_get(config, key);
    if (json_is_string(json)) return read_text_number(json_string_value(json), out_value);
    if (json && !json_is_number(json)) return false;
    *out_value = json_number_value(json);
    return true;
}

/* Identifier characters only, in lower case. */
static bool read_word(const char *text, char *out_word) {
    size_t length = text ? strlen(text) : 0;
    if (!length || length >= HLO_CONFIG_WORD) return false;
    for (size_t i = 0; i <= length; i++) {
        if (text[i] && !isalnum((unsigned char)text[i]) && text[i] != '_') return false;
        out_word[i] = (char)tolower((unsigned char)text[i]);
    }
    return true;
}

static const char *read_precision(const json_t *json, hlo_config *config) {
    strcpy(config->precision[0], "default");
    strcpy(config->precision[1], "default");
    if (!json) return NULL;
    if (!json_is_object(json)) return "precision_config is not an object";
    const json_t *operands = json_object_get(json, "operand_precision");
    if (operands && (!json_is_array(operands) || json_array_size(operands) > 2))
        return "operand_precision is not a list of at most two words";
    for (size_t i = 0; i < json_array_size(operands); i++)
        if (!read_word(json_string_value(json_array_get(operands, i)), config->precision[i]))
            return "operand_precision is not a list of at most two words";
    const json_t *algorithm = json_object_get(json, "algorithm");
    if (!algorithm) return NULL;
    const char *word = json_string_value(algorithm);
    if (!word || strncmp(word, "ALG_", 4) != 0 || !read_word(word + 4, config->algorithm))
        return "algorithm is not one of XLA's ALG_ words";
    if (strcmp(config->algorithm, "unset") == 0) *config->algorithm = '\0';
    return NULL;
}

/* The word of scale.def under that key, SCALAR when there is none. */
static bool read_mode(const json_t *config, const char *key, hlo_scale_mode *out_mode) {
    const json_t *json = json_object_get(config, key);
    *out_mode = HLO_SCALE_SCALAR;
    if (json)
        *out_mode = json_is_string(json) ? hlo_scale_mode_find(json_string_value(json))
                                         : HLO_SCALE_MODE_COUNT;
    return *out_mode != HLO_SCALE_MODE_COUNT;
}

/* Why `word` is no epilogue, with the one that may have been meant. */
static const char *no_epilogue(const char *word) {
    static const struct {
        const char *name, *why;
    } near[] = {
#define HLO_EPILOGUE(id, bias, activation, aux, cublaslt)                                          \
    {#id, "no epilogue is called so; did you mean '" #id "'?"},
#include "matmul/table/epilogue.def"
#undef HLO_EPILOGUE
    };
    hlo_suggestion s = hlo_suggest(word);
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) hlo_suggest_offer(&s, near[i].name);
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        if (s.best == near[i].name) return near[i].why;
    return "no epilogue is called so";
}

static const char *read_gemm(const json_t *json, hlo_config *config) {
    double imaginary;
    if (!read_number(json, "alpha_real", &config->alpha) ||
        !read_number(json, "alpha_imag", &imaginary) || !read_number(json, "beta", &config->beta))
        return "alpha or beta is not a number";
    if (imaginary != 0) return "alpha is not real";

    const json_t *numbers = json_object_get(json, "dot_dimension_numbers");
    if (!json_is_object(numbers)) return "dot_dimension_numbers is missing";
    if (!read_dims(numbers, "lhs_batch_dimensions", &config->a_batch) ||
        !read_dims(numbers, "lhs_contracting_dimensions", &config->a_contracting) ||
        !read_dims(numbers, "rhs_batch_dimensions", &config->b_batch) ||
        !read_dims(numbers, "rhs_contracting_dimensions", &config->b_contracting))
        return "dot_dimension_numbers holds something that is not a list of integers";

    const json_t *epilogue = json_object_get(json, "epilogue");
    config->epilogue = HLO_EPILOGUE_DEFAULT;
    if (epilogue) {
        if (!json_is_string(epilogue)) return "epilogue is not a word";
        config->epilogue = hlo_epilogue_find(json_string_value(epilogue));
        if (config->epilogue == HLO_EPILOGUE_COUNT) return no_epilogue(json_string_value(epilogue));
    }
    if (!read_mode(json, "lhs_scale_mode", &config->a_mode) ||
        !read_mode(json, "rhs_scale_mode", &config->b_mode))
        return "no scale mode is called so";
    const json_t *amax = json_object_get(json, "damax_output");
    if (amax && !json_is_boolean(amax)) return "damax_output is not true or false";
    config->amax = json_is_true(amax);
    return read_precision(json_object_get(json, "precision_config"), config);
}

const char *hlo_config_read(hlo_arena *arena, const char *text, hlo_config *out_config) {
    *out_config = (hlo_config){0};
    if (!text) return "backend_config is missing";
    json_t *json;
    if (text[strspn(text, " ")] == '"') { /* an object in a string */
        json_t *list = hlo_json_text(arena, hlo_arena_format(arena, "[%s]", text));
        const char *inside = json_string_value(json_array_get(list, 0));
        bool starved = false;
        json = inside ? hlo_json_read(inside, strlen(inside), 0, NULL, &starved) : NULL;
        json_decref(list);
        if (starved) hlo_arena_exhausted(arena);
    } else {
        json = hlo_json_text(arena, text);
    }
    const char *why = "backend_config is not a JSON object";
    if (json_is_object(json)) {
        const json_t *gemm = json_object_get(json, "gemm_backend_config");
        why = json_is_object(gemm) ? read_gemm(gemm, out_config)
                                   : "backend_config has no gemm_backend_config";
    }
    json_decref(json);
    return why;
}

/* -------------------------------------------------------------------------------------- writing */

static char *upper(hlo_arena *arena, const char *word) {
    char *text = hlo_arena_copy(arena, word, strlen(word) + 1);
    for (char *c = text; *c; c++) *c = (char)toupper((unsigned char)*c);
    return text;
}

/* `{highest,default}` as `"HIGHEST","DEFAULT"`. Words beyond the two operands say nothing. */
static const char *format_precision(hlo_arena *arena, const char *precision) {
    if (!precision) return "\"DEFAULT\",\"DEFAULT\"";
    char *out = hlo_arena_alloc(arena, 4 * strlen(precision) + 1), *to = out;
    bool inside = false;
    int words = 0;
    for (const char *from = precision; *from || inside; from++) {
        bool letter = isalnum((unsigned char)*from) || *from == '_';
        if (letter && !inside && ++words > 2) break;
        if (letter && !inside && to > out) *to++ = ',';
        if (letter != inside) *to++ = '"';
        inside = letter;
        if (letter) *to++ = (char)toupper((unsigned char)*from);
        if (!*from) break;
    }
    *to = '\0';
    return out;
}

static const char *format_dims(hlo_arena *arena, const hlo_ints *dims) {
    const char *text = "";
    for (uint32_t i = 0; i < dims->count; i++)
        text = hlo_arena_format(arena, "%s%s\"%lld\"", text, i ? "," : "", (long long)dims->v[i]);
    return text;
}

static const char *format_modes(hlo_arena *arena, const hlo_matmul *matmul, hlo_scale_form form) {
    if (matmul->a_mode == HLO_SCALE_SCALAR && matmul->b_mode == HLO_SCALE_SCALAR)
        return form == HLO_SCALES_USED ? ",\"scale_mode\":1" : "";
    return hlo_arena_format(arena, ",\"lhs_scale_mode\":\"%s\",\"rhs_scale_mode\":\"%s\"",
                            hlo_scale_modes[matmul->a_mode].name,
                            hlo_scale_modes[matmul->b_mode].name);
}

static const char *format_number(hlo_arena *arena, double value) {
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        if (value == unusual[i].value || (isnan(value) && isnan(unusual[i].value)))
            return hlo_arena_format(arena, "\"%s\"", unusual[i].word);
    return hlo_arena_format(arena, "%.17g", value);
}

char *hlo_config_format(hlo_arena *arena, const hlo_matmul *matmul, hlo_scale_form form,
                        int64_t a_stride, int64_t b_stride) {
    const char *algorithm = matmul->algorithm ? upper(arena, matmul->algorithm) : "UNSET";
    return hlo_arena_format(
        arena,
        "{\"gemm_backend_config\":{\"alpha_real\":%s,\"alpha_imag\":0,\"beta\":%s,"
        "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[%s],"
        "\"rhs_contracting_dimensions\":[%s],\"lhs_batch_dimensions\":[%s],"
        "\"rhs_batch_dimensions\":[%s]},"
        "\"precision_config\":{\"operand_precision\":[%s],\"algorithm\":\"ALG_%s\"},"
        "\"epilogue\":\"%s\",\"damax_output\":%s,\"lhs_stride\":\"%lld\",\"rhs_stride\":\"%lld\","
        "\"grad_x\":false,\"grad_y\":false%s}}",
        format_number(arena, matmul->alpha), format_number(arena, matmul->beta),
        format_dims(arena, matmul->a_contracting), format_dims(arena, matmul->b_contracting),
        format_dims(arena, matmul->a_batch), format_dims(arena, matmul->b_batch),
        format_precision(arena, matmul->precision), algorithm, hlo_epilogue_name(matmul->epilogue),
        matmul->amax ? "true" : "false", (long long)a_stride, (long long)b_stride,
        format_modes(arena, matmul, form));
}
