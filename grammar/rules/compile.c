/* From the tree of a `.rules` file to checked tables. */
#include "grammar/rules/rules.h"

#include <stdarg.h>
#include <string.h>

#include "grammar/rules/ast.h"
/* In this order: the scanner's header uses the parser's types. */
/* clang-format off */
#include "rules.tab.h"
#include "rules.lex.h"
/* clang-format on */

/* MAX_TERMS: of a file, as often as patterns come to them, above which no definition is expanded
 * any more: what expands into itself twice doubles at every level. */
enum { MAX_DEPTH = 64, MAX_TERMS = 1 << 16 };

typedef struct buffer {
    void *data;
    uint32_t count, capacity;
} buffer;

typedef struct slot_set {
    bool has[HLO_RULE_SLOTS];
} slot_set;

struct rules_draft {
    buffer terms, args, attrs, ints, guards, actions, sets, roots, rules;
    const char *phase, *measure;
    uint16_t measure_code;
    /* of the rule at hand */
    const char *slots[HLO_RULE_SLOTS];
    bool chain[HLO_RULE_SLOTS];
    int8_t holds[HLO_RULE_SLOTS]; /* HOLDS_VALUE, or the hlo_attr_kind of an attribute */
    slot_set partial; /* the variables that only some alternatives of the first root bind */
    bool acting;      /* these are of no use in actions, which are at hand */
    uint32_t slot_count, expansions, depth;
    uint32_t size; /* terms, as often as a pattern comes to them */
    bool full;     /* MAX_TERMS is reached, and that is told */
    bool apart;    /* arguments are made once more: something is added to one of their terms */
};

enum { HOLDS_VALUE = -1 };

/* What an argument of a let has become, for all places where its parameter stands. */
typedef struct shared {
    uint32_t term, size; /* size 0: nothing yet */
} shared;

/* Where a let's body is being copied to: its parameters stand for nodes of the caller's frame. */
typedef struct frame {
    const struct frame *caller;
    const let_node *let;
    const node *args;
    shared *made; /* by argument */
    uint32_t number;
} frame;

typedef enum mode { PATTERN, TEMPLATE, ARGUMENT } mode;

void rules_fault(rules_parser *p, span where, const char *format, ...) {
    if (!hlo_error_budget_take(&p->faults, (uint32_t)where.first)) return;
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(p->owner, p->sink, HLO_ERROR, where.first,
                   where.last > where.first ? where.last - where.first : 1, format, args);
    va_end(args);
}

void rules_comment(rules_parser *p, span where) {
    if (!p->comment.last) p->comment.first = where.first;
    p->comment.last = where.last;
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

static const char *name_of(rules_parser *p, span s) {
    return hlo_intern(p->owner, p->owner->source + s.first, s.last - s.first);
}

static void *push(rules_parser *p, buffer *b, size_t size) {
    if (b->count == b->capacity) {
        uint32_t capacity = b->capacity ? 2 * b->capacity : 64;
        void *data = hlo_arena_array(p->owner->arena, capacity, size);
        if (b->count) memcpy(data, b->data, b->count * size);
        b->data = data;
        b->capacity = capacity;
    }
    void *item = (char *)b->data + b->count++ * size;
    memset(item, 0, size);
    return item;
}

/* The comment without its `#`s, a line each. */
static const char *comment_text(rules_parser *p, span s) {
    if (!s.last) return "";
    char *text = hlo_arena_alloc(p->owner->arena, s.last - s.first + 2), *out = text;
    const char *in = p->owner->source + s.first, *end = p->owner->source + s.last;
    while (in < end) {
        while (in < end && (*in == ' ' || *in == '\t' || *in == '\r')) in++;
        if (in < end && *in == '#') in++;
        if (in < end && *in == ' ') in++;
        while (in < end && *in != '\n') *out++ = *in++;
        *out++ = '\n';
        in++;
    }
    *out = 0;
    return text;
}

static int find_function(const rules_parser *p, const char *name) {
    for (uint32_t i = 0; i < p->words->function_count; i++)
        if (!strcmp(p->words->functions[i].name, name)) return (int)i;
    return -1;
}

static int find_word(const char *const *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(list[i], name)) return (int)i;
    return -1;
}

static const let_node *find_let(rules_parser *p, span name) {
    const char *text = name_of(p, name);
    for (const let_node *l = p->lets; l; l = l->next)
        if (name_of(p, l->name) == text) return l;
    return NULL;
}

/* ------------------------------------------------------------------------------------ variables */

/* What the parameter `name` of the let at hand stands for; NULL when it is no parameter. */
static const node *parameter(rules_parser *p, const frame *f, const char *name,
                             uint32_t *out_index) {
    if (!f) return NULL;
    const node *arg = f->args;
    *out_index = 0;
    for (const node *v = f->let->params; v; v = v->next, arg = arg->next, ++*out_index)
        if (name_of(p, v->name) == name) return arg;
    return NULL;
}

static void check_holds(rules_parser *p, span where, const char *name, int holds, int wanted) {
    if (holds == wanted) return;
    rules_fault(p, where, "%s stands for %s", name,
                holds == HOLDS_VALUE    ? "a value, not for an attribute"
                : wanted == HOLDS_VALUE ? "an attribute, not for a value"
                                        : "an attribute of another kind");
}

/* The slot of a variable that holds that; with `bind`, a new one when there is none. */
static int16_t slot_holding(rules_parser *p, const frame *f, span where, bool bind, int holds) {
    struct rules_draft *d = p->draft;
    const char *name = name_of(p, where);
    uint32_t index;
    const node *arg = parameter(p, f, name, &index);
    if (arg) {
        if (arg->kind == NODE_VAR) return slot_holding(p, f->caller, arg->name, bind, holds);
        rules_fault(p, arg->where, "a variable is needed for %s of this definition", name);
        return 0;
    }
    if (f) {
        char *local = hlo_arena_format(p->owner->arena, "%s'%u", name, f->number);
        name = hlo_intern_string(p->owner, local);
    }
    for (uint32_t i = 0; i < d->slot_count; i++) {
        if (d->slots[i] != name) continue;
        check_holds(p, where, name, d->holds[i], holds);
        if (d->acting && !bind && d->partial.has[i])
            rules_fault(p, where, "not every alternative of the pattern binds %s", name);
        return (int16_t)i;
    }
    if (!bind)
        rules_fault(p, where, "%s is not bound by the pattern", name);
    else if (d->slot_count == HLO_RULE_SLOTS)
        rules_fault(p, where, "too many variables");
    if (!bind || d->slot_count == HLO_RULE_SLOTS) return 0;
    d->chain[d->slot_count] = false;
    d->holds[d->slot_count] = (int8_t)holds;
    d->slots[d->slot_count] = name;
    return (int16_t)d->slot_count++;
}

static int16_t slot_of(rules_parser *p, const frame *f, span where, bool bind) {
    return slot_holding(p, f, where, bind, HOLDS_VALUE);
}

/* ---------------------------------------------------------------------------------------- terms */

static uint32_t lower(rules_parser *p, const frame *f, const node *n, mode m);

static hlo_rule_term *term_at(rules_parser *p, uint32_t index) {
    return (hlo_rule_term *)p->draft->terms.data + index;
}

static uint32_t new_term(rules_parser *p, hlo_term_kind kind) {
    hlo_rule_term *t = push(p, &p->draft->terms, sizeof *t);
    t->kind = (uint8_t)kind;
    t->slot = -1;
    p->draft->size++;
    return p->draft->terms.count - 1;
}

/* Whether there is no room for `size` terms more. */
static bool is_full(rules_parser *p, span where, uint32_t size) {
    if (p->draft->size + size <= MAX_TERMS) return false;
    if (!p->draft->full)
        rules_fault(p, where, "the definitions expand to more than %d terms", MAX_TERMS);
    p->draft->full = true;
    return true;
}

static uint32_t push_args(rules_parser *p, const frame *f, const node *list, mode m,
                          uint32_t *out_count) {
    uint32_t indices[HLO_RULE_ARGS], count = 0;
    for (const node *a = list; a && a->kind != NODE_REST; a = a->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, a->where, "too many arguments");
            break;
        }
        indices[count++] = lower(p, f, a, m);
    }
    uint32_t first = p->draft->args.count;
    for (uint32_t i = 0; i < count; i++)
        *(uint32_t *)push(p, &p->draft->args, sizeof(uint32_t)) = indices[i];
    *out_count = count;
    return first;
}

static bool has_rest(const node *n) {
    for (const node *a = n->args; a; a = a->next)
        if (a->kind == NODE_REST) return true;
    return false;
}

/* Whether an attribute of that kind is written so; anything may be written as a variable. */
static bool is_written_as(hlo_attr_kind kind, hlo_rule_attr_kind form) {
    switch (form) {
    case HLO_RULE_INT: return kind == HLO_KIND_INT || kind == HLO_KIND_BOOL;
    case HLO_RULE_INTS: return kind == HLO_KIND_INTS;
    case HLO_RULE_WORD: return kind == HLO_KIND_WORD || kind == HLO_KIND_STRING;
    case HLO_RULE_SLOT:
    case HLO_RULE_FROM: break;
    }
    return true;
}

static hlo_attr_id attr_named(rules_parser *p, const attr_node *a, hlo_op op) {
    const char *name = name_of(p, a->name);
    hlo_attr_id id = hlo_attr_find(name, strlen(name));
    if (id == HLO_ATTR_INVALID || !hlo_op_allows(op, id))
        rules_fault(p, a->name, "%s has no attribute '%s'", hlo_ops[op].name, name);
    else if (!is_written_as(hlo_attrs_info[id].kind, a->kind))
        rules_fault(p, a->name, "'%s' is not %s", name,
                    a->kind == HLO_RULE_INT    ? "a number"
                    : a->kind == HLO_RULE_INTS ? "a list of numbers"
                                               : "a word");
    return id;
}

static int64_t whole_number(rules_parser *p, const attr_node *a, double number) {
    const double most = 0x1p53;
    if (number >= -most && number <= most && number == (double)(int64_t)number)
        return (int64_t)number;
    rules_fault(p, a->name, "%s: %g is no whole number, or too large", name_of(p, a->name), number);
    return 0;
}

static void lower_attr(rules_parser *p, const frame *f, const attr_node *a, hlo_op op, mode m) {
    hlo_attr_id id = HLO_ATTR_COUNT;
    if (a->kind != HLO_RULE_FROM)
        id = attr_named(p, a, op);
    else if (m == PATTERN)
        rules_fault(p, a->word, "'from' belongs on the right-hand side");
    uint32_t first = p->draft->ints.count, count = 0;
    for (const ints *i = a->ints; i; i = i->next, count++)
        *(int64_t *)push(p, &p->draft->ints, sizeof(int64_t)) = whole_number(p, a, i->value);
    int16_t slot = -1;
    if (a->kind == HLO_RULE_FROM) slot = slot_of(p, f, a->word, m == PATTERN);
    if (a->kind == HLO_RULE_SLOT && id < HLO_ATTR_COUNT)
        slot = slot_holding(p, f, a->word, m == PATTERN, (int)hlo_attrs_info[id].kind);
    hlo_rule_attr *attr = push(p, &p->draft->attrs, sizeof *attr);
    attr->id = (uint8_t)id;
    attr->kind = (uint8_t)a->kind;
    attr->slot = slot;
    attr->number = a->kind == HLO_RULE_INT ? whole_number(p, a, a->number) : 0;
    attr->first_int = first;
    attr->int_count = count;
    if (a->kind == HLO_RULE_WORD) attr->word = name_of(p, a->word);
}

static bool needs_shape(hlo_op op) {
    static const char *const rules[] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) #infer,
#include "ir/table/op.def"
#undef HLO_OP
    };
    return !strcmp(rules[op], "GIVEN") || !strcmp(rules[op], "CONVERT");
}

static uint32_t lower_op(rules_parser *p, const frame *f, const node *n, hlo_op op, mode m) {
    uint32_t count, first = push_args(p, f, n->args, m, &count);
    bool rest = has_rest(n);
    if (rest && m != PATTERN) rules_fault(p, n->where, "'...' belongs in a pattern");
    if ((count < hlo_ops[op].min_operands && !rest) ||
        (hlo_ops[op].max_operands != HLO_ANY && count > hlo_ops[op].max_operands))
        rules_fault(p, n->where, "%s does not take %u operands", hlo_ops[op].name, count);
    if (m != PATTERN && (count ? needs_shape(op) && !n->shape.last : !n->like))
        rules_fault(p, n->where, "the shape of %s cannot be inferred: say `like` or a type",
                    hlo_ops[op].name);
    uint32_t attrs = p->draft->attrs.count, attr_count = 0;
    for (const attr_node *a = n->attrs; a; a = a->next, attr_count++) lower_attr(p, f, a, op, m);
    if (attr_count > HLO_RULE_ARGS) rules_fault(p, n->where, "too many attributes");
    uint32_t index = new_term(p, HLO_TERM_OP);
    hlo_rule_term *t = term_at(p, index);
    t->code = (uint16_t)op;
    t->rest = rest;
    t->first_arg = first;
    t->arg_count = count;
    t->first_attr = attrs;
    t->attr_count = attr_count;
    return index;
}

char hlo_rule_letter(const hlo_rule_function *function, uint32_t index) {
    const char *params = function->params;
    const size_t length = strlen(params);
    const bool many = length && params[length - 1] == '*';
    if (many && index >= length - 2) return params[length - 2];
    return index < length ? params[index] : 0;
}

static bool is_value(const hlo_rule_term *t) {
    return t->kind != HLO_TERM_NUMBER && t->kind != HLO_TERM_WORD;
}

/* What the letter asks of an argument; NULL: `t` may be one, as far as can be seen before it stands
 * for something (hlo_rule_fits() sees the rest). */
static const char *wanted(rules_parser *p, const hlo_rule_term *t, char letter) {
    switch (letter) {
    case 'N': return t->kind == HLO_TERM_NUMBER ? NULL : "a number";
    case 'S':
        return t->kind == HLO_TERM_NUMBER && (t->number == 0 || t->number == 1) ? NULL : "0 or 1";
    case 'W': return t->kind == HLO_TERM_WORD ? NULL : "a word";
    case 'C': return t->kind == HLO_TERM_VAR && p->draft->chain[t->slot] ? NULL : "a chain";
    default: return is_value(t) ? NULL : "a value";
    }
}

static void check_call(rules_parser *p, span where, const hlo_rule_function *fn, uint32_t first,
                       uint32_t count) {
    size_t length = strlen(fn->params);
    bool many = length && fn->params[length - 1] == '*';
    uint32_t least = (uint32_t)(many ? length - 2 : length);
    if (count < least || (!many && count > least)) {
        rules_fault(p, where, "%s takes %s%u arguments", fn->name, many ? "at least " : "", least);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t term = ((uint32_t *)p->draft->args.data)[first + i];
        const char *want = wanted(p, term_at(p, term), hlo_rule_letter(fn, i));
        if (want) rules_fault(p, where, "argument %u of %s must be %s", i + 1, fn->name, want);
    }
}

static uint32_t lower_function(rules_parser *p, const frame *f, const node *n, mode m) {
    const char *name = name_of(p, n->name);
    int code = find_function(p, name);
    if (code < 0 || m == PATTERN || p->words->functions[code].kind != HLO_FUNCTION_MAKE) {
        rules_fault(p, n->name,
                    m == PATTERN ? "'%s' is neither an opcode nor a definition"
                                 : "'%s' is neither an opcode nor a builder",
                    name);
        return new_term(p, HLO_TERM_ANY);
    }
    uint32_t count, first = push_args(p, f, n->args, ARGUMENT, &count);
    check_call(p, n->where, &p->words->functions[code], first, count);
    uint32_t index = new_term(p, HLO_TERM_FUNCTION);
    hlo_rule_term *t = term_at(p, index);
    t->code = (uint16_t)code;
    t->first_arg = first;
    t->arg_count = count;
    return index;
}

static uint32_t lower_let(rules_parser *p, const frame *f, const node *n, const let_node *let,
                          mode m) {
    if (m != PATTERN) {
        rules_fault(p, n->where, "a definition stands for a pattern");
        return new_term(p, HLO_TERM_ANY);
    }
    uint32_t want = 0, have = 0;
    for (const node *v = let->params; v; v = v->next) want++;
    for (const node *v = n->args; v; v = v->next) have++;
    if (want != have || p->draft->depth == MAX_DEPTH) {
        if (want != have)
            rules_fault(p, n->where, "this definition takes %u arguments, not %u", want, have);
        else
            rules_fault(p, n->where, "definitions within definitions go too deep");
        return new_term(p, HLO_TERM_ANY);
    }
    if (is_full(p, n->where, 1)) return new_term(p, HLO_TERM_ANY);
    frame inner = {.caller = f,
                   .let = let,
                   .args = n->args,
                   .made = rules_new(p, have * sizeof(shared)),
                   .number = ++p->draft->expansions};
    p->draft->depth++;
    uint32_t index = lower(p, &inner, let->body, m);
    p->draft->depth--;
    return index;
}

static uint32_t lower_wrapped(rules_parser *p, const frame *f, const node *n, hlo_term_kind kind,
                              mode m) {
    uint32_t count, first = push_args(p, f, n->args, m, &count);
    uint32_t index = new_term(p, kind);
    term_at(p, index)->first_arg = first;
    term_at(p, index)->arg_count = count;
    return index;
}

static uint32_t lower_define(rules_parser *p, const frame *f, const node *n) {
    uint32_t indices[2] = {lower(p, f, n->args, PATTERN)};
    indices[1] = lower(p, f, n->args->next, TEMPLATE);
    int16_t slot = slot_of(p, f, n->name, true);
    uint32_t first = p->draft->args.count;
    for (unsigned i = 0; i < 2; i++)
        *(uint32_t *)push(p, &p->draft->args, sizeof(uint32_t)) = indices[i];
    uint32_t index = new_term(p, HLO_TERM_DEFINE);
    hlo_rule_term *t = term_at(p, index);
    t->slot = slot;
    t->first_arg = first;
    t->arg_count = 2;
    return index;
}

static uint32_t lower_result(rules_parser *p, const frame *f, const node *n, mode m) {
    static const char *const names[] = {"out", "aux", "amax"};
    int which = find_word(names, 3, name_of(p, n->field));
    if (which < 0) rules_fault(p, n->field, "a call has the results out, aux and amax");
    uint32_t index = new_term(p, HLO_TERM_RESULT);
    int16_t slot = slot_of(p, f, n->name, m == PATTERN);
    term_at(p, index)->slot = slot;
    term_at(p, index)->code = (uint16_t)(which < 0 ? 0 : which);
    return index;
}

static bool is_test_of_one(const hlo_rule_function *fn) {
    return fn->kind == HLO_FUNCTION_TEST && (!strcmp(fn->params, "V") || !strcmp(fn->params, "A"));
}

static void lower_shape(rules_parser *p, const frame *f, const node *n, uint32_t index, mode m) {
    const char *name = name_of(p, n->shape);
    uint8_t kind;
    uint16_t code = 0;
    if (n->like) {
        kind = HLO_SHAPE_LIKE;
        code = (uint16_t)slot_of(p, f, n->shape, false);
        if (m == PATTERN) rules_fault(p, n->shape, "'like' belongs on the right-hand side");
    } else if (hlo_type_find(name, strlen(name)) != HLO_TYPE_INVALID) {
        const hlo_type type = hlo_type_find(name, strlen(name));
        kind = HLO_SHAPE_TYPE;
        code = (uint16_t)type;
        if (!hlo_types[type].bits) rules_fault(p, n->shape, "%s has no elements", name);
    } else {
        int function = find_function(p, name);
        kind = HLO_SHAPE_IS;
        if (function < 0 || m != PATTERN || !is_test_of_one(&p->words->functions[function]))
            rules_fault(p, n->shape, "'%s' is neither a type nor a test of one value", name);
        else
            code = (uint16_t)function;
    }
    hlo_rule_term *t = term_at(p, index);
    if (t->shape_kind) rules_fault(p, n->shape, "two shapes for one value");
    t->shape_kind = kind;
    t->shape_code = code;
}

static uint32_t lower_apply(rules_parser *p, const frame *f, const node *n, mode m) {
    const let_node *let = find_let(p, n->name);
    if (let) return lower_let(p, f, n, let, m);
    const char *name = name_of(p, n->name);
    hlo_op op = hlo_op_find(name, strlen(name));
    if (op != HLO_OP_INVALID) return lower_op(p, f, n, op, m);
    return lower_function(p, f, n, m);
}

/* A pattern is made once, for all the places of its parameter to which nothing is added. */
static uint32_t lower_parameter(rules_parser *p, const frame *f, const node *n, const node *arg,
                                shared *made, mode m) {
    struct rules_draft *d = p->draft;
    bool apart = d->apart;
    d->apart |= m != PATTERN || n->shape.last || n->bind.last;
    bool shares = !d->apart;
    uint32_t index = made->term, before = d->size;
    if (shares && made->size && !is_full(p, n->where, made->size))
        d->size += made->size;
    else
        index = lower(p, f->caller, arg, m);
    d->apart = apart;
    if (shares) *made = (shared){.term = index, .size = d->size - before};
    return index;
}

static uint32_t lower_var(rules_parser *p, const frame *f, const node *n, mode m) {
    uint32_t index;
    const node *arg = parameter(p, f, name_of(p, n->name), &index);
    if (arg) return lower_parameter(p, f, n, arg, &f->made[index], m);
    int16_t slot = slot_of(p, f, n->name, m == PATTERN);
    index = new_term(p, HLO_TERM_VAR);
    term_at(p, index)->slot = slot;
    return index;
}

static uint32_t lower_leaf(rules_parser *p, const node *n, hlo_term_kind kind, bool allowed) {
    if (!allowed) rules_fault(p, n->where, "this cannot stand here");
    uint32_t index = new_term(p, kind);
    term_at(p, index)->number = n->number;
    if (kind == HLO_TERM_WORD) term_at(p, index)->word = name_of(p, n->name);
    return index;
}

static uint32_t lower(rules_parser *p, const frame *f, const node *n, mode m) {
    uint32_t index = 0;
    bool pattern = m == PATTERN;
    switch (n->kind) {
    case NODE_ANY: index = lower_leaf(p, n, HLO_TERM_ANY, pattern); break;
    case NODE_NONE: index = lower_leaf(p, n, HLO_TERM_NONE, !pattern); break;
    case NODE_REST: index = lower_leaf(p, n, HLO_TERM_NONE, false); break;
    case NODE_NUMBER: index = lower_leaf(p, n, HLO_TERM_NUMBER, m == ARGUMENT); break;
    case NODE_WORD: index = lower_leaf(p, n, HLO_TERM_WORD, m == ARGUMENT); break;
    case NODE_CONSTANT: index = lower_leaf(p, n, HLO_TERM_CONSTANT, true); break;
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
        rules_fault(p, n->where, "a pattern cannot stand on the right-hand side");
    if (!pattern && (n->kind == NODE_SPLAT || n->kind == NODE_CONSTANT) && !n->like)
        rules_fault(p, n->where, "say which shape: `like %%x`");
    if (n->shape.last) lower_shape(p, f, n, index, m);
    if (n->bind.last) {
        int16_t slot = slot_of(p, f, n->bind, pattern);
        if (!pattern) rules_fault(p, n->bind, "a pattern cannot stand on the right-hand side");
        if (term_at(p, index)->slot >= 0) rules_fault(p, n->bind, "the value has a name already");
        term_at(p, index)->slot = slot;
        if (n->kind == NODE_CHAIN || n->kind == NODE_CHAIN1) p->draft->chain[slot] = true;
    }
    return index;
}

/* ---------------------------------------------------------------------------- rules, statements */

void rules_let(rules_parser *p, span whole, span name, node *params, node *body) {
    const char *text = name_of(p, name);
    if (find_let(p, name)) rules_fault(p, name, "'%s' is defined already", text);
    if (hlo_op_find(text, strlen(text)) != HLO_OP_INVALID || find_function(p, text) >= 0)
        rules_fault(p, name, "'%s' is an opcode or a function", text);
    let_node *let = rules_new(p, sizeof *let);
    *let =
        (let_node){.next = p->lets, .name = name, .whole = whole, .params = params, .body = body};
    p->lets = let;
}

/* All definitions as they are written, a line end behind each. */
static const char *text_of_lets(rules_parser *p) {
    size_t size = 0;
    for (const let_node *l = p->lets; l; l = l->next) size += l->whole.last - l->whole.first + 1;
    char *text = hlo_arena_alloc(p->owner->arena, size + 1), *at = text + size;
    *at = 0;
    for (const let_node *l = p->lets; l; l = l->next) {
        const size_t length = l->whole.last - l->whole.first;
        *--at = '\n';
        at -= length;
        memcpy(at, p->owner->source + l->whole.first, length);
    }
    return text;
}

static int reason_code(rules_parser *p, span name) {
    const char *text = name_of(p, name);
    int reason = find_word(p->words->reasons, p->words->reason_count, text);
    if (reason < 0) rules_fault(p, name, "no reason is called '%s'", text);
    return reason < 0 ? 0 : reason;
}

void rules_phase(rules_parser *p, span name, span measure) {
    struct rules_draft *d = p->draft;
    d->phase = name_of(p, name);
    d->measure = name_of(p, measure);
    int code = find_function(p, d->measure);
    if (code < 0 || p->words->functions[code].kind != HLO_FUNCTION_MEASURE)
        rules_fault(p, measure, "no measure is called '%s'", d->measure);
    else
        d->measure_code = (uint16_t)code;
}

static void lower_guard(rules_parser *p, const guard_node *g) {
    const char *name = name_of(p, g->call->name);
    int code = find_function(p, name);
    uint32_t count, first = push_args(p, NULL, g->call->args, ARGUMENT, &count);
    if (code < 0 || p->words->functions[code].kind != HLO_FUNCTION_TEST) {
        rules_fault(p, g->call->name, "no test is called '%s'", name);
        code = 0;
    } else {
        check_call(p, g->call->where, &p->words->functions[code], first, count);
    }
    uint16_t reason = g->reason.last ? (uint16_t)reason_code(p, g->reason) : HLO_RULE_NO_REASON;
    int16_t at = g->at.last ? slot_of(p, NULL, g->at, false) : -1;
    hlo_rule_guard *guard = push(p, &p->draft->guards, sizeof *guard);
    *guard = (hlo_rule_guard){.negate = g->negate,
                              .function = (uint16_t)code,
                              .reason = reason,
                              .at = at,
                              .arg_count = count,
                              .first_arg = first};
}

static void lower_sets(rules_parser *p, const set_node *list, hlo_rule_action *action) {
    hlo_rule_set sets[HLO_RULE_ARGS];
    uint32_t count = 0;
    for (const set_node *s = list; s; s = s->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, s->field, "too many fields");
            break;
        }
        const char *name = name_of(p, s->field);
        int field = find_word(p->words->fields, p->words->field_count, name);
        if (field < 0) rules_fault(p, s->field, "a matmul has no field '%s'", name);
        sets[count++] = (hlo_rule_set){.field = (uint16_t)(field < 0 ? 0 : field),
                                       .add = s->add,
                                       .term = lower(p, NULL, s->value, ARGUMENT)};
    }
    action->first_set = p->draft->sets.count;
    action->set_count = count;
    for (uint32_t i = 0; i < count; i++)
        *(hlo_rule_set *)push(p, &p->draft->sets, sizeof sets[0]) = sets[i];
}

/* `root`: what a bare term replaces. */
static void lower_action(rules_parser *p, const action_node *a, int16_t root,
                         hlo_rule_action *out) {
    *out = (hlo_rule_action){.kind = (uint8_t)a->kind, .slot = -1, .operand = -1};
    switch (a->kind) {
    case HLO_ACTION_REPLACE:
        out->slot = a->target.last ? slot_of(p, NULL, a->target, false) : root;
        out->term = lower(p, NULL, a->value, TEMPLATE);
        break;
    case HLO_ACTION_LET:
        out->term = lower(p, NULL, a->value, TEMPLATE);
        out->slot = slot_of(p, NULL, a->target, true);
        break;
    case HLO_ACTION_OPERAND:
        out->slot = slot_of(p, NULL, a->target, false);
        out->operand = slot_of(p, NULL, a->operand, false);
        out->term = lower(p, NULL, a->value, TEMPLATE);
        break;
    case HLO_ACTION_CALL:
        out->operand = slot_of(p, NULL, a->operand, false);
        lower_sets(p, a->sets, out);
        if (a->target.last) out->slot = slot_of(p, NULL, a->target, true);
        break;
    case HLO_ACTION_REMARK:
        out->reason = (uint16_t)reason_code(p, a->reason);
        if (a->operand.last) out->operand = slot_of(p, NULL, a->operand, false);
        break;
    }
}

/* Adds to `always` what the pattern binds whichever way it matches, to `ever` all that it may. */
static void add_bound(rules_parser *p, uint32_t index, slot_set *always, slot_set *ever) {
    const hlo_rule_term t = *term_at(p, index);
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

static void find_partial(rules_parser *p, uint32_t first_root) {
    slot_set always = {{false}}, ever = {{false}};
    add_bound(p, first_root, &always, &ever);
    for (uint32_t s = 0; s < HLO_RULE_SLOTS; s++)
        p->draft->partial.has[s] = ever.has[s] && !always.has[s];
}

/* The slot of a root that the rule gives no name. */
static int16_t nameless_slot(rules_parser *p, span where) {
    struct rules_draft *d = p->draft;
    if (d->slot_count == HLO_RULE_SLOTS) {
        rules_fault(p, where, "too many variables");
        return 0;
    }
    d->chain[d->slot_count] = false;
    d->holds[d->slot_count] = HOLDS_VALUE;
    d->slots[d->slot_count] = hlo_intern_string(p->owner, "%root");
    return (int16_t)d->slot_count++;
}

static int16_t lower_roots(rules_parser *p, const root_node *roots) {
    hlo_rule_root lowered[HLO_RULE_ARGS];
    uint32_t count = 0;
    for (const root_node *r = roots; r; r = r->next) {
        if (count == HLO_RULE_ARGS) {
            rules_fault(p, r->pattern->where, "too many roots");
            break;
        }
        uint32_t index = lower(p, NULL, r->pattern, PATTERN);
        if (term_at(p, index)->slot < 0) {
            const int16_t slot = nameless_slot(p, r->pattern->where);
            term_at(p, index)->slot = slot;
        }
        lowered[count++] = (hlo_rule_root){.term = index, .optional = r->optional};
    }
    const int16_t first = term_at(p, lowered[0].term)->slot;
    find_partial(p, lowered[0].term);
    for (uint32_t i = 0; i < count; i++)
        *(hlo_rule_root *)push(p, &p->draft->roots, sizeof lowered[0]) = lowered[i];
    return first;
}

void rules_rule(rules_parser *p, span whole, span name, span subject, root_node *roots,
                guard_node *guards, action_node *actions, span example) {
    struct rules_draft *d = p->draft;
    d->slot_count = d->expansions = d->depth = 0;
    d->acting = false;
    if (!d->phase) rules_fault(p, name, "a rule stands in a phase");
    hlo_rule rule = {.name = name_of(p, name),
                     .phase = d->phase,
                     .measure = d->measure,
                     .measure_code = d->measure_code,
                     .subject = -1};
    rule.doc = comment_text(p, p->rule_comment);
    rule.text = name_of(p, whole);
    rule.example = example.last ? name_of(p, example) : NULL;
    rule.offset = (uint32_t)name.first;
    while (p->counted < whole.first) p->lines += p->owner->source[p->counted++] == '\n';
    rule.line = p->lines + 1;

    rule.first_root = d->roots.count;
    rule.root = lower_roots(p, roots);
    rule.root_count = d->roots.count - rule.first_root;
    rule.first_guard = d->guards.count;
    for (const guard_node *g = guards; g; g = g->next) lower_guard(p, g);
    rule.guard_count = d->guards.count - rule.first_guard;
    if (subject.last) rule.subject = slot_of(p, NULL, subject, false);

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
        rules_fault(p, name, "a remark stands alone, in a rule `for` a matmul");
    if (!remark && !example.last) rules_fault(p, name, "a rule needs an example");
    rule.first_action = d->actions.count;
    rule.action_count = count;
    for (uint32_t i = 0; i < count; i++)
        *(hlo_rule_action *)push(p, &d->actions, sizeof lowered[0]) = lowered[i];

    rule.slot_count = (uint16_t)d->slot_count;
    rule.slots = hlo_arena_copy(p->owner->arena, d->slots, d->slot_count * sizeof d->slots[0]);
    for (uint32_t i = 0; i < d->rules.count; i++)
        if (((hlo_rule *)d->rules.data)[i].name == rule.name)
            rules_fault(p, name, "there is a rule '%s' already", rule.name);
    *(hlo_rule *)push(p, &d->rules, sizeof rule) = rule;
}

/* No file of rules is as large; what grows with the square of its size is bearable below. */
enum { LARGEST_FILE = 1 << 20 };

hlo_status hlo_rules_parse(hlo_module *owner, const hlo_rule_vocabulary *words, unsigned max_errors,
                           const hlo_diag_sink *sink, const hlo_rules **out_rules) {
    struct rules_draft draft = {.phase = NULL};
    rules_parser p = {.owner = owner,
                      .words = words,
                      .sink = sink,
                      .faults = hlo_error_budget_new(max_errors),
                      .draft = &draft};
    *out_rules = NULL;
    if (owner->source_size > LARGEST_FILE) {
        hlo_diag_emit(owner, sink, HLO_ERROR, 0, 0, "rules of more than 1 MB");
        return HLO_INVALID_INPUT;
    }
    yyscan_t scanner;
    rules_yylex_init_extra(&p, &scanner);
    rules_yy_scan_bytes(owner->source, (int)owner->source_size, scanner);
    const bool syntax = rules_yyparse(scanner, &p) != 0;
    hlo_status status = hlo_error_budget_end(&p.faults, owner, sink);
    if (syntax || status != HLO_OK) return HLO_INVALID_INPUT;

    hlo_rules *rules = hlo_arena_zero(owner->arena, sizeof *rules);
    rules->file = owner->file;
    rules->lets = text_of_lets(&p);
    rules->doc = comment_text(&p, p.file_comment);
#define TABLE(name) rules->name##s = draft.name##s.data, rules->name##_count = draft.name##s.count;
    HLO_RULE_TABLES(TABLE)
#undef TABLE
    *out_rules = rules;
    return HLO_OK;
}
