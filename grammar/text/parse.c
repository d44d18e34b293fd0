/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point: parses a text to a module. */
#include "grammar/text/parse.h"

#include <string.h>

#include "grammar/attr/notation.h"
#include "grammar/text/actions.h"
#include "hlo.tab.h"
#include "ir/float/c_locale.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

/* ------------------------------------------------------------------------- files of other tools */

/* Kinds of files that are easily confused with HLO text. They are recognized by their first bytes.
 */
#define PRINTED                                                                                    \
    "print HLO: in JAX with lowered.as_text(dialect=\"hlo\"), in TensorFlow with "                 \
    "f.experimental_get_compiler_ir(...)(stage=\"hlo\"), in PyTorch/XLA with "                     \
    "torch_xla._XLAC._get_xla_tensors_hlo([...])"
#define FROM_XLA "; set XLA_FLAGS=--xla_dump_to=DIR for HLO text, or " PRINTED
#define FROM_MLIR "; convert it with: python -m hlofp8 to-hlo FILE -o out.hlo; or " PRINTED
#define FROM_MODEL "; load the model, and " PRINTED

enum { LOOKED_AT = 4096 };

typedef struct kind {
    const char *start; /* first bytes of the file */
    size_t size;
    const char *later; /* must follow in the first LOOKED_AT bytes; may be empty */
    const char *hint;
} kind;

#define START(bytes) (bytes), sizeof(bytes) - 1

static const kind kinds[] = {
    {START("ML\xefR"), "", "this is MLIR bytecode, not HLO" FROM_MLIR},
    {START("module @"), "", "this is MLIR text, not HLO" FROM_MLIR},
    {START("module attributes"), "", "this is MLIR text, not HLO" FROM_MLIR},
    {START("module {"), "func.func", "this is MLIR text, not HLO" FROM_MLIR},
    {START("builtin.module"), "", "this is MLIR text, not HLO" FROM_MLIR},
    {START("\"builtin.module\""), "", "this is MLIR text, not HLO" FROM_MLIR},
    {START("func.func"), "", "this is MLIR text, not HLO" FROM_MLIR},
    {START("#loc"), "", "this is MLIR text, not HLO" FROM_MLIR},
    {START("["), "TensorsGraphInfo:",
     "this file of PyTorch/XLA's XLA_SAVE_TENSORS_FILE has no HLO; run the program again with "
     "XLA_SAVE_TENSORS_FMT=hlo"},
    {START("hlo {"), "hlo_module {", "this is protobuf text, not HLO" FROM_XLA},
    {START("hlo_module {"), "", "this is protobuf text, not HLO" FROM_XLA},
    {START("\x08\x01\x12"), "", "this is a SavedModel of TensorFlow, not HLO" FROM_MODEL},
    {START("PK\x03\x04"), "",
     "this is a zip archive, such as a model of Keras or PyTorch, not HLO" FROM_MODEL},
    {START("\x28\xb5\x2f\xfd"), "", "this is a zstd file; unpack it first (only gzip is read)"},
    {START("\xfd"
           "7zXZ"),
     "", "this is an xz file; unpack it first (only gzip is read)"},
    {START("BZh"), "1AY&SY", "this is a bzip2 file; unpack it first (only gzip is read)"},
    {START("\x93NUMPY"), "", "this is a NumPy array, not HLO" FROM_XLA},
};

/* Returns a hint if the bytes are of such a kind, or NULL. */
static const char *hint_about(const char *bytes, size_t size) {
    static const char bytecode[] = "ML\xefR", zeros[3];
    for (const kind *k = kinds; k < kinds + sizeof kinds / sizeof *kinds; k++) {
        if (size < k->size || memcmp(bytes, k->start, k->size) != 0) continue;
        const size_t rest = (size < LOOKED_AT ? size : LOOKED_AT) - k->size;
        if (memmem(bytes + k->size, rest, k->later, strlen(k->later))) return k->hint;
    }
    /* The bytes of an `Exported` are a FlatBuffer, which starts with an offset of 4 bytes. */
    if (size > sizeof zeros && memcmp(bytes + 1, zeros, sizeof zeros) == 0 &&
        memmem(bytes, size, bytecode, sizeof bytecode - 1))
        return "this is a serialized jax.export.Exported, not HLO" FROM_MLIR;
    return NULL;
}

static void *take_rows(hlo_text *text, const hlo_stack *stack, size_t size, uint32_t *out_count) {
    *out_count = (uint32_t)(stack->used / size);
    return hlo_arena_copy(text->module->arena, stack->items, stack->used);
}

/* The memory that is freed after parsing, including after an error. */
typedef struct reading {
    hlo_module *module;
    hlo_arena *scratch;
} reading;

/* Estimated number of bytes of text per interned string. Most modules have more bytes. */
enum { BYTES_PER_STRING = 80 };

static hlo_status read_text(reading *r, hlo_content *content, const char *name, uint32_t line,
                            unsigned *errors_left, const hlo_diag_sink *sink) {
    const size_t size = content->size;
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_module *module = r->module = hlo_module_make(&recover);
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
        hlo_text_error(&text, (hlo_span){0, 0}, "the text has %zu bytes, the limit is %d", size,
                       HLO_LARGEST_SOURCE);
        return HLO_INVALID_INPUT;
    }
    const char *start = content->bytes;
    size_t left = size;
    while (left && memchr(" \t\r\n", *start, 4)) start++, left--;
    const char *hint = hint_about(start, left);
    if (hint) {
        --*errors_left;
        return hlo_diag_refuse(sink, HLO_DIAG_SYNTAX, name, (int)line, 1, "%s", hint);
    }
    /* Empty stacks need an address, too. */
    hlo_stack *stacks[] = {&text.frames,     &text.operands,  &text.attrs,     &text.bodies,
                           &text.parameters, &text.shapes,    &text.comps,     &text.instrs,
                           &text.hidden,     &text.renamed,   &text.ints,      &text.files,
                           &text.literals,   &text.functions, &text.locations, &text.stack_frames,
                           &text.starts};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        stacks[i]->items = hlo_arena_alloc(text.scratch, 0);
    text.known_attrs = hlo_arena_zero(text.scratch, HLO_REMEMBERED * sizeof *text.known_attrs);
    text.known_shapes = hlo_arena_zero(text.scratch, HLO_REMEMBERED * sizeof *text.known_shapes);
    module->source = text.source = hlo_content_take(content, module->arena);
    module->source_size = size;
    hlo_strings_reserve(module, size / BYTES_PER_STRING);
    hlo_text_scan_begin(&text);
    int failed = hlo_yyparse(&text);
    if (failed || text.errors) return HLO_INVALID_INPUT;
    hlo_tables *tables = &text.module->tables;
    tables->files = take_rows(&text, &text.files, sizeof *tables->files, &tables->file_count);
    tables->functions =
        take_rows(&text, &text.functions, sizeof *tables->functions, &tables->function_count);
    tables->locations =
        take_rows(&text, &text.locations, sizeof *tables->locations, &tables->location_count);
    tables->frames =
        take_rows(&text, &text.stack_frames, sizeof *tables->frames, &tables->frame_count);
    if (!module->entry) module->entry = module->last;
    if (!*module->name && module->entry)
        module->name = hlo_intern_string(
            module, hlo_arena_format(text.scratch, "module_%s", module->entry->name));
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
    HLO_IN_C_LOCALE;
    unsigned errors_left = HLO_MAX_ERRORS;
    hlo_content content = {.bytes = (char *)text, .size = size};
    return hlo_text_parse(&content, name, 1, &errors_left, sink, out_module);
}
