/* SPDX-License-Identifier: Apache-2.0 */
/* The output buffer of text, and the printers of values and attributes. */
#ifndef HLO_IR_TEXT_PRINTER_H
#define HLO_IR_TEXT_PRINTER_H

#include <string.h>

#include "hlo/text.h"
#include "ir/intern.h"
#include "ir/ir.h"

/* The text of a shape, cached because modules print each shape many times. */
typedef struct hlo_shape_text {
    const hlo_shape *shape; /* NULL: the slot is empty */
    bool layout;
    uint8_t length;
    char text[54];
} hlo_shape_text;

enum { HLO_SHAPE_TEXTS = 512 };

/* The behavior of a printer whose buffer is full. */
typedef enum hlo_overflow { HLO_OVERFLOW_FLUSH, HLO_OVERFLOW_GROW, HLO_OVERFLOW_DROP } hlo_overflow;

typedef struct hlo_printer hlo_printer;
struct hlo_printer {
    char *buffer, *at, *end;
    hlo_overflow overflow;
    hlo_writer out; /* receives the text, for HLO_OVERFLOW_FLUSH */
    size_t dropped; /* number of bytes that did not fit, for HLO_OVERFLOW_DROP */
    bool failed;
    hlo_shape_text *shapes; /* HLO_SHAPE_TEXTS slots; NULL: texts are not cached */
    const hlo_print_options *options;
    uint32_t *numbers; /* in a canonical print: the N of tmp_N, by instruction id */
    uint32_t depth;    /* number of enclosing computations printed instead of their names */
    hlo_op op;         /* opcode whose attributes are being printed */
    /* By the id of an async-start, -update or -done: the instruction whose asynchronous form is
     * printed in its place, or NULL. The array may be NULL. */
    const hlo_instruction **wrapped;
    /* Prints a computation that an attribute names: its name or its body. NULL: its name. */
    void (*put_called)(hlo_printer *o, const hlo_computation *comp);
};

extern const hlo_print_options hlo_print_long_form;

/* Makes room in the buffer for `size` more bytes. Returns false if memory runs out. */
bool hlo_printer_grow(hlo_printer *o, size_t size);
/* Writes the buffer to the writer and empties it. */
void hlo_printer_flush(hlo_printer *o);
/* Appends bytes that do not fit in the buffer, according to the printer's overflow mode. */
void hlo_put_large(hlo_printer *o, const char *bytes, size_t size);

static inline void hlo_put(hlo_printer *o, const char *bytes, size_t size) {
    if ((size_t)(o->end - o->at) < size) {
        hlo_put_large(o, bytes, size);
        return;
    }
    memcpy(o->at, bytes, size);
    o->at += size;
}

#define HLO_PUT(o, literal) hlo_put(o, literal, sizeof(literal) - 1)

static inline void hlo_put_string(hlo_printer *o, const char *text) {
    hlo_put(o, text, strlen(text));
}

static inline void hlo_put_interned(hlo_printer *o, const char *text) {
    hlo_put(o, text, hlo_intern_length(text));
}

static inline void hlo_put_char(hlo_printer *o, char c) {
    hlo_put(o, &c, 1);
}

/* Returns the text that `put` writes for a value, as an interned string. */
const char *hlo_print_interned(hlo_module *module, void (*put)(hlo_printer *o, const void *value),
                               const void *value);

void hlo_put_uint(hlo_printer *o, uint64_t value);
void hlo_put_int(hlo_printer *o, int64_t value);
/* Separates item `index` of a list from the previous one; every fifth item is preceded by its
 * number. */
void hlo_put_comma(hlo_printer *o, uint32_t index);
/* Writes an interned string in quotes, with the escapes of C. */
void hlo_put_quoted(hlo_printer *o, const char *interned);
/* Starts a line, indented by `depth` steps. */
void hlo_put_line(hlo_printer *o, uint32_t depth);
/* Writes the name of an instruction: tmp_N in a canonical print. */
void hlo_put_instr_name(hlo_printer *o, const hlo_instruction *instr);
void hlo_put_name(hlo_printer *o, const char *interned);

void hlo_put_shape(hlo_printer *o, const hlo_shape *shape, bool layout);
/* Writes a float of that type with the digits that XLA prints. */
void hlo_put_float(hlo_printer *o, hlo_type type, uint64_t bits);
void hlo_put_literal(hlo_printer *o, const hlo_literal *literal);
/* Writes a literal without its shape, `{1, 2}`, to `out`, truncated at `size` bytes. `out` is
 * always NUL-terminated. Returns true if the text was not truncated. */
bool hlo_literal_format(const hlo_literal *literal, char *out, size_t size);

/* Returns the text of a shape in the arena, as hlo_shape_format() writes it. */
const char *hlo_shape_copy_text(hlo_arena *arena, const hlo_shape *shape, bool layout);

/* Write an hlo_groups, an hlo_sharding, an hlo_alias or an hlo_aliases. The printer's options
 * select whether a sharding has its metadata. */
void hlo_put_groups(hlo_printer *o, const void *groups);
void hlo_put_sharding(hlo_printer *o, const void *sharding);
void hlo_put_alias(hlo_printer *o, const void *alias);
void hlo_put_aliases(hlo_printer *o, const void *aliases);

void hlo_put_attr(hlo_printer *o, const void *attr);
/* Writes the attributes whose ids are in (after, before), in the order of attr.def. Writes `first`
 * before the first attribute, and `others` before each of the others. */
void hlo_put_attrs_between(hlo_printer *o, const hlo_attr *attrs, uint32_t count, int after,
                           int before, const char *first, const char *others);
/* Writes all attributes, in the order of attr.def. */
void hlo_put_attrs(hlo_printer *o, const hlo_attr *attrs, uint32_t count, const char *first,
                   const char *others);

#endif
