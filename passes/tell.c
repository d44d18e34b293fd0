/* Verdicts for people and for machines: text, JSON, SARIF, JUnit XML, and the gate. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "passes/report.h"

typedef struct row_of_why {
    const char *name, *text, *hint;
} row_of_why;

static const row_of_why whys[] = {
#define HLO_WHY(id, name, text, hint) {name, text, hint},
#include "passes/why.def"
#undef HLO_WHY
};

size_t hlo_reason_count(void) {
    return HLO_WHY_COUNT;
}

const char *hlo_reason_name(size_t index) {
    return whys[index].name;
}

const char *hlo_reason_text(size_t index) {
    return whys[index].text;
}

const char *hlo_reason_hint(size_t index) {
    return whys[index].hint;
}

const char *hlo_reason_page(size_t index) {
    return hlo_reason_pages[index];
}

static const char *const kind_names[] = {
    [HLO_VERDICT_FP8] = "fp8", [HLO_VERDICT_MISSED] = "missed", [HLO_VERDICT_WIDE] = "wide"};

/* Green, yellow, red. */
static const char *const kind_colours[] = {[HLO_VERDICT_FP8] = "\033[32m",
                                           [HLO_VERDICT_MISSED] = "\033[33m",
                                           [HLO_VERDICT_WIDE] = "\033[31m"};

/* What is told: the verdicts of all reports, and how many there are of each kind and reason. */
typedef struct summary {
    size_t total, kinds[3], reasons[3][HLO_WHY_COUNT];
    double flops, fp8_flops;
} summary;

typedef struct telling {
    const hlo_report *const *reports;
    size_t count;
    hlo_remarks which;
    bool coloured;
    FILE *out;
    summary sum;
} telling;

static bool is_wanted(const hlo_verdict *v, hlo_remarks which) {
    switch (which) {
    case HLO_REMARKS_MISSED: return v->kind != HLO_VERDICT_FP8;
    case HLO_REMARKS_PASSED: return v->kind != HLO_VERDICT_WIDE;
    case HLO_REMARKS_ALL: return true;
    }
    return false;
}

/* The next wanted verdict after (*report, *index), which start at 0, 0; NULL: no more. */
static const hlo_verdict *next_verdict(const telling *t, size_t *report, size_t *index) {
    for (; *report < t->count; (*report)++, *index = 0)
        while (*index < t->reports[*report]->verdict_count) {
            const hlo_verdict *v = &t->reports[*report]->verdicts[(*index)++];
            if (is_wanted(v, t->which)) return v;
        }
    return NULL;
}

static summary summarise(const hlo_report *const *reports, size_t count) {
    summary s = {0};
    const telling all = {.reports = reports, .count = count, .which = HLO_REMARKS_ALL};
    size_t report = 0, index = 0;
    for (const hlo_verdict *v; (v = next_verdict(&all, &report, &index));) {
        s.total++;
        s.kinds[v->kind]++;
        if (v->reason) s.reasons[v->kind][hlo_reason_find(v->reason)]++;
        s.flops += v->flops;
        if (v->kind != HLO_VERDICT_WIDE) s.fp8_flops += v->flops;
    }
    return s;
}

static size_t fp8_count(const summary *s) {
    return s->kinds[HLO_VERDICT_FP8] + s->kinds[HLO_VERDICT_MISSED];
}

/* ---------------------------------------------------------------------------------------- text */

enum { PLACE, KIND, NAME, SHAPE, OPERANDS, OUTCOME, SOURCE, COLUMNS };
enum { CELL = 256 };
typedef char cells[COLUMNS][CELL];

static void fill_cells(const hlo_verdict *v, cells out) {
    if (v->line)
        snprintf(out[PLACE], CELL, "%s:%u:%u:", v->file, v->line, v->column);
    else
        snprintf(out[PLACE], CELL, "%s", v->file);
    snprintf(out[KIND], CELL, "%s", kind_names[v->kind]);
    snprintf(out[NAME], CELL, "%s", v->instr);
    snprintf(out[SHAPE], CELL, "%s", v->shape);
    snprintf(out[OPERANDS], CELL, "%s", v->operands);
    snprintf(out[OUTCOME], CELL, "%s%s%s%s%s", v->epilogue, *v->epilogue && v->reason ? ", " : "",
             v->reason ? v->reason : "", v->blocker ? " at " : "", v->blocker ? v->blocker : "");
    if (v->source_file)
        snprintf(out[SOURCE], CELL, "%s:%ld", v->source_file, v->source_line);
    else
        out[SOURCE][0] = '\0';
}

/* `; 6 wide: 5 not-quantised, 1 one-operand-wide`, reasons in the order of why.def. */
static void tell_kind(const telling *t, hlo_verdict_kind kind, const char *label) {
    if (!t->sum.kinds[kind]) return;
    fprintf(t->out, "; %zu %s", t->sum.kinds[kind], label);
    const char *lead = ":";
    for (int reason = 0; reason < HLO_WHY_COUNT; reason++) {
        if (!t->sum.reasons[kind][reason]) continue;
        fprintf(t->out, "%s %zu %s", lead, t->sum.reasons[kind][reason], whys[reason].name);
        lead = ",";
    }
}

static void tell_summary(const telling *t) {
    fprintf(t->out, "%zu of %zu matmuls in FP8", fp8_count(&t->sum), t->sum.total);
    if (t->sum.flops > 0)
        fprintf(t->out, " (%.0f %% of FLOPs)", 100 * t->sum.fp8_flops / t->sum.flops);
    tell_kind(t, HLO_VERDICT_MISSED, "with something missed");
    tell_kind(t, HLO_VERDICT_WIDE, "wide");
    fputc('\n', t->out);
}

static hlo_status tell_text(const telling *t) {
    int widths[COLUMNS] = {0};
    cells row;
    size_t report = 0, index = 0;
    for (const hlo_verdict *v; (v = next_verdict(t, &report, &index));) {
        fill_cells(v, row);
        for (int column = 0; column < COLUMNS; column++) {
            int width = (int)strlen(row[column]);
            if (width > widths[column]) widths[column] = width;
        }
    }
    report = index = 0;
    for (const hlo_verdict *v; (v = next_verdict(t, &report, &index));) {
        fill_cells(v, row);
        for (int column = 0; column < COLUMNS; column++) {
            if (!widths[column]) continue;
            bool coloured = t->coloured && column == KIND;
            fprintf(t->out, "%s%-*s%s  ", coloured ? kind_colours[v->kind] : "", widths[column],
                    row[column], coloured ? "\033[0m" : "");
        }
        fprintf(t->out, "%s\n", v->op_name ? v->op_name : "");
        if (v->hint)
            fprintf(t->out, "    %shint: %s%s\n", t->coloured ? "\033[36m" : "", v->hint,
                    t->coloured ? "\033[0m" : "");
    }
    tell_summary(t);
    return HLO_OK;
}

/* ------------------------------------------------------------------------------- JSON and SARIF */

/* A string that is no UTF-8 (HLO text may hold any bytes) is told byte by byte, as Latin-1. */
static json_t *text_value(const char *text) {
    if (!text) return json_null();
    json_t *value = json_string(text);
    if (value) return value;
    size_t length = strlen(text), at = 0;
    char *utf8 = malloc(2 * length + 1);
    if (!utf8) return NULL;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80) utf8[at++] = (char)(0xc0 | c >> 6);
        utf8[at++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    }
    value = json_stringn(utf8, at);
    free(utf8);
    return value;
}

static json_t *number_value(long number) {
    return number ? json_integer(number) : json_null();
}

static json_t *json_of(const hlo_verdict *v) {
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f}",
        "verdict", kind_names[v->kind], "reason", text_value(v->reason), "message",
        text_value(v->message), "hint", text_value(v->hint), "instruction", text_value(v->instr),
        "shape", text_value(v->shape), "input_shape", text_value(v->input_shape), "operands",
        text_value(v->operands), "epilogue", text_value(v->epilogue), "blocker",
        text_value(v->blocker), "op_name", text_value(v->op_name), "source_file",
        text_value(v->source_file), "source_line", number_value(v->source_line), "file",
        text_value(v->file), "line", number_value(v->line), "column", number_value(v->column),
        "flops", v->flops);
}

static hlo_status dump(json_t *document, FILE *out) {
    if (!document) return HLO_OUT_OF_MEMORY;
    int failed = json_dumpf(document, out, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    json_decref(document);
    fputc('\n', out);
    return failed ? HLO_INVALID_INPUT : HLO_OK;
}

static hlo_status tell_json(const telling *t) {
    json_t *dots = json_array(), *reasons = json_object();
    size_t report = 0, index = 0;
    for (const hlo_verdict *v; (v = next_verdict(t, &report, &index));)
        json_array_append_new(dots, json_of(v));
    for (int reason = 0; reason < HLO_WHY_COUNT; reason++) {
        size_t times = 0;
        for (int kind = 0; kind < 3; kind++) times += t->sum.reasons[kind][reason];
        if (times) json_object_set_new(reasons, whys[reason].name, json_integer((json_int_t)times));
    }
    return dump(json_pack("{s:i, s:{s:I, s:I, s:I, s:f, s:f, s:o}, s:o}", "version", 1, "summary",
                          "matmuls", (json_int_t)t->sum.total, "fp8",
                          (json_int_t)fp8_count(&t->sum), "missed",
                          (json_int_t)t->sum.kinds[HLO_VERDICT_MISSED], "flops", t->sum.flops,
                          "fp8_flops", t->sum.fp8_flops, "reasons", reasons, "dots", dots),
                t->out);
}

static json_t *sarif_place(const char *file, long line, long column) {
    json_t *region = json_object();
    if (line) json_object_set_new(region, "startLine", json_integer(line));
    if (column) json_object_set_new(region, "startColumn", json_integer(column));
    json_t *place =
        json_pack("{s:{s:{s:o}}}", "physicalLocation", "artifactLocation", "uri", text_value(file));
    if (line) json_object_set(json_object_get(place, "physicalLocation"), "region", region);
    json_decref(region);
    return place;
}

static json_t *sarif_of(const hlo_verdict *v) {
    char text[1024];
    snprintf(text, sizeof text, "%s %s (%s): %s%s%s", v->instr, v->shape,
             v->kind == HLO_VERDICT_WIDE ? "stays wide" : "is FP8, a cheaper form was missed",
             v->message, v->blocker ? ", at " : "", v->blocker ? v->blocker : "");
    json_t *result =
        json_pack("{s:s, s:s, s:{s:o}, s:[o]}", "ruleId", v->reason, "level",
                  v->kind == HLO_VERDICT_WIDE ? "warning" : "note", "message", "text",
                  text_value(text), "locations", sarif_place(v->file, v->line, v->column));
    if (v->source_file && result) {
        json_t *related = sarif_place(v->source_file, v->source_line, 0);
        json_object_set_new(
            related, "message",
            json_pack("{s:o}", "text", text_value(v->op_name ? v->op_name : "compiled from here")));
        json_object_set_new(result, "relatedLocations", json_pack("[o]", related));
    }
    return result;
}

static hlo_status tell_sarif(const telling *t) {
    json_t *rules = json_array(), *results = json_array();
    for (int reason = 0; reason < HLO_WHY_COUNT; reason++)
        json_array_append_new(rules, json_pack("{s:s, s:{s:s}, s:{s:s}}", "id", whys[reason].name,
                                               "shortDescription", "text", whys[reason].text,
                                               "help", "text", hlo_reason_page((size_t)reason)));
    size_t report = 0, index = 0;
    for (const hlo_verdict *v; (v = next_verdict(t, &report, &index));)
        if (v->reason) json_array_append_new(results, sarif_of(v));
    return dump(json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:o}}, s:s, s:o}]}", "$schema",
                          "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0",
                          "runs", "tool", "driver", "name", "hlo-fp8", "rules", rules, "columnKind",
                          "unicodeCodePoints", "results", results),
                t->out);
}

/* --------------------------------------------------------------------------------------- JUnit */

/* XML 1.0 has no place for control characters; bytes that are not ASCII are told as Latin-1. */
static void xml(FILE *out, const char *text) {
    for (; text && *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&' || c == '<' || c == '>' || c == '"' || c >= 0x7f)
            fprintf(out, "&#%d;", c);
        else
            fputc(c < 0x20 ? ' ' : c, out);
    }
}

static void tell_case(FILE *out, const hlo_verdict *v) {
    fputs("  <testcase classname=\"", out);
    xml(out, v->file);
    fputs("\" name=\"", out);
    xml(out, v->op_name ? v->op_name : v->instr);
    fprintf(out, "\" line=\"%u\"", v->line);
    if (!v->reason) {
        fputs("/>\n", out);
        return;
    }
    fputs(">\n    <failure type=\"", out);
    xml(out, v->reason);
    fputs("\" message=\"", out);
    xml(out, v->message);
    fputs("\">", out);
    xml(out, v->instr);
    fputc(' ', out);
    xml(out, v->shape);
    if (v->source_file) {
        fputs(", from ", out);
        xml(out, v->source_file);
        fprintf(out, ":%ld", v->source_line);
    }
    fputs("</failure>\n  </testcase>\n", out);
}

static hlo_status tell_junit(const telling *t) {
    size_t told = 0, failures = 0, report = 0, index = 0;
    for (const hlo_verdict *v; (v = next_verdict(t, &report, &index)); told++)
        failures += v->reason != NULL;
    fprintf(t->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n <testsuite name=\"hlo-fp8\" tests=\"%zu\" failures=\"%zu\">\n",
            told, failures);
    report = index = 0;
    for (const hlo_verdict *v; (v = next_verdict(t, &report, &index));) tell_case(t->out, v);
    fputs(" </testsuite>\n</testsuites>\n", t->out);
    return HLO_OK;
}

hlo_status hlo_reports_print(const hlo_report *const *reports, size_t count, hlo_remarks which,
                             hlo_remarks_format format, FILE *out) {
    const telling t = {.reports = reports,
                       .count = count,
                       .which = which,
                       .coloured = format == HLO_REMARKS_COLOURED,
                       .out = out,
                       .sum = summarise(reports, count)};
    static hlo_status (*const tell[])(const telling *) = {[HLO_REMARKS_TEXT] = tell_text,
                                                          [HLO_REMARKS_JSON] = tell_json,
                                                          [HLO_REMARKS_SARIF] = tell_sarif,
                                                          [HLO_REMARKS_JUNIT] = tell_junit,
                                                          [HLO_REMARKS_COLOURED] = tell_text};
    hlo_status status = tell[format](&t);
    if (status == HLO_OK && (fflush(out) != 0 || ferror(out))) status = HLO_INVALID_INPUT;
    return status;
}

/* ---------------------------------------------------------------------------------------- gate */

static hlo_status gate_count(const summary *s, const char *expect, char *why, size_t size) {
    char *end;
    size_t fp8 = fp8_count(s);
    bool all = strcmp(expect, "all") == 0;
    double number = all ? 100 : strtod(expect, &end);
    bool digits = *expect >= '0' && *expect <= '9';
    bool percent = all || (digits && strcmp(end, "%") == 0);
    if (!all && (!digits || (*end && !percent) || (percent && number > 100))) {
        snprintf(why, size, "'%s' is neither a number, a percentage nor 'all'", expect);
        return HLO_INVALID_USAGE;
    }
    double wanted = percent ? number / 100 * (double)s->total : number;
    if ((double)fp8 >= wanted) return HLO_OK;
    snprintf(why, size, "%zu of %zu matmuls are FP8, %s were expected", fp8, s->total, expect);
    return HLO_MISMATCH;
}

static hlo_status gate_reasons(const summary *s, const char *fail_on, char *why, size_t size) {
    bool watched[HLO_WHY_COUNT];
    for (int reason = 0; reason < HLO_WHY_COUNT; reason++) watched[reason] = !*fail_on;
    for (const char *at = fail_on; *at;) {
        size_t length = strcspn(at, ",");
        int reason = 0;
        while (reason < HLO_WHY_COUNT &&
               (strlen(whys[reason].name) != length || memcmp(whys[reason].name, at, length) != 0))
            reason++;
        if (reason == HLO_WHY_COUNT) {
            snprintf(why, size, "there is no reason '%.*s'", (int)length, at);
            return HLO_INVALID_USAGE;
        }
        watched[reason] = true;
        at += length + (at[length] == ',');
    }
    size_t found = 0;
    const char *first = NULL;
    for (int kind = 0; kind < 3; kind++)
        for (int reason = 0; reason < HLO_WHY_COUNT; reason++) {
            if (!watched[reason] || !s->reasons[kind][reason]) continue;
            found += s->reasons[kind][reason];
            if (!first) first = whys[reason].name;
        }
    if (!found) return HLO_OK;
    snprintf(why, size, "%zu of %zu matmuls missed FP8 or a cheaper form of it, the first by %s",
             found, s->total, first);
    return HLO_MISMATCH;
}

hlo_status hlo_reports_gate(const hlo_report *const *reports, size_t count, const char *expect,
                            const char *fail_on, char *why, size_t why_size) {
    summary s = summarise(reports, count);
    if (why_size) *why = '\0';
    hlo_status counts = expect ? gate_count(&s, expect, why, why_size) : HLO_OK;
    if (counts != HLO_OK || !fail_on) return counts;
    return gate_reasons(&s, fail_on, why, why_size);
}
