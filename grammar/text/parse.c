/* The entry: a module from a text. */
#include "grammar/text/parse.h"

#include "grammar/attr/notation.h"
#include "grammar/text/actions.h"
#include "grammar/text/foreign.h"
#include "hlo.tab.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

static void finish_module(hlo_text *text) {
    hlo_module *module = text->module;
    hlo_text_take_tables(text);
    if (!module->entry) module->entry = module->last;
    if (*module->name || !module->entry) return;
    char *name = hlo_arena_format(text->scratch, "module_%s", module->entry->name);
    module->name = hlo_intern_string(module, name);
}

/* Memory to give back however the reading ends. */
typedef struct reading {
    hlo_module *module;
    hlo_arena *scratch;
} reading;

/* Gives each stack an address while it is empty. */
static void begin_stacks(hlo_text *text) {
    hlo_stack *stacks[] = {
        &text->frames,        &text->operands,   &text->attrs,     &text->bodies,
        &text->parameters,    &text->shapes,     &text->comps,     &text->instrs,
        &text->hidden,        &text->renamed,    &text->ints,      &text->files,
        &text->literals,      &text->functions,  &text->locations, &text->stack_frames,
        &text->line.operands, &text->line.attrs, &text->starts};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        stacks[i]->items = hlo_arena_alloc(text->scratch, 0);
}

/* Bytes of text for each of its interned strings: fewer than in most modules. */
enum { BYTES_PER_STRING = 80 };

static hlo_status read_text(reading *r, hlo_content *content, const char *name, uint32_t line,
                            unsigned *errors_left, const hlo_diag_sink *sink) {
    const size_t size = content->size;
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_module *module = r->module = hlo_module_new(&recover);
    r->scratch = hlo_arena_new(&recover);
    if (!module || !r->scratch) return HLO_OUT_OF_MEMORY;
    module->read = hlo_notation_read;
    module->file = hlo_intern_string(module, name);
    module->source_line = line;
    hlo_text text = {.module = module,
                     .sink = sink,
                     .scratch = r->scratch,
                     .parse_module = hlo_module_parse,
                     .size = size,
                     .closed = UINT32_MAX,
                     .errors_left = errors_left};
    if (size > HLO_LARGEST_SOURCE) {
        hlo_text_error(&text, (hlo_span){0, 0}, "the text has %zu bytes, at most %d are read", size,
                       HLO_LARGEST_SOURCE);
        return HLO_INVALID_INPUT;
    }
    const char *foreign = hlo_foreign_hint(content->bytes, size);
    if (foreign) {
        --*errors_left;
        return hlo_diag_refuse(sink, name, (int)line, 1, "%s", foreign);
    }
    begin_stacks(&text);
    text.known = hlo_attr_cache_new(text.scratch);
    module->source = text.source = hlo_content_take(content, module->arena);
    module->source_size = size;
    hlo_strings_reserve(module, size / BYTES_PER_STRING);
    hlo_text_scan_begin(&text);
    int failed = hlo_yyparse(&text);
    if (failed || text.errors) return HLO_INVALID_INPUT;
    finish_module(&text);
    hlo_arena_set_recover(module->arena, NULL);
    return HLO_OK;
}

hlo_status hlo_text_parse(hlo_content *content, const char *name, uint32_t line,
                          unsigned *errors_left, const hlo_diag_sink *sink,
                          hlo_module **out_module) {
    reading r = {.module = NULL};
    hlo_status status = read_text(&r, content, name, line, errors_left, sink);
    hlo_arena_free(r.scratch);
    if (status != HLO_OK) {
        hlo_module_free(r.module);
        r.module = NULL;
    }
    *out_module = r.module;
    return status;
}

hlo_status hlo_module_parse(const char *text, size_t size, const char *name,
                            const hlo_diag_sink *sink, hlo_module **out_module) {
    unsigned errors_left = HLO_MOST_ERRORS;
    hlo_content content = {.bytes = (char *)text, .size = size};
    return hlo_text_parse(&content, name, 1, &errors_left, sink, out_module);
}
