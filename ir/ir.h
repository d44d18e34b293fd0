/* SPDX-License-Identifier: Apache-2.0 */
/* The intermediate representation: shapes, literals, attributes, instructions, computations,
 * modules. This header is internal; programs use include/hlo/.
 *
 * Ownership: all objects below are allocated in the arena of their module and freed with it,
 * without reference counts. Strings and shapes are interned: equal strings, and equal shapes, of
 * one module have the same pointer.
 *
 * Order: the instructions of a computation form a list in which every operand comes before its
 * users. In a scheduled module, the list is also the schedule, so passes insert new instructions
 * next to those they replace. */
#ifndef HLO_IR_IR_H
#define HLO_IR_IR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hlo/ir.h"
#include "hlo/status.h"
#include "ir/arena.h"
#include "ir/tables.h"

/* --------------------------------------------------------------------------------------- shapes */

/* Physical order of an array's dimensions. Interned with its shape. */
typedef struct hlo_layout {
    const int64_t *minor_to_major; /* rank entries */
    int64_t element_bits;          /* E(n); 0: the bits of the element type */
    int64_t memory_space;          /* S(n); 0: the default memory space */
    const char *rest;              /* tiles and other text between the `:` and E or S, verbatim, or
                                    * NULL */
} hlo_layout;

/* Maximum number of dimensions of an array; readers reject more. */
enum { HLO_LARGEST_RANK = 64 };

/* An array, a tuple, a token or an opaque. Immutable and interned: within a module, two shapes are
 * equal (including layouts) exactly if their pointers are equal. */
struct hlo_shape {
    hlo_type type;              /* HLO_TYPE_TUPLE for tuples */
    bool buffer;                /* b(...): the shape is a buffer of that array */
    uint32_t rank;              /* number of dimensions of an array, or of elements of a tuple */
    const int64_t *dims;        /* array: size of each dimension; -1: unbounded `?` */
    const bool *dynamic;        /* array: whether each dimension is dynamic, `<=n`; NULL if none
                                 * is */
    const hlo_layout *layout;   /* array: layout, or NULL */
    const hlo_shape **elements; /* tuple: elements */
    uint32_t depth;             /* interned tuple: nesting depth; otherwise 0 */
    uint32_t size;              /* interned shape: number of shapes that it consists of, with
                                 * itself and repetitions; at most UINT32_MAX */
    uint64_t hash;
};

/* Maximum nesting depth and size of tuples: functions on shapes are recursive, and visit shared
 * elements repeatedly. Protobuf messages have a lower limit on the depth. */
enum { HLO_DEEPEST_SHAPE = 200, HLO_LARGEST_SHAPE = 1 << 20 };

/* Counts the arrays in a shape, including nested tuples. */
uint32_t hlo_shape_leaf_count(const hlo_shape *shape);
bool hlo_shape_is_scalar(const hlo_shape *shape);
bool hlo_shape_is_array(const hlo_shape *shape);
/* True if two arrays have equal dimensions; types and layouts are ignored. */
bool hlo_shape_same_dims(const hlo_shape *a, const hlo_shape *b);
/* True if the layout is the default one, {rank-1,...,1,0}, or absent. */
bool hlo_shape_is_row_major(const hlo_shape *shape);
/* True if values of both shapes have the same elements in the same order in memory. */
bool hlo_shape_same_memory(const hlo_shape *a, const hlo_shape *b);
/* True if the layout, if present, contains each dimension once; false only in unverified
 * modules. */
bool hlo_shape_is_ordered(const hlo_shape *shape);
/* Writes the stride of each dimension, in elements, according to the layout. Uses the default
 * layout if the shape has no layout, or one that is not a permutation (hlo_shape_is_ordered). */
void hlo_shape_strides(const hlo_shape *shape, int64_t *out_strides);
/* True if all dimensions of an array are bounded, and the product of the nonzero sizes, in bytes,
 * does not overflow. An empty array may also fail, because its strides may overflow. */
bool hlo_shape_is_addressable(const hlo_shape *shape);
/* Returns the module's interned shape equal to `shape`; arrays are copied. */
const hlo_shape *hlo_shape_intern(hlo_module *module, const hlo_shape *shape);
/* Returns the shape of an array with the default layout. */
const hlo_shape *hlo_shape_array(hlo_module *module, hlo_type type, uint32_t rank,
                                 const int64_t *dims);
/* Returns the shape of an array with the physical order `minor_to_major`, or with the default
 * layout if that is NULL. */
const hlo_shape *hlo_shape_with_layout(hlo_module *module, hlo_type type, uint32_t rank,
                                       const int64_t *dims, const int64_t *minor_to_major);
const hlo_shape *hlo_shape_tuple(hlo_module *module, uint32_t count,
                                 const hlo_shape *const *elements);
/* Returns `shape` with another element type. Dimensions and layout remain, but the layout loses its
 * E(n) if the width of the type changes. */
const hlo_shape *hlo_shape_retype(hlo_module *module, const hlo_shape *shape, hlo_type type);

/* ------------------------------------------------------------------------------------- literals */

/* A constant value. Elements are dense, row-major in *logical* order regardless of the layout,
 * hlo_types[type].bytes wide, and little-endian. A pred or a sub-byte integer occupies one byte
 * (sign extended). An f4 is in the low bits of a byte. */
typedef struct hlo_literal hlo_literal;
struct hlo_literal {
    const hlo_shape *shape;
    bool elided;                  /* `{...}`: the text omits the values; data is NULL */
    void *data;                   /* array: elements */
    const hlo_literal **elements; /* tuple: elements */
};

/* ----------------------------------------------------------------------------------- attributes */

typedef struct hlo_instruction hlo_instruction;
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
    hlo_instruction *v[];
} hlo_instrs;

typedef struct hlo_shapes {
    uint32_t count;
    const hlo_shape *v[];
} hlo_shapes;

/* The first member of a value that is parsed into a struct. A module parses each value once. */
typedef struct hlo_parsed {
    const char *text; /* the printed form of the value; interned */
} hlo_parsed;

typedef struct hlo_groups hlo_groups;
typedef struct hlo_sharding hlo_sharding;

/* `{0}: (1, {2}, may-alias)`: an element of the result has the buffer of a part of a parameter, or
 * of an operand. */
typedef struct hlo_alias {
    const hlo_ints *output; /* indices of the element in nested tuples; NULL: any element (for a
                             * buffer donor) */
    int64_t number;         /* number of the parameter or operand */
    const hlo_ints *part;   /* indices of the part in nested tuples */
    const char *mode;       /* `may` or `must`, or NULL */
    const char *text;       /* interned */
} hlo_alias;

typedef struct hlo_aliases {
    hlo_parsed parsed; /* if its text is empty, the aliases are absent */
    uint32_t count;
    hlo_alias v[];
} hlo_aliases;

/* One attribute. `id` determines the kind (attr.def), and the kind determines the member. */
typedef struct hlo_attr {
    hlo_attr_id id;
    union {
        int64_t i;
        double f;
        const char *str;          /* interned */
        const hlo_parsed *parsed; /* the first member of each of the following structs */
        const hlo_groups *groups;
        const hlo_sharding *sharding;
        const hlo_aliases *aliases;
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

/* True if the values of the attribute are parsed into a struct. */
static inline bool hlo_attr_is_parsed(hlo_attr_id id) {
    return hlo_attrs_info[id].kind >= HLO_KIND_GROUPS &&
           hlo_attrs_info[id].kind <= HLO_KIND_ALIASES;
}
/* Returns the text of a value of kind WORD, STRING, FORM or RAW, or of a value parsed into a
 * struct. */
static inline const char *hlo_attr_text(const hlo_attr *attr) {
    return hlo_attr_is_parsed(attr->id) ? attr->u.parsed->text : attr->u.str;
}

/* True if the attribute equals its default (ir/table/attr_default.def) on an `op` whose first
 * operand has the shape `operand`; NULL: the shape is unknown. */
bool hlo_attr_is_default(const hlo_attr *attr, hlo_op op, const hlo_shape *operand);
/* Returns the default `type` of a comparison whose operands have the shape `operand`. */
const char *hlo_compare_default_type(const hlo_shape *operand);
/* Returns the `type` of a comparison for its `order`, TOTAL or PARTIAL, which XLA has instead since
 * jaxlib 0.12; NULL if there is no such order. The orders of integers are equal. `operand` may be
 * NULL, if its shape is not known yet; it is then taken for a float. */
const char *hlo_compare_type_of_order(const char *order, const hlo_shape *operand);

/* ------------------------------------------------------------------- instructions, computations */

/* One operand slot, which is also one link in the operand's use list. */
struct hlo_use {
    hlo_instruction *def;  /* the operand */
    hlo_instruction *user; /* the instruction that has the operand */
    hlo_use *next, *prev;  /* neighbors in the use list of `def` */
};

/* The reason why an instruction is pinned; see passes/analysis/pin.h. */
typedef enum hlo_pin {
    HLO_PIN_NONE,
    HLO_PIN_EFFECT,  /* it has a side effect */
    HLO_PIN_SPACE,   /* it reads or writes a memory space other than the default one */
    HLO_PIN_CONTROL, /* it is the source or the target of a control dependency */
    HLO_PIN_THREAD   /* it runs on the host, or on a thread other than the main thread */
} hlo_pin;

/* An instruction. Every pass loops over all instructions, so they are contiguous in memory, in the
 * order of their creation. The members that every loop reads come first. */
struct hlo_instruction {
    hlo_op op : 8;
    uint32_t attr_count : 20;
    bool queued : 1; /* in the worklist of the current pass; false between passes */
    hlo_pin pin : 3; /* why the instruction is pinned; set at the start of a run of passes */
    uint32_t id;     /* unique in the module, below hlo_module.next_id: an index for side tables */
    hlo_instruction *next, *prev;
    uint32_t operand_count, use_count;
    uint32_t attr_bits; /* a filter of the present attributes: see hlo_attr_bit() */
    uint32_t offset;    /* offset in the module's source; for an instruction that a pass created,
                         * the offset of the instruction that it replaces */
    const hlo_shape *shape;
    union {
        hlo_use *operands; /* operand_count elements */
        union {
            const hlo_literal *literal; /* the value, for HLO_OP_CONSTANT */
            int64_t parameter;          /* the parameter number, for HLO_OP_PARAMETER */
        } u;
    };
    hlo_use *uses;         /* the uses of the result, newest first */
    const hlo_attr *attrs; /* attr_count elements, in the order in which they were set: see
                            * hlo_instr_take_attrs() */
    hlo_computation *parent;
    const char *name; /* without `%`; unique in the module */
};

/* Return the next or previous instruction of the computation; NULL at its end. Both functions
 * prefetch a later instruction, because most instructions of a computation are contiguous in
 * memory. */
enum { HLO_INSTRS_AHEAD = 24 };
static inline hlo_instruction *hlo_instr_next(const hlo_instruction *instr) {
    __builtin_prefetch(instr + HLO_INSTRS_AHEAD);
    return instr->next;
}
static inline hlo_instruction *hlo_instr_prev(const hlo_instruction *instr) {
    __builtin_prefetch(instr - HLO_INSTRS_AHEAD);
    return instr->prev;
}

struct hlo_computation {
    uint32_t id; /* unique in the module, below hlo_module.next_computation_id */
    const char *name;
    hlo_module *module;
    hlo_computation *next, *prev;
    hlo_instruction *first, *last;
    hlo_instruction *root;
    uint32_t instr_count;
    uint32_t parameter_count;
    uint32_t parameter_capacity;  /* number of slots of `parameters` that
                                   * hlo_instr_set_parameter() allocated; 0: another function
                                   * allocated `parameters` */
    hlo_instruction **parameters; /* indexed by parameter number; may grow while the computation is
                                   * built */
    const hlo_attr *attrs;        /* execution_thread */
    uint32_t attr_count;
    uint32_t offset;
};

/* Rows of two of the header tables; rows are numbered from 1. */
typedef struct hlo_file_location {
    int64_t file_name, function_name, line, end_line, column, end_column;
} hlo_file_location;
typedef struct hlo_stack_frame {
    int64_t file_location; /* row number in the locations, or 0 */
    int64_t parent; /* `parent_frame_id` of the text: the parent's number plus one; 1: no parent */
} hlo_stack_frame;

/* The four tables of the header: files, functions, locations, stack frames. */
typedef struct hlo_tables {
    uint32_t file_count, function_count, location_count, frame_count;
    const char **files, **functions;
    hlo_file_location *locations;
    hlo_stack_frame *frames;
} hlo_tables;

/* An error that XLA's parser ignores and XLA's verifier reports. */
typedef struct hlo_deferred_error hlo_deferred_error;
struct hlo_deferred_error {
    hlo_deferred_error *next;
    uint32_t offset, length; /* bytes of the source */
    const char *message;
};

typedef struct hlo_line {
    size_t offset;   /* offset of its first byte */
    uint32_t number; /* line number, from 1; 0: the struct is unset */
} hlo_line;

/* Cache of line starts: locating many diagnostics reads the text once. */
typedef struct hlo_lines {
    hlo_line last[2];    /* the lines of the last note, and of the last error or warning */
    size_t end[2];       /* offset of the byte after each of these lines; 0: unknown */
    hlo_line marks[256]; /* the first line start in each of 256 equal parts of the text, if known */
} hlo_lines;

/* An instruction that an edit replaced by another one. */
typedef struct hlo_replaced {
    const hlo_instruction *from, *to;
} hlo_replaced;

/* A log of the instructions and computations that were created (ir/module/undo.h). */
typedef struct hlo_journal hlo_journal;

/* A file that has inputs or outputs of a run in addition to its module. The clones of the module
 * share it. */
typedef struct hlo_recorded {
    atomic_uint modules; /* number of modules that use it */
    char *bytes;         /* from hlo_malloc() */
    size_t size;
} hlo_recorded;

struct hlo_module {
    hlo_arena *arena;
    const char *name;
    hlo_computation *first, *last; /* callees before callers */
    hlo_computation *entry;
    const hlo_attr *attrs; /* attributes of the header */
    uint32_t attr_count;
    hlo_tables tables;
    uint32_t next_id; /* above every instruction's id */
    uint32_t next_computation_id;
    const char *file; /* name of the file that the module was read from, or "" */
    const char
        *source; /* text that the module was parsed from; NULL if it was not parsed from text */
    size_t source_size;
    uint32_t source_line;         /* line of the file at which `source` begins */
    hlo_deferred_error *deferred; /* list of deferred errors, newest first */
    bool verified;                /* the module was verified, and since then only passes have
                                   * changed it */
    bool exhausted;               /* memory ran out during an edit: the caller may only free the
                                   * module */
    uint64_t edits;               /* number of changes by hlo/edit.h */
    hlo_replaced *replaced;       /* replacements by edits since `logs_replaced` was set */
    uint32_t replaced_count, replaced_capacity;
    bool logs_replaced;
    hlo_lines *lines;       /* cache of line starts: see hlo_diag_emit() */
    hlo_recorded *recorded; /* NULL unless the module was read from a snapshot */
    hlo_pool instrs;
    uint32_t relocated;               /* number of instructions at the last call of
                                       * hlo_module_compact() */
    uint32_t relocated_ids;           /* value of next_id at that call */
    uint32_t instr_count;             /* number of instructions in all computations */
    uint32_t op_counts[HLO_OP_COUNT]; /* number of instructions of each opcode */
    bool attrs_seen[HLO_ATTR_COUNT];  /* an instruction has or has had the attribute */
    bool spaces_seen;                 /* a shape has a memory space */
    bool dynamic_seen;                /* a shape has a dynamic dimension */
    hlo_journal *journal;             /* the log that is open, or NULL */
    /* Parses canonical text to a value that is a struct. NULL if the module was not parsed and has
     * no such values. */
    const hlo_attr *(*read)(hlo_module *module, hlo_attr_id id, const char *interned);
    struct hlo_strings *strings; /* table of interned strings */
    struct hlo_shapeset *shapes; /* table of interned shapes */
};

/* Creates an empty module. Returns NULL if memory runs out. `recover` is as for hlo_arena_new(). */
hlo_module *hlo_module_make(jmp_buf *recover);

/* Creates a computation at the end of the module. Makes `name` unique with `.N`. If `name` is NULL,
 * the caller sets the name later. */
hlo_computation *hlo_comp_new(hlo_module *module, const char *name);
/* Removes a computation from its module; no instruction may call it. */
void hlo_comp_remove(hlo_computation *comp);
/* Moves a computation before `before` in the same module, or to the end if `before` is NULL. */
void hlo_comp_move(hlo_computation *comp, hlo_computation *before);
void hlo_comp_set_root(hlo_computation *comp, hlo_instruction *root);

/* Creates an instruction before `before`, or at the end if `before` is NULL. Makes `name`, or the
 * opcode's name if `name` is NULL, unique with `.N`. For parameters, the caller also calls
 * hlo_instr_set_parameter(). */
hlo_instruction *hlo_instr_new(hlo_computation *comp, hlo_instruction *before, hlo_op op,
                               const hlo_shape *shape, uint32_t operand_count,
                               hlo_instruction *const *operands, const char *name);
/* Like hlo_instr_new(), but without a name; the caller sets a unique name. */
hlo_instruction *hlo_instr_new_unnamed(hlo_computation *comp, hlo_instruction *before, hlo_op op,
                                       const hlo_shape *shape, uint32_t operand_count,
                                       hlo_instruction *const *operands);
/* Like hlo_instr_new(), but with an interned name. */
hlo_instruction *hlo_instr_new_interned(hlo_computation *comp, hlo_instruction *before, hlo_op op,
                                        const hlo_shape *shape, uint32_t operand_count,
                                        hlo_instruction *const *operands, const char *interned);
/* Sets the number of a parameter and adds it to comp->parameters. */
void hlo_instr_set_parameter(hlo_instruction *instr, int64_t number);
/* Removes an instruction from its computation and its operands' use lists. The instruction must not
 * have uses or be the root. Its memory remains allocated until the module is freed, with parent
 * NULL. */
void hlo_instr_remove(hlo_instruction *instr);
void hlo_instr_move(hlo_instruction *instr, hlo_instruction *before);

/* Copies `instr` into a computation of its module, with other operands of the same number. The copy
 * of a parameter is added to comp->parameters. */
hlo_instruction *hlo_instr_copy(hlo_computation *comp, hlo_instruction *before,
                                const hlo_instruction *instr, hlo_instruction *const *operands);

static inline hlo_instruction *hlo_instr_operand(const hlo_instruction *instr, uint32_t index) {
    return instr->operands[index].def;
}
void hlo_instr_set_operand(hlo_instruction *instr, uint32_t index, hlo_instruction *def);
void hlo_instr_append_operand(hlo_instruction *instr, hlo_instruction *def);
void hlo_instr_set_operands(hlo_instruction *instr, uint32_t count,
                            hlo_instruction *const *operands);
/* Replaces uses of `from` by `to`, except in `to` itself, and the root if it is `from`. O(uses). */
void hlo_instr_replace_uses(hlo_instruction *from, hlo_instruction *to);
/* Copies from `from` to its replacement `to` the attributes that do not affect the value: metadata,
 * frontend attributes and, if both have equal dimensions, sharding and original value. Does not
 * overwrite attributes of `to`. */
void hlo_instr_inherit(hlo_instruction *to, const hlo_instruction *from);
/* Counts the uses as an operand, plus one if the instruction is the root of its computation. */
uint32_t hlo_instr_user_count(const hlo_instruction *instr);

/* The thread of computations that have no execution_thread. */
extern const char hlo_main_thread[];
/* Sets the thread; NULL: the main thread. Returns true if the thread changes. */
bool hlo_computation_set_thread(hlo_computation *comp, const char *interned);
const char *hlo_computation_thread(const hlo_computation *comp);

/* True for async-start, async-update and async-done, which form a chain: a start, any number of
 * updates, a done. */
bool hlo_op_is_async(hlo_op op);
/* Returns the async-start of the chain of `instr`, or NULL. */
const hlo_instruction *hlo_async_start(const hlo_instruction *instr);
/* Returns the instruction that `comp` wraps, or NULL if `comp` has another form. The wrapped
 * instruction must be the only one besides the parameters, which are its operands in order. */
const hlo_instruction *hlo_async_wrapped(const hlo_computation *comp);
/* True for attributes that, in text without the computation, belong to the wrapped instruction,
 * too: it has the value of the last instruction of the chain that has the attribute, as in XLA. */
bool hlo_async_shares(hlo_attr_id attr);
/* True if the computation that a start calls can be rebuilt from the chain of the start. Text then
 * writes `negate-start(...)`, and omits the computation. The computation must wrap one instruction,
 * which has all operands of the start, returns the shape in the start's result, and has only
 * attributes of its opcode and shared ones. The opcode of this instruction must not have a separate
 * start opcode, as all-gather has. */
bool hlo_async_tells(const hlo_instruction *start, const hlo_computation *called);

/* The filter of present attributes, hlo_instruction.attr_bits: a clear bit proves, without a
 * search, that an attribute is absent. Several attributes share a bit; the last bit is set by
 * attributes that name computations. */
#define HLO_ATTR_BIT_CALLS (UINT32_C(1) << 31)
static inline uint32_t hlo_attr_bit(hlo_attr_id id) {
    return UINT32_C(1) << id % 31;
}
/* Finds an attribute in a list; NULL if not found. */
const hlo_attr *hlo_attrs_find(const hlo_attr *attrs, uint32_t count, hlo_attr_id id);
static inline const hlo_attr *hlo_instr_attr(const hlo_instruction *instr, hlo_attr_id id) {
    return instr->attr_bits & hlo_attr_bit(id) ? hlo_attrs_find(instr->attrs, instr->attr_count, id)
                                               : NULL;
}
/* Replaces all attributes by `attrs`. The array is not copied; instructions may share it. */
void hlo_instr_take_attrs(hlo_instruction *instr, const hlo_attr *attrs, uint32_t count);
/* Adds or replaces an attribute; the kind of `attr.id` in attr.def selects the member. */
void hlo_instr_set_attr(hlo_instruction *instr, hlo_attr attr);
void hlo_instr_drop_attr(hlo_instruction *instr, hlo_attr_id id);
/* Copies every attribute of `from` that `to` does not have. */
void hlo_instr_copy_attrs(hlo_instruction *to, const hlo_instruction *from);
/* Returns the value of attribute `id`; `missing` if it is absent. */
int64_t hlo_instr_int(const hlo_instruction *instr, hlo_attr_id id, int64_t missing);
int64_t hlo_module_int(const hlo_module *module, hlo_attr_id id, int64_t missing);
/* Returns hlo_attr_text(); NULL if the attribute is absent. */
const char *hlo_instr_str(const hlo_instruction *instr, hlo_attr_id id);
/* True for a custom call of this target. */
bool hlo_is_custom_call(const hlo_instruction *instr, const char *target);
/* Returns the attribute `id` of a window; NULL if the window is NULL or does not have it. */
const hlo_attr *hlo_window_word(const hlo_attr *window, hlo_attr_id id);
/* Reads dim_labels, such as b01f_01io->b01f, of a convolution of arrays of `rank` dimensions.
 * Writes 3 * rank dimension numbers. For the input, they are batch, features, and spatial
 * dimensions in order; for the kernel, input features, output features, and spatial dimensions; for
 * the result, as for the input. Returns false unless each dimension is named once. */
bool hlo_dim_labels_read(const char *text, uint32_t rank, int64_t *out_dims);
/* Returns the list of attribute `id`; an empty list if the instruction does not have the attribute.
 */
const hlo_ints *hlo_instr_ints(const hlo_instruction *instr, hlo_attr_id id);
hlo_computation *hlo_instr_comp(const hlo_instruction *instr, hlo_attr_id id);
/* Calls `visit` for every computation that an attribute of `instr` names. */
void hlo_instr_visit_called(const hlo_instruction *instr,
                            void (*visit)(void *user, hlo_computation *called), void *user);
/* A function for hlo_instr_visit_called(): sets the computation's element of `marks`, a bool[]
 * indexed by computation id. */
void hlo_mark_called(void *marks, hlo_computation *called);

/* Create a list. If `values` is NULL, the elements are not set. */
hlo_ints *hlo_ints_in(hlo_arena *arena, uint32_t count, const int64_t *values);
hlo_ints *hlo_ints_new(hlo_module *module, uint32_t count, const int64_t *values);
bool hlo_ints_contain(const hlo_ints *ints, int64_t value);
int64_t hlo_ints_find(const hlo_ints *ints, int64_t value); /* the first position, or -1 */
int hlo_compare_ints(const void *a, const void *b);         /* compares two int64_t for qsort(),
                                                             * ascending */
bool hlo_ints_equal(const hlo_ints *a, const hlo_ints *b);  /* a NULL list equals only NULL */
/* True if both literals have the same shape and elements. An elided literal equals only itself. */
bool hlo_literal_equal(const hlo_literal *a, const hlo_literal *b);
/* Returns the bytes of a value: two values of the same kind are equal exactly if their bytes are.
 * Returns NULL for floats, literals and lists of attributes. */
const void *hlo_attr_value(const hlo_attr *attr, size_t *out_size);
/* True if both attributes have the same kind and value; always false for lists of instructions. */
bool hlo_attr_equal(const hlo_attr *a, const hlo_attr *b);
/* True if both lists have equal attributes in the same order; metadata is ignored. */
bool hlo_attrs_equal(const hlo_attr *a, uint32_t a_count, const hlo_attr *b, uint32_t b_count);
void hlo_instr_set_ints(hlo_instruction *instr, hlo_attr_id id, uint32_t count,
                        const int64_t *values);
void hlo_instr_set_int(hlo_instruction *instr, hlo_attr_id id, int64_t value);
/* Interns `text` and sets an attribute with text (hlo_attr_text()). */
void hlo_instr_set_str(hlo_instruction *instr, hlo_attr_id id, const char *text);
void hlo_instr_set_comp(hlo_instruction *instr, hlo_attr_id id, hlo_computation *comp);

/* Return an entry of the metadata, or its op_name; NULL if absent. */
const hlo_attr *hlo_instr_metadata(const hlo_instruction *instr, hlo_attr_id id);
const char *hlo_instr_op_name(const hlo_instruction *instr);
/* Returns the file and line (0: unknown) of the innermost stack frame that has a file, otherwise
 * the file and line in the metadata; NULL if the file is unknown. */
const char *hlo_instr_source(const hlo_instruction *instr, int64_t *out_line);
/* Return a stack frame, its location and its file; NULL if the frame or its entry is not in the
 * tables. */
const hlo_stack_frame *hlo_tables_frame(const hlo_tables *tables, int64_t frame);
const hlo_file_location *hlo_frame_location(const hlo_tables *tables, int64_t frame);
const char *hlo_frame_file(const hlo_tables *tables, int64_t frame);
/* Returns the number of a frame's parent, or 0. The frame must be in the tables. */
int64_t hlo_frame_parent(const hlo_tables *tables, int64_t frame);

hlo_instruction *hlo_constant_new(hlo_computation *comp, hlo_instruction *before,
                                  const hlo_literal *literal);
hlo_instruction *hlo_constant_scalar(hlo_computation *comp, hlo_instruction *before, hlo_type type,
                                     double value);

#endif
