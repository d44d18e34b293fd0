/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrite rules as data: the flat tables that a `.rules` file compiles to.
 *
 * rulec writes these structs as const C; hlo_rules_parse() builds them at run time. In both cases,
 * a rule set consists of a few arrays that refer to each other by index. `let` definitions are
 * expanded: each use is a copy of the body with its own variables. If an argument is a pattern, all
 * uses of its parameter share one term. docs/rules.md describes the notation. */
#ifndef HLO_GRAMMAR_RULES_RULES_H
#define HLO_GRAMMAR_RULES_RULES_H

#include "ir/ir.h"

/* Limits. HLO_RULE_ARGS is the maximum number of arguments or attributes of a term, of sets of an
 * action, and of roots or actions of a rule. HLO_RULE_SLOTS is the maximum number of variables of a
 * rule. */
enum { HLO_RULE_ARGS = 16, HLO_RULE_SLOTS = 128 };

/* A pattern, an argument or a template. The kind determines which members are valid. */
typedef enum hlo_term_kind {
    HLO_TERM_ANY,      /* `_` */
    HLO_TERM_VAR,      /* `%x` */
    HLO_TERM_RESULT,   /* `%mm.out`: result `code` (hlo_rule_result) of the call `slot` */
    HLO_TERM_OP,       /* `name(args) {attributes}`: an instruction, opcode `code` */
    HLO_TERM_CONSTANT, /* `constant(0)`: every element is `number` */
    HLO_TERM_CHAIN,    /* `chain(p)`: p under any number of movement opcodes, longest match first */
    HLO_TERM_CHAIN1,   /* `chain+(p)`: p under one or more movement opcodes, longest match first */
    HLO_TERM_SPLAT,    /* `splat(p)`: an array whose elements all equal p */
    HLO_TERM_ALT,      /* `a | b` */
    HLO_TERM_DEFINE,   /* `p with %x = t`: args are p, t; t is built when %x is used */
    HLO_TERM_FUNCTION, /* `name(args)`: row `code` of builder.def */
    HLO_TERM_NUMBER,
    HLO_TERM_WORD,
    HLO_TERM_NONE /* `none`: an absent operand */
} hlo_term_kind;

typedef enum hlo_rule_result { HLO_RESULT_OUT, HLO_RESULT_AUX, HLO_RESULT_AMAX } hlo_rule_result;

/* The shape that a term requires or, on the right-hand side, gets. */
typedef enum hlo_rule_shape {
    HLO_SHAPE_FREE,
    HLO_SHAPE_TYPE, /* `: f32`: element type `shape_code` */
    HLO_SHAPE_IS,   /* `: fp8`: the one-argument predicate `shape_code` of builder.def */
    HLO_SHAPE_LIKE  /* `like %x`: the shape of slot `shape_code` (templates only) */
} hlo_rule_shape;

typedef struct hlo_rule_term {
    uint8_t kind;       /* hlo_term_kind */
    uint8_t shape_kind; /* hlo_rule_shape */
    bool rest;          /* OP, patterns: more operands than arguments are allowed */
    bool anywhere;      /* OP, patterns: the only argument may match any operand */
    int16_t slot;       /* patterns: the slot to bind, or -1. VAR, RESULT: the variable */
    uint16_t code;
    uint16_t shape_code;
    uint32_t arg_count, first_arg;   /* range in hlo_rules.args, whose entries are term indices */
    uint32_t attr_count, first_attr; /* range in hlo_rules.attrs */
    double number;
    const char *word;
} hlo_rule_term;

typedef enum hlo_rule_attr_kind {
    HLO_RULE_INT,
    HLO_RULE_INTS,
    HLO_RULE_WORD,
    HLO_RULE_SLOT, /* the attribute in a slot: a pattern binds or compares it, a template copies
                    * it */
    HLO_RULE_FROM  /* templates: all attributes of the instruction in that slot */
} hlo_rule_attr_kind;

typedef struct hlo_rule_attr {
    uint8_t id;   /* hlo_attr_id */
    uint8_t kind; /* hlo_rule_attr_kind */
    int16_t slot;
    int64_t number;
    uint32_t int_count, first_int; /* range in hlo_rules.ints */
    const char *word;
} hlo_rule_attr;

enum { HLO_RULE_NO_REASON = 0xffff };

/* `where [not] function(args) [else reason [at %x]]` */
typedef struct hlo_rule_guard {
    bool negate;
    uint16_t function;
    uint16_t reason; /* row of passes/reason/reason.def; HLO_RULE_NO_REASON: the guard is only a
                      * condition */
    int16_t at;      /* the slot after `at`, or -1 */
    uint32_t arg_count, first_arg;
} hlo_rule_guard;

typedef enum hlo_rule_action_kind {
    HLO_ACTION_REPLACE, /* `%y -> term`: all uses of slot become the term */
    HLO_ACTION_OPERAND, /* `%d with operand %c = term`: slot, operand */
    HLO_ACTION_CALL,    /* `%n = call %mm with field = term, ..`: slot, operand (%mm), sets */
    HLO_ACTION_LET,     /* `%n = term` */
    HLO_ACTION_REMARK   /* `remark reason [at %x]` */
} hlo_rule_action_kind;

typedef struct hlo_rule_action {
    uint8_t kind;
    int16_t slot;
    int16_t operand;
    uint16_t reason;
    uint32_t term;
    uint32_t set_count, first_set; /* range in hlo_rules.sets */
} hlo_rule_action;

/* One field of struct hlo_matmul: `field = term`, or `field += WORD`. */
typedef struct hlo_rule_set {
    uint16_t field; /* row of field.def */
    bool add;
    uint32_t term;
} hlo_rule_set;

typedef struct hlo_rule_root {
    uint32_t term;
    bool optional; /* `also?`: an optional root, matched among the users of bound values */
} hlo_rule_root;

typedef struct hlo_rule {
    const char *name;
    const char *phase;
    const char *measure; /* a row of builder.def, whose value decreases with each application of a
                          * rule */
    uint16_t measure_code;
    uint16_t slot_count;
    int16_t subject;       /* the matmul whose verdict this rule affects, or -1 */
    int16_t root;          /* the slot of the first root */
    uint32_t line, offset; /* position of the rule's name in the file */
    uint32_t root_count, first_root;
    uint32_t guard_count, first_guard;
    uint32_t action_count, first_action;
    const char *const *slots; /* names of the variables, for diagnostics */
    const char *example;      /* HLO that the rule rewrites; NULL only for `remark` rules */
} hlo_rule;

/* The tables of a rules file, by row name: each has a pointer NAMEs and a NAME_count in struct
 * hlo_rules. */
#define HLO_RULE_TABLES(TABLE)                                                                     \
    TABLE(term)                                                                                    \
    TABLE(arg)                                                                                     \
    TABLE(attr)                                                                                    \
    TABLE(int)                                                                                     \
    TABLE(guard)                                                                                   \
    TABLE(action)                                                                                  \
    TABLE(set)                                                                                     \
    TABLE(root)                                                                                    \
    TABLE(rule)

typedef struct hlo_rules {
    const char *file;
    uint32_t term_count, arg_count, attr_count, int_count, guard_count, action_count, set_count,
        root_count, rule_count;
    const hlo_rule_term *terms;
    const uint32_t *args;
    const hlo_rule_attr *attrs;
    const int64_t *ints;
    const hlo_rule_guard *guards;
    const hlo_rule_action *actions;
    const hlo_rule_set *sets;
    const hlo_rule_root *roots;
    const hlo_rule *rules;
} hlo_rules;

/* The words that rules may use; the passes define them. Codes are indices into these lists. */
typedef enum hlo_function_kind {
    HLO_FUNCTION_TEST,
    HLO_FUNCTION_MAKE,
    HLO_FUNCTION_MEASURE
} hlo_function_kind;

typedef struct hlo_rule_function {
    const char *name;
    uint8_t kind;       /* hlo_function_kind */
    const char *params; /* one letter per parameter: V value, A array, D dot, C chain, W word, N
                         * number, S 0 or 1; in lower case if the argument may be absent; a final
                         * `*`: any number of arguments like the last */
} hlo_rule_function;

/* Returns the letter of argument `index`; 0 if the function takes fewer arguments. */
char hlo_rule_letter(const hlo_rule_function *function, uint32_t index);

typedef struct hlo_rule_vocabulary {
    uint32_t function_count, reason_count, field_count;
    const hlo_rule_function *functions;
    const char *const *reasons;
    const char *const *fields;
} hlo_rule_vocabulary;

/* Reads and checks the rules in `owner`'s source (the caller sets file, source and source_size).
 * The tables are in owner's arena. Returns HLO_INVALID_INPUT after errors, of which `sink` receives
 * at most `max_errors` (0: HLO_MAX_ERRORS) and a note about the other errors. */
hlo_status hlo_rules_parse(hlo_module *owner, const hlo_rule_vocabulary *words, unsigned max_errors,
                           const hlo_diag_sink *sink, const hlo_rules **out_rules);

#endif
