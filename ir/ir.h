/* The intermediate representation: types, shapes, literals, attributes, instructions, computations,
 * modules. This header is the inside of the library; programs use include/hlo/.
 *
 * Ownership: everything below lives in the arena of its module and dies with it; there are no
 * reference counts. Strings and shapes are interned: equal ones of one module are the same pointer.
 *
 * Order: the instructions of a computation form a list in which every operand stands before its
 * users. It is also the schedule of a scheduled module, so passes insert beside what they replace.
 */
#ifndef HLO_IR_IR_H
#define HLO_IR_IR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hlo/diag.h"
#include "hlo/module.h"
#include "hlo/status.h"
#include "ir/arena.h"

/* ----------------------------------------------------------------------------------- the tables */

typedef enum hlo_type {
#define HLO_TYPE(id, name, bits, class) HLO_TYPE_##id,
#include "ir/table/type.def"
#undef HLO_TYPE
    HLO_TYPE_COUNT,
    HLO_TYPE_INVALID = HLO_TYPE_COUNT
} hlo_type;

typedef enum hlo_type_class {
    HLO_CLASS_NONE,
    HLO_CLASS_PRED,
    HLO_CLASS_SIGNED,
    HLO_CLASS_UNSIGNED,
    HLO_CLASS_FLOAT,
    HLO_CLASS_COMPLEX
} hlo_type_class;

typedef struct hlo_type_info {
    const char *name;
    uint8_t bits;  /* of one element */
    uint8_t bytes; /* of one element in memory; 0 for types without elements */
    uint8_t class; /* hlo_type_class */
} hlo_type_info;

extern const hlo_type_info hlo_types[HLO_TYPE_COUNT];

/* HLO_TYPE_INVALID when no type is called so. */
hlo_type hlo_type_find(const char *name, size_t length);
bool hlo_type_is_float(hlo_type type);
bool hlo_type_is_integer(hlo_type type); /* signed or unsigned */
bool hlo_type_is_fp8(hlo_type type);     /* any float of 8 bits */

typedef enum hlo_op {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) HLO_OP_##id,
#include "ir/table/op.def"
#undef HLO_OP
    HLO_OP_COUNT,
    HLO_OP_INVALID = HLO_OP_COUNT
} hlo_op;

enum {
    HLO_COMMUTES = 1,
    HLO_ELEMENTWISE = 2,
    HLO_MOVEMENT = 4,
    HLO_SIDE_EFFECT = 8,
    HLO_COLLECTIVE = 16,
    HLO_NONDET = 32,
    HLO_TRANSCENDENTAL = 64
};

typedef enum hlo_attr_id {
#define HLO_ATTR(id, name, kind) HLO_ATTR_##id,
#include "ir/table/attr.def"
#undef HLO_ATTR
    HLO_ATTR_COUNT,
    HLO_ATTR_INVALID = HLO_ATTR_COUNT
} hlo_attr_id;

typedef enum hlo_attr_kind {
    HLO_KIND_INT,
    HLO_KIND_BOOL,
    HLO_KIND_FLOAT,
    HLO_KIND_WORD,
    HLO_KIND_STRING,
    HLO_KIND_FORM,
    HLO_KIND_RAW,
    HLO_KIND_INTS,
    HLO_KIND_SLICES,
    HLO_KIND_PADDING,
    HLO_KIND_COMPUTATION,
    HLO_KIND_COMPUTATIONS,
    HLO_KIND_INSTRS,
    HLO_KIND_SHAPES,
    HLO_KIND_SHAPE,
    HLO_KIND_LITERAL,
    HLO_KIND_LAYOUT,
    HLO_KIND_ATTRS,
    HLO_KIND_BYTES
} hlo_attr_kind;

typedef struct hlo_attr_info {
    const char *name;
    hlo_attr_kind kind;
} hlo_attr_info;

extern const hlo_attr_info hlo_attrs_info[HLO_ATTR_COUNT];

/* HLO_ATTR_INVALID when no attribute is called so. */
hlo_attr_id hlo_attr_find(const char *name, size_t length);

typedef struct hlo_op_info {
    const char *name;
    uint8_t min_operands;
    uint8_t max_operands; /* HLO_ANY: no upper bound */
    uint8_t flags;
    const uint8_t *required, *allowed; /* hlo_attr_id, ended by HLO_ATTR_COUNT */
} hlo_op_info;

enum { HLO_ANY = 255 };

extern const hlo_op_info hlo_ops[HLO_OP_COUNT];

/* HLO_OP_INVALID when no opcode is called so. */
hlo_op hlo_op_find(const char *name, size_t length);
/* What every instruction may carry; ended by HLO_ATTR_COUNT. */
extern const uint8_t hlo_common_attrs[];
/* Whether `attr` is one of the opcode's own, required or allowed. */
bool hlo_op_has(hlo_op op, hlo_attr_id attr);
/* Whether an instruction `op` may carry `attr` (required, allowed, or common to all). */
bool hlo_op_allows(hlo_op op, hlo_attr_id attr);
/* The words that the attribute may be, or be a list of, on that opcode (word.def), each with a
 * space before it; NULL when HLO does not fix them. */
const char *hlo_attr_values(hlo_op op, hlo_attr_id attr);
bool hlo_word_in(const char *words, const char *word, size_t length);
/* Whether `next` may end, or hand on, what `start` starts (ir/table/async_pair.def). HLO_OP_INVALID
 * stands for any: hlo_op_chains(op, HLO_OP_INVALID) is whether `op` starts anything. */
bool hlo_op_chains(hlo_op start, hlo_op next);

/* --------------------------------------------------------------------------------------- shapes */

/* The physical order of an array. Interned with its shape. */
typedef struct hlo_layout {
    const int64_t *minor_to_major; /* rank entries */
    int64_t element_bits;          /* E(n); 0: the type's own */
    int64_t memory_space;          /* S(n); 0: the default */
    const char *rest;              /* tiles and whatever else stood behind the `:`, up to E and S,
                                      verbatim; NULL when nothing */
} hlo_layout;

/* Readers refuse arrays of more dimensions. */
enum { HLO_LARGEST_RANK = 64 };

/* An array, a tuple, a token or an opaque. Immutable and interned: within a module, two shapes are
 * the same (layouts included) exactly when their pointers are. */
typedef struct hlo_shape hlo_shape;
struct hlo_shape {
    hlo_type type;              /* HLO_TYPE_TUPLE for tuples */
    bool buffer;                /* b(...): a buffer of that array */
    uint32_t rank;              /* dimensions of an array, elements of a tuple */
    const int64_t *dims;        /* of an array; -1: unbounded `?` */
    const bool *dynamic;        /* of an array: `<=n`; NULL when no dimension is dynamic */
    const hlo_layout *layout;   /* of an array; NULL: none given */
    const hlo_shape **elements; /* of a tuple */
    uint64_t hash;
};

/* Elements of an array shape (1 for a scalar), or -1 when that overflows int64 or a dimension is
 * unbounded. */
int64_t hlo_shape_count(const hlo_shape *shape);
/* Bytes of the elements in memory, tuples summed over their leaves; -1 on overflow. */
int64_t hlo_shape_bytes(const hlo_shape *shape);
bool hlo_shape_is_scalar(const hlo_shape *shape);
bool hlo_shape_is_array(const hlo_shape *shape);
/* Same type and dimensions (through tuples), layouts not looked at. */
bool hlo_shape_compatible(const hlo_shape *a, const hlo_shape *b);
/* Same dimensions of two arrays, types and layouts not looked at. */
bool hlo_shape_same_dims(const hlo_shape *a, const hlo_shape *b);
/* Whether the layout is the default one, {rank-1,...,1,0}, or none is given. */
bool hlo_shape_is_row_major(const hlo_shape *shape);
/* Whether the layout, if there is one, names each dimension once: not so in some modules that were
 * not verified. */
bool hlo_shape_is_ordered(const hlo_shape *shape);
/* Stride of each dimension, in elements, by the layout (the default one when none is given, or one
 * that is no order). */
void hlo_shape_strides(const hlo_shape *shape, int64_t *out_strides);
/* Writes `f32[2,3]{1,0}` (layout: with the layout) to `out`, always NUL-terminated; returns the
 * length that the whole text has, as snprintf does. */
size_t hlo_shape_format(const hlo_shape *shape, bool layout, char *out, size_t size);

/* Interned shapes of `module`. The arrays are copied. */
const hlo_shape *hlo_shape_intern(hlo_module *module, const hlo_shape *shape);
/* An array with the default layout. */
const hlo_shape *hlo_shape_array(hlo_module *module, hlo_type type, uint32_t rank,
                                 const int64_t *dims);
/* An array with that physical order; `minor_to_major` NULL gives the default. */
const hlo_shape *hlo_shape_with_layout(hlo_module *module, hlo_type type, uint32_t rank,
                                       const int64_t *dims, const int64_t *minor_to_major);
const hlo_shape *hlo_shape_tuple(hlo_module *module, uint32_t count,
                                 const hlo_shape *const *elements);
/* The same array (dims, layout) of another element type. E(n) of the layout goes with the type: a
 * type of another width has its own. */
const hlo_shape *hlo_shape_retype(hlo_module *module, const hlo_shape *shape, hlo_type type);

/* ------------------------------------------------------------------------------------- literals */

/* A constant value. Elements are dense, row-major in *logical* order whatever the layout says, each
 * hlo_types[type].bytes wide, little-endian; pred and sub-byte integers one byte each (sign
 * extended), f4 in the low bits. */
typedef struct hlo_literal hlo_literal;
struct hlo_literal {
    const hlo_shape *shape;
    bool elided;                  /* `{...}`: the text did not tell the values; data is NULL */
    void *data;                   /* of an array */
    const hlo_literal **elements; /* of a tuple */
};

/* Uninitialised elements for an array of that shape. */
hlo_literal *hlo_literal_new(hlo_module *module, const hlo_shape *shape);
/* Writes `{1, 2}`, as far as it goes, to `out`, always NUL-terminated; whether that is all of it.
 */
bool hlo_literal_format(const hlo_literal *literal, char *out, size_t size);
/* Whether all elements have the same value; false for tuples, elided and empty ones. */
bool hlo_literal_is_splat(const hlo_literal *literal);
/* Element `index` of a real or integer array as a double. What a value of a module is known to be
 * is asked of hlo_known_element() and hlo_known_number(). */
double hlo_literal_number(const hlo_literal *literal, int64_t index);
/* Sets it, rounded to the type (ir/float.h). */
void hlo_literal_set_number(hlo_literal *literal, int64_t index, double value);

/* ----------------------------------------------------------------------------------- attributes */

typedef struct hlo_instr hlo_instr;
typedef struct hlo_computation hlo_computation;
typedef struct hlo_attrs hlo_attrs;

typedef struct hlo_ints {
    uint32_t count;
    int64_t v[];
} hlo_ints;

typedef struct hlo_comps {
    uint32_t count;
    hlo_computation *v[];
} hlo_comps;

typedef struct hlo_instrs {
    uint32_t count;
    hlo_instr *v[];
} hlo_instrs;

typedef struct hlo_shapes {
    uint32_t count;
    const hlo_shape *v[];
} hlo_shapes;

/* One attribute; `id` tells the kind (attr.def), the kind tells the member. */
typedef struct hlo_attr {
    hlo_attr_id id;
    union {
        int64_t i;
        double f;
        const char *str; /* interned */
        const hlo_ints *ints;
        hlo_computation *comp;
        const hlo_comps *comps;
        const hlo_instrs *instrs;
        const hlo_shapes *shapes;
        const hlo_shape *shape;
        const hlo_literal *literal;
        const hlo_attrs *attrs;
    } u;
} hlo_attr;

struct hlo_attrs {
    uint32_t count;
    hlo_attr v[];
};

/* Whether the attribute says no more than its absence would (ir/table/attr_default.def), on an `op`
 * whose first operand is `operand`; NULL: not known. */
bool hlo_attr_is_default(const hlo_attr *attr, hlo_op op, const hlo_shape *operand);
/* The `type` that a comparison of such an operand has when it does not say. */
const char *hlo_compare_default_type(const hlo_shape *operand);

/* ------------------------------------------------------------------- instructions, computations */

/* One operand slot, and at the same time one link in the use list of what it names. */
typedef struct hlo_use hlo_use;
struct hlo_use {
    hlo_instr *def;       /* the operand */
    hlo_instr *user;      /* whose operand it is */
    hlo_use *next, *prev; /* in def's use list */
};

/* What holds an instruction in its place: passes/analysis/pin.h. */
typedef enum hlo_pin {
    HLO_PIN_NONE,
    HLO_PIN_EFFECT,  /* it does more than compute its result */
    HLO_PIN_SPACE,   /* it reads or writes another memory space than the default one */
    HLO_PIN_CONTROL, /* it is an end of a control dependency */
    HLO_PIN_THREAD   /* the host runs it, or another thread than the module's own */
} hlo_pin;

/* There are many, and every pass walks over all of them: they lie together in memory, in the order
 * in which they were made. What a walk asks of every one comes first, what is asked of few last. */
struct hlo_instr {
    hlo_op op : 8;
    uint32_t attr_count : 20;
    bool queued : 1; /* in the worklist of the pass that runs; false between passes */
    hlo_pin pin : 3; /* set when a run of passes begins */
    uint32_t id;     /* unique in the module, below hlo_module.next_id: an index for side tables */
    hlo_instr *next, *prev;
    uint32_t operand_count, use_count;
    uint32_t attr_bits; /* see hlo_attr_bit(): which attributes there may be */
    uint32_t offset;    /* where the instruction stands in the module's source; made by a pass:
                           that of the instruction it was made for */
    const hlo_shape *shape;
    union {
        hlo_use *operands; /* operand_count of them; the others below have none */
        union {
            const hlo_literal *literal; /* HLO_OP_CONSTANT */
            int64_t parameter;          /* HLO_OP_PARAMETER: its number */
        } u;
    };
    hlo_use *uses;         /* newest first */
    const hlo_attr *attrs; /* attr_count of them, in the order in which they were set: see
                              hlo_instr_take_attrs() */
    hlo_computation *parent;
    const char *name; /* without `%`; unique in the module */
};

/* The neighbour in the computation, NULL at its end. These are for whoever walks over all of it: as
 * most instructions lie one behind the other, one farther on is asked of the memory meanwhile. */
enum { HLO_INSTRS_AHEAD = 24 };
static inline hlo_instr *hlo_instr_next(const hlo_instr *instr) {
    __builtin_prefetch(instr + HLO_INSTRS_AHEAD);
    return instr->next;
}
static inline hlo_instr *hlo_instr_prev(const hlo_instr *instr) {
    __builtin_prefetch(instr - HLO_INSTRS_AHEAD);
    return instr->prev;
}

struct hlo_computation {
    uint32_t id; /* unique in the module, below hlo_module.next_computation_id */
    const char *name;
    hlo_module *module;
    hlo_computation *next, *prev;
    hlo_instr *first, *last;
    hlo_instr *root;
    uint32_t instr_count;
    uint32_t parameter_count;
    uint32_t parameter_capacity; /* places in `parameters` that hlo_instr_set_parameter() may fill
                                without making more; 0 when it did not make them */
    hlo_instr **parameters;      /* by number; may grow while the computation is built */
    const hlo_attr *attrs;       /* execution_thread */
    uint32_t attr_count;
    uint32_t offset;
};

/* A row of one of the four header tables; numbered from 1 by position. */
typedef struct hlo_file_location {
    int64_t file_name, function_name, line, end_line, column, end_column;
} hlo_file_location;
typedef struct hlo_stack_frame {
    int64_t file_location; /* 0: none */
    int64_t parent; /* as in the text, `parent_frame_id`: the parent's number plus one; 1: none */
} hlo_stack_frame;

typedef struct hlo_tables {
    uint32_t file_count, function_count, location_count, frame_count;
    const char **files, **functions;
    hlo_file_location *locations;
    hlo_stack_frame *frames;
} hlo_tables;

/* What HLO's reader takes and HLO forbids: no error when the text is read, one when the module is
 * verified. */
typedef struct hlo_deferred_error hlo_deferred_error;
struct hlo_deferred_error {
    hlo_deferred_error *next;
    uint32_t offset, length; /* bytes of the source */
    const char *message;
};

struct hlo_module {
    hlo_arena *arena;
    const char *name;
    hlo_computation *first, *last; /* callees before callers */
    hlo_computation *entry;
    const hlo_attr *attrs; /* of the header */
    uint32_t attr_count;
    hlo_tables tables;
    uint32_t next_id; /* above every instruction's id */
    uint32_t next_computation_id;
    const char *file;   /* name and text that the module was read from; "" when it was not */
    const char *source; /* NULL when it was read from bytes that are no text */
    size_t source_size;
    uint32_t source_line;         /* of the file, at which `source` begins */
    hlo_deferred_error *deferred; /* the last one first */
    bool verified;                /* it was, and only passes have changed it since */
    struct hlo_lines *lines;      /* see hlo_diag_emit() */
    hlo_pool instrs;
    uint32_t relocated;               /* instructions when hlo_module_compact() was last called */
    uint32_t relocated_ids;           /* next_id then */
    uint32_t instr_count;             /* in all its computations */
    uint32_t op_counts[HLO_OP_COUNT]; /* instructions of each opcode, in its computations */
    bool attrs_seen[HLO_ATTR_COUNT];  /* whether any instruction has or has had the attribute */
    bool spaces_seen;                 /* whether any shape has a memory space of its own */
    struct hlo_journal *journal; /* what is made is noted there; NULL: see hlo_journal_open() */
    struct hlo_strings *strings; /* interned */
    struct hlo_shapeset *shapes; /* interned */
};

/* An empty module; NULL when memory runs out. `recover` as for hlo_arena_new(). */
hlo_module *hlo_module_new(jmp_buf *recover);

/* The interned copy of `length` bytes, NUL-terminated (they may hold NUL bytes themselves: compare
 * pointers). hlo_intern_length() gives the length back. */
const char *hlo_intern(hlo_module *module, const char *bytes, size_t length);
const char *hlo_intern_string(hlo_module *module, const char *text);
/* The same in two steps: between them memory has time to bring what the second asks for, which in a
 * large module takes as long as everything else that is done to read an instruction. */
uint32_t hlo_intern_begin(const hlo_module *module, const char *bytes, size_t length);
const char *hlo_intern_end(hlo_module *module, const char *bytes, size_t length, uint32_t begun);
size_t hlo_intern_length(const char *interned);
/* The instruction that a string is the name of, for a reader of text, and in which computation: its
 * id plus one; 0: in none. The verifier, which runs after it, marks names by it. */
typedef struct hlo_symbol_binding {
    hlo_instr *instr;
    uint32_t scope;
} hlo_symbol_binding;
hlo_symbol_binding hlo_intern_binding(const char *interned);
void hlo_intern_bind(const char *interned, hlo_symbol_binding meaning);
/* What else is remembered about an interned string; all zero at first. */
typedef struct hlo_string_cache {
    hlo_computation *comp;  /* called so in the text */
    const hlo_shape *shape; /* written so */
    const void *config;     /* what it says as a backend_config, once matmul/ has read it */
    const char *formed;     /* what it is as the value of the attribute `formed_as` */
    uint32_t suffix;        /* the last N tried for `name.N` */
    uint8_t op, attr;       /* called so, plus one; 0: not yet looked up */
    uint8_t formed_as;      /* hlo_attr_id */
} hlo_string_cache;
/* Made when it is first asked for; valid until the module is freed. */
hlo_string_cache *hlo_intern_cache(hlo_module *module, const char *interned);

/* Instructions have unique names, and so have computations; one of each may share a name. */
typedef enum hlo_namespace { HLO_NAME_INSTR, HLO_NAME_COMPUTATION } hlo_namespace;
/* A name that nothing of that kind has yet in the module, and is now taken: `name` itself, which is
 * interned, or with its `.N` ending replaced by the next free one. O(1). */
const char *hlo_unique_name(hlo_module *module, hlo_namespace space, const char *interned);

/* Gives back a name that was made of `interned`; of several the last one first. */
void hlo_name_release(hlo_module *module, hlo_namespace space, const char *name,
                      const char *interned);

/* A new computation, last in the module. The name is made unique with `.N`; NULL: there is none
 * yet. */
hlo_computation *hlo_computation_new(hlo_module *module, const char *name);
/* Takes it out of the module; nothing may call it. */
void hlo_computation_remove(hlo_computation *comp);
/* Moves it to the end of the module. */
void hlo_computation_move_last(hlo_computation *comp);
void hlo_computation_set_root(hlo_computation *comp, hlo_instr *root);

/* A new instruction before `before`, or last when that is NULL. Its name is `name`, made unique
 * with
 * `.N`, the opcode's name when NULL. A parameter is entered in comp->parameters by
 * hlo_instr_set_parameter(), not by this. */
hlo_instr *hlo_instr_new(hlo_computation *comp, hlo_instr *before, hlo_op op,
                         const hlo_shape *shape, uint32_t operand_count, hlo_instr *const *operands,
                         const char *name);
/* The same with a name that is still to be set; it is unique in the end. */
hlo_instr *hlo_instr_new_unnamed(hlo_computation *comp, hlo_instr *before, hlo_op op,
                                 const hlo_shape *shape, uint32_t operand_count,
                                 hlo_instr *const *operands);
/* The same with a name that is interned. */
hlo_instr *hlo_instr_new_interned(hlo_computation *comp, hlo_instr *before, hlo_op op,
                                  const hlo_shape *shape, uint32_t operand_count,
                                  hlo_instr *const *operands, const char *interned);
void hlo_instr_set_parameter(hlo_instr *instr, int64_t number);
/* Takes it out of its computation and its operands' use lists. It must have no uses and not be the
 * root. The memory stays until the module is freed, with parent NULL. */
void hlo_instr_remove(hlo_instr *instr);
/* Moves it within its computation to stand before `before`. */
void hlo_instr_move(hlo_instr *instr, hlo_instr *before);

/* Whether so much has been removed and made that a walk goes back and forth over memory of which
 * most is of no use any more: then, the time for hlo_module_compact(). */
bool hlo_module_is_fragmented(const hlo_module *module);
/* Lays all instructions and their operands anew: side by side, in their order, as in a module that
 * was just read. Nothing else changes, ids and the order of use lists included. Returns in `arena`,
 * by id, where each is now; NULL: in no computation. A pointer to one from elsewhere than the
 * module is of no use afterwards, but for a snapshot's. */
hlo_instr **hlo_module_compact(hlo_module *module, hlo_arena *arena);

/* What is made, so that it can be unmade. In `arena`. */
typedef struct hlo_journal hlo_journal;
hlo_journal *hlo_journal_new(hlo_arena *arena);
/* Notes there, from nothing on, every instruction and computation that is made until
 * hlo_journal_close(). */
void hlo_journal_open(hlo_journal *journal, hlo_module *module);
void hlo_journal_close(hlo_module *module);
/* How many module->journal has noted. */
uint32_t hlo_journal_count(const hlo_module *module);
/* Unmakes all but the first `kept` of them, the last one first. The module is as it was then, down
 * to names and the order of use lists; ids are not given out again. Nothing older may use them, and
 * nothing older may have changed. */
void hlo_journal_back(hlo_module *module, uint32_t kept);

/* A copy of `instr` in a computation of the same module, with other operands (as many). A
 * parameter's copy is entered in comp->parameters. */
hlo_instr *hlo_instr_copy(hlo_computation *comp, hlo_instr *before, const hlo_instr *instr,
                          hlo_instr *const *operands);

static inline hlo_instr *hlo_instr_operand(const hlo_instr *instr, uint32_t index) {
    return instr->operands[index].def;
}
void hlo_instr_set_operand(hlo_instr *instr, uint32_t index, hlo_instr *def);
void hlo_instr_append_operand(hlo_instr *instr, hlo_instr *def);
/* Every use of `from`, and its place as root, becomes one of `to`. O(uses). */
void hlo_instr_replace_uses(hlo_instr *from, hlo_instr *to);
/* Gives `to`, made to stand in the place of `from`, what `from` says beside what it computes: of
 * metadata, frontend attributes, and, where both have the same dimensions, sharding and original
 * value, each that `to` does not have. */
void hlo_instr_inherit(hlo_instr *to, const hlo_instr *from);
/* Uses as operand, plus one when it is the root of its computation. */
uint32_t hlo_instr_user_count(const hlo_instr *instr);

/* What a computation runs on that names no thread. */
extern const char hlo_main_thread[];
/* Whether that is another than it was; NULL: the main one. */
bool hlo_computation_set_thread(hlo_computation *comp, const char *interned);
const char *hlo_computation_thread(const hlo_computation *comp);

/* An asynchronous operation is a chain of async-start, any number of async-update, async-done. */
bool hlo_op_is_async(hlo_op op);
/* The async-start of the chain that `instr` is of; NULL when there is none. */
const hlo_instr *hlo_async_start(const hlo_instr *instr);
/* The instruction that is all `comp` does, on its parameters in their order, and that has no
 * attributes but its opcode's own; NULL when it is not so. Text then writes `negate-start(...)` for
 * async-start and does not show the computation. */
const hlo_instr *hlo_async_wrapped(const hlo_computation *comp);
/* Whether what a start calls can be made again from the start: it is one instruction, has all of
 * its operands and returns what the start says, now and not by an update. */
bool hlo_async_tells(const hlo_instr *start, const hlo_computation *called);

/* Most attributes that are asked for are not there, which a bit tells without a look at the list.
 * Several share one; the last is for attributes that name computations. */
#define HLO_ATTR_BIT_CALLS (UINT32_C(1) << 31)
static inline uint32_t hlo_attr_bit(hlo_attr_id id) {
    return UINT32_C(1) << id % 31;
}
const hlo_attr *hlo_instr_find_attr(const hlo_instr *instr, hlo_attr_id id);
/* NULL when the instruction has no such attribute. */
static inline const hlo_attr *hlo_instr_attr(const hlo_instr *instr, hlo_attr_id id) {
    return instr->attr_bits & hlo_attr_bit(id) ? hlo_instr_find_attr(instr, id) : NULL;
}
/* Makes those all the attributes that it has. The array is not copied; others may have it too. */
void hlo_instr_take_attrs(hlo_instr *instr, const hlo_attr *attrs, uint32_t count);
/* Adds or replaces; attr.def's kind of `attr.id` says which member counts. */
void hlo_instr_set_attr(hlo_instr *instr, hlo_attr attr);
void hlo_instr_drop_attr(hlo_instr *instr, hlo_attr_id id);
/* Copies every attribute of `from` that `to` does not have. */
void hlo_instr_copy_attrs(hlo_instr *to, const hlo_instr *from);
/* Shorthands; `missing` when there is no such attribute. */
int64_t hlo_instr_int(const hlo_instr *instr, hlo_attr_id id, int64_t missing);
int64_t hlo_module_int(const hlo_module *module, hlo_attr_id id, int64_t missing);
const char *hlo_instr_str(const hlo_instr *instr, hlo_attr_id id);
/* Never NULL: an empty list when there is no such attribute. */
const hlo_ints *hlo_instr_ints(const hlo_instr *instr, hlo_attr_id id);
hlo_computation *hlo_instr_comp(const hlo_instr *instr, hlo_attr_id id);
/* Calls `visit` for every computation that an attribute of `instr` names. */
void hlo_instr_visit_called(const hlo_instr *instr,
                            void (*visit)(void *user, hlo_computation *called), void *user);

/* How often a while loop goes round, where its condition and body alone say so: it counts in one
 * element of its state from a constant, by a constant, to a constant. */
#define HLO_TRIPS_UNKNOWN UINT64_MAX
uint64_t hlo_while_trip_count(const hlo_instr *loop);

/* Whether each element of the result is one of operand 0, or what a pad fills up with, bit for bit
 * and of the same type: what moves elements, but no bitcast to another type. */
bool hlo_instr_moves(const hlo_instr *instr);
/* The number that an element is, or that all are, whatever the inputs: of constants and iotas, also
 * moved about, joined and converted, each convert rounding. `index` counts in row-major order of
 * the dimensions. False: it is not known, or no number that a double holds. All are one if they are
 * so bit for bit: 0 and -0 differ. */
bool hlo_known_element(const hlo_instr *value, int64_t index, double *out_number);
bool hlo_known_number(const hlo_instr *value, double *out_number);
/* The same, also through what is pinned (passes/analysis/pin.h), which passes do not look through:
 * for what a call means, which is the same before and after anything was pinned. */
bool hlo_known_number_pinned(const hlo_instr *value, double *out_number);

hlo_ints *hlo_ints_new(hlo_module *module, uint32_t count, const int64_t *values);
bool hlo_ints_contain(const hlo_ints *ints, int64_t value);
void hlo_instr_set_ints(hlo_instr *instr, hlo_attr_id id, uint32_t count, const int64_t *values);
void hlo_instr_set_int(hlo_instr *instr, hlo_attr_id id, int64_t value);
/* The string is interned. For WORD, STRING, FORM and RAW. */
void hlo_instr_set_str(hlo_instr *instr, hlo_attr_id id, const char *text);
void hlo_instr_set_comp(hlo_instr *instr, hlo_attr_id id, hlo_computation *comp);

/* metadata={op_name=...}; NULL when there is none. */
const char *hlo_instr_op_name(const hlo_instr *instr);

/* A new constant before `before`. */
hlo_instr *hlo_constant_new(hlo_computation *comp, hlo_instr *before, const hlo_literal *literal);
/* A scalar constant of a real type. */
hlo_instr *hlo_constant_scalar(hlo_computation *comp, hlo_instr *before, hlo_type type,
                               double value);

/* ------------------------------------------------------------------------ shape rules, verifier */

/* The result shape of an instruction of opcode `op`, by op.def's rule. Its layout is the default
 * one, except where XLA's own inference carries the operand's over (elementwise opcodes; transpose,
 * whose result is then the same bytes). NULL when operands and attributes do not tell the shape
 * (GIVEN, broadcast, reshape, convert, ...), or when they break the rule; then `why` (of `why_size`
 * bytes, may be NULL) says how, e.g. "add of f32[2] and f32[3]: the operands' dimensions differ".
 */
const hlo_shape *hlo_infer(hlo_module *module, hlo_op op, uint32_t operand_count,
                           hlo_instr *const *operands, uint32_t attr_count, const hlo_attr *attrs,
                           char *why, size_t why_size);
/* Whether an instruction keeps op.def's rule: operands, attributes, called computations, and the
 * shape that it has. Layouts are not compared. When not, `why` says how, and *out_blamed is where
 * in the source that stands which the instruction does not go with: an operand, a called
 * computation's parameter; HLO_NOWHERE when the instruction itself is all there is to it. `scratch`
 * is allocated from; besides that, only shapes are interned in the module. */
#define HLO_NOWHERE UINT32_MAX
bool hlo_infer_check(const hlo_instr *instr, hlo_arena *scratch, char *why, size_t why_size,
                     uint32_t *out_blamed);

/* Verifies a module that has not been: all that looks deeper than its text, the passes and the
 * backends, counts on one that verifies, and asks here. `max_errors`: see hlo_verify_options. */
hlo_status hlo_module_ensure_verified(const hlo_module *module, unsigned max_errors,
                                      const hlo_diag_sink *sink);

/* What hlo_module_verify() says of this one instruction, whose operands stand before it; NULL:
 * nothing. In `scratch`. */
const char *hlo_instr_fault(const hlo_instr *instr, hlo_arena *scratch);

/* ---------------------------------------------------------------------------------- diagnostics */

/* The start of a line. */
typedef struct hlo_line {
    size_t offset;   /* of its first byte */
    uint32_t number; /* from 1; 0: none */
} hlo_line;

/* What is known of where lines begin, so that many diagnostics are located without a walk over the
 * text for each. */
typedef struct hlo_lines {
    hlo_line last[2];    /* of the last note, and of the last error or warning */
    size_t end[2];       /* of those lines: the byte behind their last one; 0: not known */
    hlo_line marks[256]; /* one in each of so many equal parts of the text, where a walk went by */
} hlo_lines;

/* Emits one diagnostic about `length` bytes at `offset` of the module's source. */
void hlo_diag_emit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                   size_t offset, size_t length, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
void hlo_diag_vemit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                    size_t offset, size_t length, const char *format, va_list args);

/* The errors that a check has found, of which only the first are said: every check counts so. */
typedef struct hlo_error_budget {
    unsigned most; /* that are said */
    unsigned found;
    uint32_t first_hidden; /* where the first is that was not said */
} hlo_error_budget;

/* For so many errors; 0: HLO_MOST_ERRORS. */
hlo_error_budget hlo_error_budget_new(unsigned most);
/* Counts an error at `offset` of the source: whether it is said. */
bool hlo_error_budget_take(hlo_error_budget *tally, uint32_t offset);
/* One note about those that were not said. HLO_INVALID_INPUT if there was any error. */
hlo_status hlo_error_budget_end(const hlo_error_budget *tally, const hlo_module *module,
                                const hlo_diag_sink *sink);

#endif
