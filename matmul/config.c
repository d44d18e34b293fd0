/* SPDX-License-Identifier: Apache-2.0 */
#include "matmul/config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/tables.h"
#include "ir/text/suggest.h"
#include "matmul/json.h"

/* Words for numbers that JSON cannot express. XLA reads and writes them in protobuf's JSON
 * format. */
static const struct {
    const char *word;
    double value;
} unusual[] = {{"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"NaN", NAN}};

/* Each function read_KIND() reads the value of a key; `json` is NULL if the key is absent. The
 * function returns NULL, or the error (a static string). */

/* Reads a number. The number may be quoted, as in protobuf. */
static const char *read_NUMBER(const json_t *json, double *out_value) {
    static const char wrong[] = "alpha or beta is not a number";
    const char *text = json_string_value(json);
    if (!text) {
        *out_value = json_number_value(json);
        return json && !json_is_number(json) ? wrong : NULL;
    }
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        if (strcmp(text, unusual[i].word) == 0) {
            *out_value = unusual[i].value;
            return NULL;
        }
    char *end;
    *out_value = strtod(text, &end);
    return isdigit((unsigned char)text[*text == '-']) && !*end &&
                   strspn(text, "+-.0123456789Ee") == strlen(text)
               ? NULL
               : wrong;
}

static const char *read_ZERO(const json_t *json, double *unused) {
    (void)unused;
    double value;
    const char *wrong = read_NUMBER(json, &value);
    return wrong || value == 0 ? wrong : "alpha must be real";
}

/* Reads a list of at most `most` integers; an absent list counts as empty. */
static bool read_list(const json_t *list, size_t most, uint32_t *out_count, int64_t *out_values) {
    size_t count = json_array_size(list);
    if (list && (!json_is_array(list) || count > most)) return false;
    *out_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        const char *text = json_string_value(value); /* XLA writes 64-bit integers as strings */
        char *end = NULL;
        errno = 0;
        if (json_is_integer(value))
            out_values[i] = json_integer_value(value);
        else if (text && (isdigit((unsigned char)*text) || *text == '-'))
            out_values[i] = strtoll(text, &end, 10);
        else
            return false;
        if (end && (*end || errno)) return false;
    }
    return true;
}

#define read_DIMS(list, out)                                                                       \
    (read_list(list, HLO_CONFIG_DIMS, &(out)->count, (out)->v)                                     \
         ? NULL                                                                                    \
         : "dot_dimension_numbers has a value that is not a list of integers")
#define read_LAYOUTS(list, out)                                                                    \
    (read_list(list, HLO_CONFIG_LAYOUTS, &(out)->count, (out)->v)                                  \
         ? NULL                                                                                    \
         : "operand_layouts or result_layouts is not a list of integers")

/* Reads `length` identifier characters and converts them to lower case. */
static bool read_word(const char *text, size_t length, char *out_word) {
    if (!length || length >= HLO_CONFIG_WORD) return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
        out_word[i] = (char)tolower((unsigned char)text[i]);
    }
    out_word[length] = '\0';
    return true;
}

/* Reads a list of words, or a string of words separated by commas, because MLIR attributes have no
 * lists of strings. */
static const char *read_WORDS(const json_t *json, char (*out_words)[2][HLO_CONFIG_WORD]) {
    static const char precisions[] = " default high highest"; /* a dot's operand_precision */
    static const char wrong[] =
        "operand_precision must be a list of at most two of DEFAULT, HIGH and HIGHEST";
    const char *text = json_string_value(json);
    size_t count = json_array_size(json);
    strcpy((*out_words)[0], "default");
    strcpy((*out_words)[1], "default");
    if (!json) return NULL;
    if (!text && (!json_is_array(json) || count > 2)) return wrong;
    for (size_t i = 0; i < (text ? 2 : count); i++) {
        const char *word = text ? text : json_string_value(json_array_get(json, i));
        size_t length = word ? strcspn(word, text ? "," : "") : 0;
        if (!read_word(word, length, (*out_words)[i]) ||
            !hlo_word_in(precisions, (*out_words)[i], length))
            return wrong;
        if (!text) continue;
        if (i == 1 && text[length]) return wrong;
        if (!text[length]) break;
        text += length + 1;
    }
    return NULL;
}

static const char *read_ALGORITHM(const json_t *json, char (*out_word)[HLO_CONFIG_WORD]) {
    if (!json) return NULL;
    const char *word = json_string_value(json);
    if (!word || strncmp(word, "ALG_", 4) != 0 ||
        !read_word(word + 4, strlen(word + 4), *out_word) ||
        !hlo_word_in(hlo_attr_values(HLO_OP_DOT, HLO_ATTR_ALGORITHM), *out_word, strlen(*out_word)))
        return "unknown algorithm";
    if (strcmp(*out_word, "unset") == 0) **out_word = '\0';
    return NULL;
}

static const char *read_MODE(const json_t *json, hlo_scale_mode *out_mode) {
    *out_mode = HLO_SCALE_SCALAR;
    if (json)
        *out_mode = json_is_string(json) ? hlo_scale_mode_find(json_string_value(json))
                                         : HLO_SCALE_MODE_COUNT;
    return *out_mode == HLO_SCALE_MODE_COUNT ? "unknown scale mode" : NULL;
}

static const char *read_EPILOGUE(const json_t *json, hlo_epilogue *out_epilogue) {
    static const char *const unknown[] = {
#define HLO_EPILOGUE(id, bias, activation, aux) "unknown epilogue; did you mean '" #id "'?",
#include "matmul/table/epilogue.def"
#undef HLO_EPILOGUE
    };
    *out_epilogue = HLO_EPILOGUE_DEFAULT;
    if (!json) return NULL;
    if (!json_is_string(json)) return "epilogue is not a string";
    *out_epilogue = hlo_epilogue_find(json_string_value(json));
    if (*out_epilogue != HLO_EPILOGUE_COUNT) return NULL;
    hlo_suggestion s = hlo_suggest(json_string_value(json));
    for (int i = 0; i < HLO_EPILOGUE_COUNT; i++) hlo_suggest_offer(&s, hlo_epilogues[i].name);
    return s.best ? unknown[hlo_epilogue_find(s.best)] : "unknown epilogue";
}

static const char *read_FLAG(const json_t *json, bool *out_flag) {
    *out_flag = json_is_true(json);
    return json && !json_is_boolean(json) ? "damax_output is not a boolean" : NULL;
}

typedef enum group { GROUP_GEMM, GROUP_NUMBERS, GROUP_PRECISION, GROUP_COUNT } group;

static const char *const group_names[GROUP_COUNT] = {
    [GROUP_NUMBERS] = "dot_dimension_numbers", [GROUP_PRECISION] = "precision_config"};

static const char *read_gemm(const json_t *const groups[GROUP_COUNT], hlo_config *config) {
    const char *wrong = NULL;
#define read_STRIDE(json, member) NULL
#define read_FALSE(json, member) NULL
#define HLO_CONFIG(group, key, kind, member)                                                       \
    if (!wrong) wrong = read_##kind(json_object_get(groups[GROUP_##group], key), &config->member);
#include "matmul/table/config.def"
#undef HLO_CONFIG
    return wrong;
}

static const char *read_json(const json_t *json, hlo_config *config) {
    if (!json_is_object(json)) return "backend_config is not a JSON object";
    const json_t *gemm = json_object_get(json, "gemm_backend_config");
    if (!json_is_object(gemm)) return "backend_config lacks gemm_backend_config";
    const json_t *groups[GROUP_COUNT] = {gemm};
    for (int i = GROUP_GEMM + 1; i < GROUP_COUNT; i++)
        groups[i] = json_object_get(gemm, group_names[i]);
    if (!json_is_object(groups[GROUP_NUMBERS])) return "dot_dimension_numbers is missing";
    if (groups[GROUP_PRECISION] && !json_is_object(groups[GROUP_PRECISION]))
        return "precision_config is not an object";
    return read_gemm(groups, config);
}

const char *hlo_config_read(hlo_arena *arena, const char *text, bool typed,
                            hlo_config *out_config) {
    *out_config = (hlo_config){0};
    if (!text) return "backend_config is missing";
    if (typed) {
        bool starved;
        json_t *json;
        const char *wrong = hlo_mlir_read(text, &json, &starved);
        if (starved) hlo_arena_exhausted(arena);
        if (!wrong) wrong = read_gemm((const json_t *[]){json, json, json}, out_config);
        json_decref(json);
        return wrong;
    }
    json_t *json;
    if (text[strspn(text, " ")] == '"') { /* a string that contains the object */
        json_t *list = hlo_json_text(arena, hlo_arena_format(arena, "[%s]", text));
        const char *inside = json_string_value(json_array_get(list, 0));
        bool starved = false;
        json = inside ? hlo_json_read(inside, strlen(inside), 0, NULL, &starved) : NULL;
        json_decref(list);
        if (starved) hlo_arena_exhausted(arena);
    } else {
        json = hlo_json_text(arena, text);
    }
    const char *why = read_json(json, out_config);
    json_decref(json);
    return why;
}

static char *upper(hlo_arena *arena, const char *word) {
    char *text = hlo_arena_copy(arena, word, strlen(word) + 1);
    for (char *c = text; *c; c++) *c = (char)toupper((unsigned char)*c);
    return text;
}

/* Writes `{highest,default}` as `HIGHEST,DEFAULT`, with `quote` around each word, and ignores words
 * after the first two. */
static const char *format_words(hlo_arena *arena, const char *precision, const char *quote) {
    const char *from = precision ? precision : "default,default", *text = "";
    for (int words = 0; words < 2; words++) {
        from += strcspn(from, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        size_t length = 0;
        while (isalnum((unsigned char)from[length]) || from[length] == '_') length++;
        if (!length) break;
        text = hlo_arena_format(arena, "%s%s%s%.*s%s", text, words ? "," : "", quote, (int)length,
                                from, quote);
        from += length;
    }
    return upper(arena, text);
}

static const char *format_list(hlo_arena *arena, uint32_t count, const int64_t *values) {
    const char *text = "";
    for (uint32_t i = 0; i < count; i++)
        text = hlo_arena_format(arena, "%s%s\"%lld\"", text, i ? "," : "", (long long)values[i]);
    return hlo_arena_format(arena, "[%s]", text);
}

static const char *format_array(hlo_arena *arena, uint32_t count, const int64_t *values) {
    const char *text = "array<i64";
    for (uint32_t i = 0; i < count; i++)
        text = hlo_arena_format(arena, "%s%s %lld", text, i ? "," : ":", (long long)values[i]);
    return hlo_arena_format(arena, "%s>", text);
}

static const char *format_number(hlo_arena *arena, double value) {
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        if (value == unusual[i].value || (isnan(value) && isnan(unusual[i].value)))
            return hlo_arena_format(arena, "\"%s\"", unusual[i].word);
    return hlo_arena_format(arena, "%.17g", value);
}

static const char *format_word(hlo_arena *arena, const char *word) {
    return hlo_arena_format(arena, "\"%s\"", word);
}

/* Appends a key with its value in its group, and opens or closes groups as needed. Does nothing if
 * the value is NULL. */
static void put_json(hlo_arena *arena, const char **text, group *open, group in, const char *key,
                     const char *value) {
    if (!value) return;
    if (*open != in && *open != GROUP_GEMM) *text = hlo_arena_format(arena, "%s}", *text);
    const char *comma = (*text)[strlen(*text) - 1] == '{' ? "" : ",";
    if (*open != in && in != GROUP_GEMM) {
        *text = hlo_arena_format(arena, "%s%s\"%s\":{", *text, comma, group_names[in]);
        comma = "";
    }
    *open = in;
    *text = hlo_arena_format(arena, "%s%s\"%s\":%s", *text, comma, key, value);
}

char *hlo_config_format(hlo_arena *arena, const hlo_matmul *matmul, hlo_scale_form form,
                        int64_t a_stride, int64_t b_stride) {
    const struct config_strides { int64_t a, b; } strides = {a_stride, b_stride};
    const bool scalars = matmul->a_mode == HLO_SCALE_SCALAR && matmul->b_mode == HLO_SCALE_SCALAR;
    const char *text = "{\"gemm_backend_config\":{";
    group open = GROUP_GEMM;
#define FORMAT_NUMBER(member) format_number(arena, matmul->member)
#define FORMAT_ZERO(member) "0"
#define FORMAT_STRIDE(member) hlo_arena_format(arena, "\"%lld\"", (long long)strides.member)
#define FORMAT_FALSE(member) "false"
#define FORMAT_DIMS(member) format_list(arena, matmul->member->count, matmul->member->v)
#define FORMAT_WORDS(member)                                                                       \
    hlo_arena_format(arena, "[%s]", format_words(arena, matmul->member, "\""))
#define FORMAT_ALGORITHM(member)                                                                   \
    hlo_arena_format(arena, "\"ALG_%s\"", matmul->member ? upper(arena, matmul->member) : "UNSET")
#define FORMAT_EPILOGUE(member) format_word(arena, hlo_epilogues[matmul->member].name)
#define FORMAT_FLAG(member) (matmul->member ? "true" : "false")
#define FORMAT_MODE(member)                                                                        \
    (scalars ? NULL : format_word(arena, hlo_scale_modes[matmul->member].name))
#define FORMAT_LAYOUTS(member) NULL
#define HLO_CONFIG(group, key, kind, member)                                                       \
    put_json(arena, &text, &open, GROUP_##group, key, FORMAT_##kind(member));
#include "matmul/table/config.def"
#undef HLO_CONFIG
    const char *mode = scalars && form == HLO_SCALES_USED ? ",\"scale_mode\":1" : "";
    return hlo_arena_format(arena, "%s%s}}", text, mode);
}

static void put_typed(hlo_arena *arena, const char **text, const char *key, const char *value) {
    if (!value) return;
    *text = hlo_arena_format(arena, "%s%s%s = %s", *text, **text ? ", " : "", key, value);
}

char *hlo_config_format_typed(hlo_arena *arena, const hlo_matmul *matmul,
                              const hlo_config_layouts *operands,
                              const hlo_config_layouts *results) {
    const struct config_layouts {
        const hlo_config_layouts *operand_layouts, *result_layouts;
    } layouts = {operands, results};
    const char *text = "";
#define TYPED_NUMBER(member) hlo_mlir_number(arena, matmul->member)
#define TYPED_ZERO(member) NULL
#define TYPED_STRIDE(member) NULL
#define TYPED_FALSE(member) NULL
#define TYPED_DIMS(member) format_array(arena, matmul->member->count, matmul->member->v)
#define TYPED_LAYOUTS(member)                                                                      \
    (layouts.member->count ? format_array(arena, layouts.member->count, layouts.member->v) : NULL)
#define TYPED_WORDS(member) format_word(arena, format_words(arena, matmul->member, ""))
#define TYPED_ALGORITHM FORMAT_ALGORITHM
#define TYPED_EPILOGUE FORMAT_EPILOGUE
#define TYPED_FLAG FORMAT_FLAG
#define TYPED_MODE(member) format_word(arena, hlo_scale_modes[matmul->member].name)
#define HLO_CONFIG(group, key, kind, member) put_typed(arena, &text, key, TYPED_##kind(member));
#include "matmul/table/config.def"
#undef HLO_CONFIG
    return hlo_arena_format(arena, "{%s}", text);
}
