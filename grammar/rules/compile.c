/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a `.rules` file to checked tables: words and tables, variables, terms with definitions
 * expanded, rules. */
#include <stdarg.h>
#include <string.h>

#include "grammar/rules/ast.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

/* MAX_TERMS: maximum number of terms in a file. Expansion of definitions stops there. A term counts
 * once for each path from a pattern to it. Nested definitions, each of which uses the next one
 * twice, double the number at every level. */
enum { MAX_DEPTH = 64, MAX_TERMS = 1 << 16 };

/* A growing table. */
typedef struct buffer {
    void *data;
    uint32_t count, capacity;
} buffer;

typedef struct slot_set {
    bool has[HLO_RULE_SLOTS];
} slot_set;

/* The tables so far, and the state of the current rule. */
struct rules_draft {
    buffer terms, args, attrs, ints, guards, actions, sets, roots, rules;
    const char *phase, *measure;
    uint16_t measure_code;
    const char *slots[HLO_RULE_SLOTS];
    bool chain[HLO_RULE_SLOTS];
    int8_t holds[HLO_RULE_SLOTS]; /* HOLDS_VALUE, or the hlo_attr_kind of an attribute */
    slot_set partial;             /* variables that only some alternatives of the first root bind */
    bool acting; /* the rule's actions are being compiled: partial variables are rejected */
    uint32_t slot_count, expansions, depth;
    uint32_t size; /* number of terms; a term counts once for each path from a pattern to it */
    bool full;     /* MAX_TERMS was reached and reported */
    bool apart;    /* the current use of a parameter has its own term, because it adds to the
                    * argument's pattern or is not in a pattern */
};

enum { HOLDS_VALUE = -1 };

/* The term of an argument of a let. All uses of the parameter share it. */
typedef struct shared_term {
    uint32_t term, size; /* size 0: not compiled yet */
} shared_term;

/* The expansion of a let. Its parameters stand for nodes in the frame of the caller. */
typedef struct let_frame {
    const struct let_frame *caller;
    const let_node *let;
    const node *args;
    shared_term *made; /* indexed by argument */
    uint32_t number;
} let_frame;

typedef enum term_mode { PATTERN, TEMPLATE, ARGUMENT } term_mode;

/* --------------------------------------------------------------------------------------- tables */

void rules_fault(rules_parser *p, span where, const char *format, ...) {
    if (!hlo_error_budget_take(&p->faults, (uint32_t)where.first)) return;
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(p->owner, p->sink, HLO_ERROR, HLO_DIAG_RULE, where.first,
                   where.last > where.first ? where.last - where.first : 1, format, args);
    va_end(args);
}

void *rules_new(rules_parser *p, size_t size) {
    return hlo_arena_zero(p->owner->arena, size);
}

node *rules_node(rules_parser *p, node_kind kind, size_t first, size_t last) {
    node *n = rules_new(p, sizeof *n);
    n->kind = kind;
    n->where = (span){first, last};
    return n;
}

static const char *rules_name(rules_parser *p, span s) {
    return hlo_intern(p->owner, p->owner->source + s.first, s.last - s.first);
}

/* Adds a zeroed item to a table. */
static void *rules_push(rules_parser *p, buffer *b, size_t size) {
    hlo_arena_grow(p->owner->arena, &b->data, b->count, &b->capacity, size);
    void *item = (char *)b->data + b->count++ * size;
    memset(item, 0, size);
    return item;
}

/* Adds items to a table and returns the index of the first one. */
static uint32_t rules_push_all(rules_parser *p, buffer *b, const void *items, uint32_t count,
                               size_t size) {
    const uint32_t first = b->count;
    for (uint32_t i = 0; i < count; i++)
        memcpy(rules_push(p, b, size), (const char *)items + i * size, size);
    return first;
}

static int rules_find_function(const rules_parser *p, const char *name) {
    for (uint32_t i = 0; i < p->words->function_count; i++)
        if (!strcmp(p->words->functions[i].name, name)) return (int)i;
    return -1;
}

static int rules_find_word(const char *const *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(list[i], name)) return (int)i;
    return -1;
}

static const let_node *rules_find_let(rules_parser *p, span name) {
    const char *text = rules_name(p, name);
    for (const let_node *l = p->lets; l; l = l->next)
        if (rules_name(p, l->name) == text) return l;
    return NULL;
}

/* Returns a term. The pointer is valid until the next term is added. */
static hlo_rule_term *rules_term_at(rules_parser *p, uint32_t index) {
    return (hlo_rule_term *)p->draft->terms.data + index;
}

static uint32_t rules_new_term(rules_parser *p, hlo_term_kind kind) {
    hlo_rule_term *t = rules_push(p, &p->draft->terms, sizeof *t);
    t->kind = (uint8_t)kind;
    t->slot = -1;
    p->draft->size++;
    return p->draft->terms.count - 1;
}

/* True, after reporting an error, if `size` more terms exceed MAX_TERMS. */
static bool rules_is_full(rules_parser *p, span where, uint32_t size) {
    if (p->draft->size + size <= MAX_TERMS) return false;
    if (!p->draft->full)
        rules_fault(p, where, "the definitions expand to more than %d terms", MAX_TERMS);
    p->draft->full = true;
    return true;
}

char hlo_rule_letter(const hlo_rule_function *function, uint32_t index) {
    const char *params = function->params;
    const size_t length = strlen(params);
    const bool many = length && params[length - 1] == '*';
    if (many && index >= length - 2) return params[length - 2];
    return index < length ? params[index] : 0;
}

/* ------------------------------------------------------------------------------------ variables */

/* Finds the argument of a let's parameter; NULL if `name` is not a parameter. */
static const node *rules_parameter(rules_parser *p, const let_frame *f, const char *name,
                                   uint32_t *out_index) {
    if (!f) return NULL;
    const node *arg = f->args;
    *out_index = 0;
    for (const node *v = f->let->params; v; v = v->next, arg = arg->next, ++*out_index)
        if (rules_name(p, v->name) == name) return arg;
    return NULL;
}

static int16_t add_slot(rules_parser *p, span where, const char *name, int holds) {
    struct rules_draft *d = p->draft;
    if (d->slot_count == HLO_RULE_SLOTS) {
        rules_fault(p, where, "too many variables");
        return 0;
    }
    d->chain[d->slot_count] = false;
    d->holds[d->slot_count] = (int8_t)holds;
    d->slots[d->slot_count] = name;
    return (int16_t)d->slot_count++;
}

/* Finds the slot of a variable that holds a value or, by `holds`, an attribute. With `bind`, adds a
 * slot if it is missing. */
static int16_t rules_slot_holding(rules_parser *p, const let_frame *f, span where, bool bind,
                                  int holds) {
    struct rules_draft *d = p->draft;
    const char *name = rules_name(p, where);
    uint32_t index;
    const node *arg = rules_parameter(p, f, name, &index);
    if (arg) {
        if (arg->kind == NODE_VAR) return rules_slot_holding(p, f->caller, arg->name, bind, holds);
        rules_fault(p, arg->where, "argument %s of this definition must be a variable", name);
        return 0;
    }
    if (f) {
        char *local = hlo_arena_format(p->owner->arena, "%s'%u", name, f->number);
        name = hlo_intern_string(p->owner, local);
    }
    for (uint32_t i = 0; i < d->slot_count; i++) {
        if (d->slots[i] != name) continue;
        if (d->holds[i] != holds)
            rules_fault(p, where, "%s is bound to %s", name,
                        d->holds[i] == HOLDS_VALUE ? "a value and cannot be used as an attribute"
                        : holds == HOLDS_VALUE     ? "an attribute and cannot be used as a value"
                                                   : "an attribute of another kind");
        if (d->acting && !bind && d->partial.has[i])
            rules_fault(p, where, "not every alternative of the pattern binds %s", name);
        return (int16_t)i;
    }
    if (bind) return add_slot(p, where, name, holds);
    rules_fault(p, where, "%s is not bound by the pattern", name);
    return 0;
}

static int16_t rules_slot(rules_parser *p, const let_frame *f, span where, bool bind) {
    return rules_slot_holding(p, f, where, bind, HOLDS_VALUE);
}

/* Adds the variables that every match of the pattern binds to `always`, and the variables that at
 * least one match binds to `ever`. */
static void add_bound(rules_parser *p, uint32_t index, slot_set *always, slot_set *ever) {
    const hlo_rule_term t = *rules_term_at(p, index);
    const uint32_t *args = t.arg_count ? (const uint32_t *)p->draft->args.data + t.first_arg : NULL;
    if (t.slot >= 0) always->has[t.slot] = ever->has[t.slot] = true;
    for (uint32_t i = 0; i < t.attr_count; i++) {
        const int16_t slot = ((const hlo_rule_attr *)p->draft->attrs.data)[t.first_attr + i].slot;
        if (slot >= 0) always->has[slot] = ever->has[slot] = true;
    }
    if (t.kind != HLO_TERM_ALT) {
        const uint32_t patterns = t.kind == HLO_TERM_DEFINE ? 1 : t.arg_count;
        for (uint32_t i = 0; i < patterns; i++) add_bound(p, args[i], always, ever);
        return;
    }
    uint8_t times[HLO_RULE_SLOTS] = {0};
    for (uint32_t i = 0; i < t.arg_count; i++) {
        slot_set one = {{false}};
        add_bound(p, args[i], &one, ever);
        for (uint32_t s = 0; s < p->draft->slot_count; s++) times[s] += one.has[s];
    }
    for (uint32_t s = 0; s < p->draft->slot_count; s++) always->has[s] |= times[s] == t.arg_count;
}

/* ---------------------------------------------------------------------------------------- terms */

static uint32_t rules_lower(rules_parser *p, const let_frame *f, const node *n, term_mode m);

/* Compiles a list of arguments into adjacent rows of the table. */
static uint32_t rules_push_args(rules_parser *p, const let_frame *f, const node *list, term_mode m,
                                uint32_t *out_count) {
    uint32_t indices[HLO_RULE_ARGS], count = 0;
    for (const node *a = list; a; a = a->next) {
        if (a->kind == NODE_REST) continue;
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, a->where, "too many arguments");
            break;
        }
        indices[count++] = rules_lower(p, f, a, m);
    }
    *out_count = count;
    return rules_push_all(p, &p->draft->args, indices, count, sizeof *indices);
}

static int64_t whole_number(rules_parser *p, const attr_node *a, double number) {
    const double most = 0x1p53;
    if (number >= -most && number <= most && number == (double)(int64_t)number)
        return (int64_t)number;
    rules_fault(p, a->name, "%s: %g is not an integer, or is too large", rules_name(p, a->name),
                number);
    return 0;
}

static void lower_attr(rules_parser *p, const let_frame *f, const attr_node *a, hlo_op op,
                       term_mode m) {
    hlo_attr_id id = HLO_ATTR_COUNT;
    if (a->kind != HLO_RULE_FROM) {
        const char *name = rules_name(p, a->name);
        id = hlo_attr_find(name, strlen(name));
        const bool has = id != HLO_ATTR_INVALID && hlo_op_allows(op, id);
        const hlo_attr_kind kind = has ? hlo_attrs_info[id].kind : HLO_KIND_RAW;
        /* A variable fits an attribute of any kind. */
        const bool fits = a->kind == HLO_RULE_INT    ? kind == HLO_KIND_INT || kind == HLO_KIND_BOOL
                          : a->kind == HLO_RULE_INTS ? kind == HLO_KIND_INTS
                          : a->kind == HLO_RULE_WORD
                              ? kind == HLO_KIND_WORD || kind == HLO_KIND_STRING
                              : true;
        if (!has)
            rules_fault(p, a->name, "%s has no attribute '%s'", hlo_ops[op].name, name);
        else if (!fits)
            rules_fault(p, a->name, "'%s' is not %s", name,
                        a->kind == HLO_RULE_INT    ? "a number"
                        : a->kind == HLO_RULE_INTS ? "a list of numbers"
                                                   : "a word");
    } else if (m == PATTERN) {
        rules_fault(p, a->word, "'from' is allowed only on the right-hand side");
    }
    uint32_t first = p->draft->ints.count, count = 0;
    for (const ints *i = a->ints; i; i = i->next, count++)
        *(int64_t *)rules_push(p, &p->draft->ints, sizeof(int64_t)) = whole_number(p, a, i->value);
    int16_t slot = -1;
    if (a->kind == HLO_RULE_FROM) slot = rules_slot(p, f, a->word, m == PATTERN);
    if (a->kind == HLO_RULE_SLOT && id < HLO_ATTR_COUNT)
        slot = rules_slot_holding(p, f, a->word, m == PATTERN, (int)hlo_attrs_info[id].kind);
    hlo_rule_attr *attr = rules_push(p, &p->draft->attrs, sizeof *attr);
    attr->id = (uint8_t)id;
    attr->kind = (uint8_t)a->kind;
    attr->slot = slot;
    attr->number = a->kind == HLO_RULE_INT ? whole_number(p, a, a->number) : 0;
    attr->first_int = first;
    attr->int_count = count;
    if (a->kind == HLO_RULE_WORD) attr->word = rules_name(p, a->word);
}

/* Returns what a letter of hlo_rule_function.params requires of an argument, or NULL if `t`
 * satisfies it. Checks only what is known before binding; hlo_rule_fits() checks the rest. */
static const char *wanted(rules_parser *p, const hlo_rule_term *t, char letter) {
    switch (letter) {
    case 'N': return t->kind == HLO_TERM_NUMBER ? NULL : "a number";
    case 'S':
        return t->kind == HLO_TERM_NUMBER && (t->number == 0 || t->number == 1) ? NULL : "0 or 1";
    case 'W': return t->kind == HLO_TERM_WORD ? NULL : "a word";
    case 'C': return t->kind == HLO_TERM_VAR && p->draft->chain[t->slot] ? NULL : "a chain";
    default: return (t->kind != HLO_TERM_NUMBER && t->kind != HLO_TERM_WORD) ? NULL : "a value";
    }
}

static void rules_check_call(rules_parser *p, span where, const hlo_rule_function *fn,
                             uint32_t first, uint32_t count) {
    size_t length = strlen(fn->params);
    bool many = length && fn->params[length - 1] == '*';
    uint32_t least = (uint32_t)(many ? length - 2 : length);
    if (count < least || (!many && count > least)) {
        rules_fault(p, where, "%s takes %s%u arguments", fn->name, many ? "at least " : "", least);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t term = ((uint32_t *)p->draft->args.data)[first + i];
        const char *want = wanted(p, rules_term_at(p, term), hlo_rule_letter(fn, i));
        if (want) rules_fault(p, where, "argument %u of %s must be %s", i + 1, fn->name, want);
    }
}

static uint32_t lower_function(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
    const char *name = rules_name(p, n->name);
    int code = rules_find_function(p, name);
    if (code < 0 || m == PATTERN || p->words->functions[code].kind != HLO_FUNCTION_MAKE) {
        rules_fault(p, n->name,
                    m == PATTERN ? "'%s' is neither an opcode nor a definition"
                                 : "'%s' is neither an opcode nor a builder",
                    name);
        return rules_new_term(p, HLO_TERM_ANY);
    }
    uint32_t count, first = rules_push_args(p, f, n->args, ARGUMENT, &count);
    rules_check_call(p, n->where, &p->words->functions[code], first, count);
    uint32_t index = rules_new_term(p, HLO_TERM_FUNCTION);
    hlo_rule_term *t = rules_term_at(p, index);
    t->code = (uint16_t)code;
    t->first_arg = first;
    t->arg_count = count;
    return index;
}

static uint32_t lower_wrapped(rules_parser *p, const let_frame *f, const node *n,
                              hlo_term_kind kind, term_mode m) {
    uint32_t count, first = rules_push_args(p, f, n->args, m, &count);
    uint32_t index = rules_new_term(p, kind);
    rules_term_at(p, index)->first_arg = first;
    rules_term_at(p, index)->arg_count = count;
    return index;
}

static uint32_t lower_define(rules_parser *p, const let_frame *f, const node *n) {
    uint32_t indices[2] = {rules_lower(p, f, n->args, PATTERN)};
    indices[1] = rules_lower(p, f, n->args->next, TEMPLATE);
    int16_t slot = rules_slot(p, f, n->name, true);
    uint32_t first = rules_push_all(p, &p->draft->args, indices, 2, sizeof *indices);
    uint32_t index = rules_new_term(p, HLO_TERM_DEFINE);
    hlo_rule_term *t = rules_term_at(p, index);
    t->slot = slot;
    t->first_arg = first;
    t->arg_count = 2;
    return index;
}

static uint32_t lower_result(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
    static const char *const names[] = {"out", "aux", "amax"};
    int which = rules_find_word(names, 3, rules_name(p, n->field));
    if (which < 0) rules_fault(p, n->field, "unknown result of a call: expected out, aux or amax");
    uint32_t index = rules_new_term(p, HLO_TERM_RESULT);
    int16_t slot = rules_slot(p, f, n->name, m == PATTERN);
    rules_term_at(p, index)->slot = slot;
    rules_term_at(p, index)->code = (uint16_t)(which < 0 ? 0 : which);
    return index;
}

static uint32_t lower_apply(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
    const let_node *let = rules_find_let(p, n->name);
    if (let) {
        if (m != PATTERN) {
            rules_fault(p, n->where, "a definition may be used only in a pattern");
            return rules_new_term(p, HLO_TERM_ANY);
        }
        uint32_t want = 0, have = 0;
        for (const node *v = let->params; v; v = v->next) want++;
        for (const node *v = n->args; v; v = v->next) have++;
        if (want != have || p->draft->depth == MAX_DEPTH) {
            if (want != have)
                rules_fault(p, n->where, "this definition takes %u arguments, found %u", want,
                            have);
            else
                rules_fault(p, n->where, "definitions are nested too deeply");
            return rules_new_term(p, HLO_TERM_ANY);
        }
        if (rules_is_full(p, n->where, 1)) return rules_new_term(p, HLO_TERM_ANY);
        let_frame inner = {.caller = f,
                           .let = let,
                           .args = n->args,
                           .made = rules_new(p, have * sizeof(shared_term)),
                           .number = ++p->draft->expansions};
        p->draft->depth++;
        uint32_t index = rules_lower(p, &inner, let->body, m);
        p->draft->depth--;
        return index;
    }
    static const char *const inferences[] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) #infer,
#include "ir/table/op.def"
#undef HLO_OP
    };
    const char *name = rules_name(p, n->name);
    hlo_op op = hlo_op_find(name, strlen(name));
    if (op != HLO_OP_INVALID) {
        const bool needs_shape =
            !strcmp(inferences[op], "GIVEN") || !strcmp(inferences[op], "CONVERT");
        uint32_t count, first = rules_push_args(p, f, n->args, m, &count);
        bool rest = false;
        for (const node *a = n->args; a; a = a->next) rest |= a->kind == NODE_REST;
        if (rest && m != PATTERN) rules_fault(p, n->where, "'...' is allowed only in a pattern");
        if ((count < hlo_ops[op].min_operands && !rest) ||
            (hlo_ops[op].max_operands != HLO_ANY && count > hlo_ops[op].max_operands))
            rules_fault(p, n->where, "%s does not accept %u operands", hlo_ops[op].name, count);
        if (m != PATTERN && (count ? needs_shape && !n->shape.last : !n->like))
            rules_fault(p, n->where, "the shape of %s cannot be inferred: specify `like` or a type",
                        hlo_ops[op].name);
        uint32_t attrs = p->draft->attrs.count, attr_count = 0;
        for (const attr_node *a = n->attrs; a; a = a->next, attr_count++)
            lower_attr(p, f, a, op, m);
        if (attr_count > HLO_RULE_ARGS) rules_fault(p, n->where, "too many attributes");
        uint32_t index = rules_new_term(p, HLO_TERM_OP);
        hlo_rule_term *t = rules_term_at(p, index);
        t->code = (uint16_t)op;
        t->rest = rest;
        t->anywhere = rest && n->args->kind == NODE_REST && count;
        t->first_arg = first;
        t->arg_count = count;
        t->first_attr = attrs;
        t->attr_count = attr_count;
        return index;
    }
    return lower_function(p, f, n, m);
}

static uint32_t lower_var(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
    uint32_t index;
    const node *arg = rules_parameter(p, f, rules_name(p, n->name), &index);
    if (arg) {
        /* Uses of a parameter that add nothing to the argument's pattern share one term. */
        struct rules_draft *d = p->draft;
        bool apart = d->apart;
        d->apart |= m != PATTERN || n->shape.last || n->bind.last;
        bool shares = !d->apart;
        shared_term *made = &f->made[index];
        uint32_t number = made->term, before = d->size;
        if (shares && made->size && !rules_is_full(p, n->where, made->size))
            d->size += made->size;
        else
            number = rules_lower(p, f->caller, arg, m);
        d->apart = apart;
        if (shares) *made = (shared_term){.term = number, .size = d->size - before};
        return number;
    }
    int16_t slot = rules_slot(p, f, n->name, m == PATTERN);
    index = rules_new_term(p, HLO_TERM_VAR);
    rules_term_at(p, index)->slot = slot;
    return index;
}

/* The leaves: their terms, the modes in which they are allowed, and the error in other modes. */
static const struct {
    uint8_t term;
    bool allowed[ARGUMENT + 1];
    const char *fault;
} leaves[] = {
    [NODE_ANY] = {HLO_TERM_ANY, {[PATTERN] = true}, "'_' is allowed only in a pattern"},
    [NODE_NONE] = {HLO_TERM_NONE,
                   {[TEMPLATE] = true, [ARGUMENT] = true},
                   "'none' is not allowed in a pattern"},
    [NODE_REST] = {HLO_TERM_NONE, {0}, "'...' is allowed only among the operands of an opcode"},
    [NODE_NUMBER] = {HLO_TERM_NUMBER,
                     {[ARGUMENT] = true},
                     "a number is allowed only as an argument"},
    [NODE_WORD] = {HLO_TERM_WORD, {[ARGUMENT] = true}, "a word is allowed only as an argument"},
    [NODE_CONSTANT] = {HLO_TERM_CONSTANT, {true, true, true}, NULL}};

/* Compiles a node. `f` is NULL outside of lets. */
static uint32_t rules_lower(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
    uint32_t index = 0;
    bool pattern = m == PATTERN;
    switch (n->kind) {
    case NODE_ANY:
    case NODE_NONE:
    case NODE_REST:
    case NODE_NUMBER:
    case NODE_WORD:
    case NODE_CONSTANT:
        if (!leaves[n->kind].allowed[m]) rules_fault(p, n->where, "%s", leaves[n->kind].fault);
        index = rules_new_term(p, (hlo_term_kind)leaves[n->kind].term);
        rules_term_at(p, index)->number = n->number;
        if (n->kind == NODE_WORD) rules_term_at(p, index)->word = rules_name(p, n->name);
        break;
    case NODE_VAR: index = lower_var(p, f, n, m); break;
    case NODE_RESULT: index = lower_result(p, f, n, m); break;
    case NODE_APPLY: index = lower_apply(p, f, n, m); break;
    case NODE_SPLAT: index = lower_wrapped(p, f, n, HLO_TERM_SPLAT, m); break;
    case NODE_CHAIN: index = lower_wrapped(p, f, n, HLO_TERM_CHAIN, m); break;
    case NODE_CHAIN1: index = lower_wrapped(p, f, n, HLO_TERM_CHAIN1, m); break;
    case NODE_ALT: index = lower_wrapped(p, f, n, HLO_TERM_ALT, m); break;
    case NODE_DEFINE: index = lower_define(p, f, n); break;
    }
    if (!pattern && (n->kind == NODE_CHAIN || n->kind == NODE_CHAIN1 || n->kind == NODE_ALT ||
                     n->kind == NODE_DEFINE))
        rules_fault(p, n->where, "a pattern is not allowed on the right-hand side");
    if (!pattern && (n->kind == NODE_SPLAT || n->kind == NODE_CONSTANT) && !n->like)
        rules_fault(p, n->where, "specify the shape with `like %%x`");
    if (n->shape.last) {
        const char *name = rules_name(p, n->shape);
        uint8_t kind;
        uint16_t code = 0;
        if (n->like) {
            kind = HLO_SHAPE_LIKE;
            code = (uint16_t)rules_slot(p, f, n->shape, false);
            if (m == PATTERN)
                rules_fault(p, n->shape, "'like' is allowed only on the right-hand side");
        } else if (hlo_type_find(name, strlen(name)) != HLO_TYPE_INVALID) {
            const hlo_type type = hlo_type_find(name, strlen(name));
            kind = HLO_SHAPE_TYPE;
            code = (uint16_t)type;
            if (!hlo_types[type].bits)
                rules_fault(p, n->shape, "'%s' is not an element type", name);
        } else {
            int function = rules_find_function(p, name);
            kind = HLO_SHAPE_IS;
            const hlo_rule_function *fn = function < 0 ? NULL : &p->words->functions[function];
            if (!fn || m != PATTERN || fn->kind != HLO_FUNCTION_TEST ||
                (strcmp(fn->params, "V") != 0 && strcmp(fn->params, "A") != 0))
                rules_fault(p, n->shape, "'%s' is neither a type nor a test of one value", name);
            else
                code = (uint16_t)function;
        }
        hlo_rule_term *t = rules_term_at(p, index);
        if (t->shape_kind) rules_fault(p, n->shape, "a value has two shapes");
        t->shape_kind = kind;
        t->shape_code = code;
    }
    if (n->bind.last) {
        int16_t slot = rules_slot(p, f, n->bind, pattern);
        if (!pattern) rules_fault(p, n->bind, "a pattern is not allowed on the right-hand side");
        if (rules_term_at(p, index)->slot >= 0)
            rules_fault(p, n->bind, "the value already has a name");
        rules_term_at(p, index)->slot = slot;
        if (n->kind == NODE_CHAIN || n->kind == NODE_CHAIN1) p->draft->chain[slot] = true;
    }
    return index;
}

/* ---------------------------------------------------------------------------------------- rules */

void rules_let(rules_parser *p, span name, node *params, node *body) {
    const char *text = rules_name(p, name);
    if (rules_find_let(p, name)) rules_fault(p, name, "'%s' is already defined", text);
    if (hlo_op_find(text, strlen(text)) != HLO_OP_INVALID || rules_find_function(p, text) >= 0)
        rules_fault(p, name, "'%s' is an opcode or a function", text);
    let_node *let = rules_new(p, sizeof *let);
    *let = (let_node){.next = p->lets, .name = name, .params = params, .body = body};
    p->lets = let;
}

static int reason_code(rules_parser *p, span name) {
    const char *text = rules_name(p, name);
    int reason = rules_find_word(p->words->reasons, p->words->reason_count, text);
    if (reason < 0) rules_fault(p, name, "unknown reason '%s'", text);
    return reason < 0 ? 0 : reason;
}

void rules_phase(rules_parser *p, span name, span measure) {
    struct rules_draft *d = p->draft;
    d->phase = rules_name(p, name);
    d->measure = rules_name(p, measure);
    int code = rules_find_function(p, d->measure);
    if (code < 0 || p->words->functions[code].kind != HLO_FUNCTION_MEASURE)
        rules_fault(p, measure, "unknown measure '%s'", d->measure);
    else
        d->measure_code = (uint16_t)code;
}

/* Compiles an action. `root`: the slot that a bare term replaces. */
static void lower_action(rules_parser *p, const action_node *a, int16_t root,
                         hlo_rule_action *out) {
    *out = (hlo_rule_action){.kind = (uint8_t)a->kind, .slot = -1, .operand = -1};
    switch (a->kind) {
    case HLO_ACTION_REPLACE:
        out->slot = a->target.last ? rules_slot(p, NULL, a->target, false) : root;
        out->term = rules_lower(p, NULL, a->value, TEMPLATE);
        break;
    case HLO_ACTION_LET:
        out->term = rules_lower(p, NULL, a->value, TEMPLATE);
        out->slot = rules_slot(p, NULL, a->target, true);
        break;
    case HLO_ACTION_OPERAND:
        out->slot = rules_slot(p, NULL, a->target, false);
        out->operand = rules_slot(p, NULL, a->operand, false);
        out->term = rules_lower(p, NULL, a->value, TEMPLATE);
        break;
    case HLO_ACTION_CALL:
        out->operand = rules_slot(p, NULL, a->operand, false);
        hlo_rule_set sets[HLO_RULE_ARGS];
        uint32_t count = 0;
        for (const set_node *s = a->sets; s; s = s->next) {
            if (count == HLO_RULE_ARGS) {
                rules_fault(p, s->field, "too many fields");
                break;
            }
            const char *name = rules_name(p, s->field);
            int field = rules_find_word(p->words->fields, p->words->field_count, name);
            if (field < 0) rules_fault(p, s->field, "unknown matmul field '%s'", name);
            sets[count++] = (hlo_rule_set){.field = (uint16_t)(field < 0 ? 0 : field),
                                           .add = s->add,
                                           .term = rules_lower(p, NULL, s->value, ARGUMENT)};
        }
        out->first_set = rules_push_all(p, &p->draft->sets, sets, count, sizeof *sets);
        out->set_count = count;
        if (a->target.last) out->slot = rules_slot(p, NULL, a->target, true);
        break;
    case HLO_ACTION_REMARK:
        out->reason = (uint16_t)reason_code(p, a->reason);
        if (a->operand.last) out->operand = rules_slot(p, NULL, a->operand, false);
        break;
    }
}

static int16_t lower_roots(rules_parser *p, const root_node *roots) {
    hlo_rule_root lowered[HLO_RULE_ARGS] = {{0}};
    uint32_t count = 0;
    for (const root_node *r = roots; r; r = r->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, r->pattern->where, "too many roots");
            break;
        }
        uint32_t index = rules_lower(p, NULL, r->pattern, PATTERN);
        if (rules_term_at(p, index)->slot < 0) {
            const int16_t slot =
                add_slot(p, r->pattern->where, hlo_intern_string(p->owner, "%root"), HOLDS_VALUE);
            rules_term_at(p, index)->slot = slot;
        }
        lowered[count++] = (hlo_rule_root){.term = index, .optional = r->optional};
    }
    const int16_t first = rules_term_at(p, lowered[0].term)->slot;
    slot_set always = {{false}}, ever = {{false}};
    add_bound(p, lowered[0].term, &always, &ever);
    for (uint32_t s = 0; s < HLO_RULE_SLOTS; s++)
        p->draft->partial.has[s] = ever.has[s] && !always.has[s];
    rules_push_all(p, &p->draft->roots, lowered, count, sizeof *lowered);
    return first;
}

void rules_rule(rules_parser *p, span name, span subject, root_node *roots, guard_node *guards,
                action_node *actions, span example) {
    struct rules_draft *d = p->draft;
    d->slot_count = d->expansions = d->depth = 0;
    d->acting = false;
    if (!d->phase) rules_fault(p, name, "a rule must be in a phase");
    hlo_rule rule = {.name = rules_name(p, name),
                     .phase = d->phase,
                     .measure = d->measure,
                     .measure_code = d->measure_code,
                     .subject = -1};
    rule.example = example.last ? rules_name(p, example) : NULL;
    rule.offset = (uint32_t)name.first;
    while (p->counted < name.first) p->lines += p->owner->source[p->counted++] == '\n';
    rule.line = p->lines + 1;

    rule.first_root = d->roots.count;
    rule.root = lower_roots(p, roots);
    rule.root_count = d->roots.count - rule.first_root;
    rule.first_guard = d->guards.count;
    for (const guard_node *g = guards; g; g = g->next) {
        const char *called = rules_name(p, g->call->name);
        int code = rules_find_function(p, called);
        uint32_t count, first = rules_push_args(p, NULL, g->call->args, ARGUMENT, &count);
        if (code < 0 || p->words->functions[code].kind != HLO_FUNCTION_TEST) {
            rules_fault(p, g->call->name, "unknown test '%s'", called);
            code = 0;
        } else {
            rules_check_call(p, g->call->where, &p->words->functions[code], first, count);
        }
        uint16_t reason = g->reason.last ? (uint16_t)reason_code(p, g->reason) : HLO_RULE_NO_REASON;
        int16_t at = g->at.last ? rules_slot(p, NULL, g->at, false) : -1;
        hlo_rule_guard *guard = rules_push(p, &p->draft->guards, sizeof *guard);
        *guard = (hlo_rule_guard){.negate = g->negate,
                                  .function = (uint16_t)code,
                                  .reason = reason,
                                  .at = at,
                                  .arg_count = count,
                                  .first_arg = first};
    }
    rule.guard_count = d->guards.count - rule.first_guard;
    if (subject.last) rule.subject = rules_slot(p, NULL, subject, false);

    d->acting = true;
    hlo_rule_action lowered[HLO_RULE_ARGS];
    uint32_t count = 0;
    bool remark = false;
    for (const action_node *a = actions; a; a = a->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, name, "too many actions");
            break;
        }
        lower_action(p, a, rule.root, &lowered[count++]);
        remark |= a->kind == HLO_ACTION_REMARK;
    }
    if (remark && (count > 1 || rule.subject < 0))
        rules_fault(p, name, "a remark must be the only action of a rule `for` a matmul");
    if (!remark && !example.last) rules_fault(p, name, "a rule requires an example");
    rule.first_action = rules_push_all(p, &d->actions, lowered, count, sizeof *lowered);
    rule.action_count = count;

    rule.slot_count = (uint16_t)d->slot_count;
    rule.slots = hlo_arena_copy(p->owner->arena, d->slots, d->slot_count * sizeof d->slots[0]);
    for (uint32_t i = 0; i < d->rules.count; i++)
        if (((hlo_rule *)d->rules.data)[i].name == rule.name)
            rules_fault(p, name, "rule '%s' is already defined", rule.name);
    *(hlo_rule *)rules_push(p, &d->rules, sizeof rule) = rule;
}

void rules_begin(rules_parser *p) {
    p->draft = rules_new(p, sizeof *p->draft);
}

const hlo_rules *rules_take(rules_parser *p) {
    hlo_rules *rules = rules_new(p, sizeof *rules);
    rules->file = p->owner->file;
#define TABLE(name)                                                                                \
    rules->name##s = p->draft->name##s.data;                                                       \
    rules->name##_count = p->draft->name##s.count;
    HLO_RULE_TABLES(TABLE)
#undef TABLE
    return rules;
}
