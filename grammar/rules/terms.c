/* SPDX-License-Identifier: Apache-2.0 */
/* Terms: patterns, replacements and arguments, with definitions expanded. */
#include "grammar/rules/compile.h"

#include <string.h>

uint32_t rules_push_args(rules_parser *p, const let_frame *f, const node *list, term_mode m,
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
    uint32_t first = p->draft->args.count;
    for (uint32_t i = 0; i < count; i++)
        *(uint32_t *)rules_push(p, &p->draft->args, sizeof(uint32_t)) = indices[i];
    *out_count = count;
    return first;
}

static bool has_rest(const node *n) {
    for (const node *a = n->args; a; a = a->next)
        if (a->kind == NODE_REST) return true;
    return false;
}

/* True if attributes of `kind` have values of `form`. A variable may replace any value. */
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
    const char *name = rules_name(p, a->name);
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
    rules_fault(p, a->name, "%s: %g is not an integer, or is too large", rules_name(p, a->name),
                number);
    return 0;
}

static void lower_attr(rules_parser *p, const let_frame *f, const attr_node *a, hlo_op op,
                       term_mode m) {
    hlo_attr_id id = HLO_ATTR_COUNT;
    if (a->kind != HLO_RULE_FROM)
        id = attr_named(p, a, op);
    else if (m == PATTERN)
        rules_fault(p, a->word, "'from' is allowed only on the right-hand side");
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

static bool needs_shape(hlo_op op) {
    static const char *const rules[] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) #infer,
#include "ir/table/op.def"
#undef HLO_OP
    };
    return !strcmp(rules[op], "GIVEN") || !strcmp(rules[op], "CONVERT");
}

static uint32_t lower_op(rules_parser *p, const let_frame *f, const node *n, hlo_op op,
                         term_mode m) {
    uint32_t count, first = rules_push_args(p, f, n->args, m, &count);
    bool rest = has_rest(n);
    if (rest && m != PATTERN) rules_fault(p, n->where, "'...' is allowed only in a pattern");
    if ((count < hlo_ops[op].min_operands && !rest) ||
        (hlo_ops[op].max_operands != HLO_ANY && count > hlo_ops[op].max_operands))
        rules_fault(p, n->where, "%s does not accept %u operands", hlo_ops[op].name, count);
    if (m != PATTERN && (count ? needs_shape(op) && !n->shape.last : !n->like))
        rules_fault(p, n->where, "the shape of %s cannot be inferred: specify `like` or a type",
                    hlo_ops[op].name);
    uint32_t attrs = p->draft->attrs.count, attr_count = 0;
    for (const attr_node *a = n->attrs; a; a = a->next, attr_count++) lower_attr(p, f, a, op, m);
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

static bool is_value(const hlo_rule_term *t) {
    return t->kind != HLO_TERM_NUMBER && t->kind != HLO_TERM_WORD;
}

/* Returns what a builder's letter requires of an argument, or NULL if `t` satisfies it, as far as
 * can be checked before binding (hlo_rule_fits() checks the rest). */
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

void rules_check_call(rules_parser *p, span where, const hlo_rule_function *fn, uint32_t first,
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

static uint32_t lower_let(rules_parser *p, const let_frame *f, const node *n, const let_node *let,
                          term_mode m) {
    if (m != PATTERN) {
        rules_fault(p, n->where, "a definition may be used only in a pattern");
        return rules_new_term(p, HLO_TERM_ANY);
    }
    uint32_t want = 0, have = 0;
    for (const node *v = let->params; v; v = v->next) want++;
    for (const node *v = n->args; v; v = v->next) have++;
    if (want != have || p->draft->depth == MAX_DEPTH) {
        if (want != have)
            rules_fault(p, n->where, "this definition takes %u arguments, found %u", want, have);
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
    uint32_t first = p->draft->args.count;
    for (unsigned i = 0; i < 2; i++)
        *(uint32_t *)rules_push(p, &p->draft->args, sizeof(uint32_t)) = indices[i];
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

static bool is_test_of_one(const hlo_rule_function *fn) {
    return fn->kind == HLO_FUNCTION_TEST && (!strcmp(fn->params, "V") || !strcmp(fn->params, "A"));
}

static void lower_shape(rules_parser *p, const let_frame *f, const node *n, uint32_t index,
                        term_mode m) {
    const char *name = rules_name(p, n->shape);
    uint8_t kind;
    uint16_t code = 0;
    if (n->like) {
        kind = HLO_SHAPE_LIKE;
        code = (uint16_t)rules_slot(p, f, n->shape, false);
        if (m == PATTERN) rules_fault(p, n->shape, "'like' is allowed only on the right-hand side");
    } else if (hlo_type_find(name, strlen(name)) != HLO_TYPE_INVALID) {
        const hlo_type type = hlo_type_find(name, strlen(name));
        kind = HLO_SHAPE_TYPE;
        code = (uint16_t)type;
        if (!hlo_types[type].bits) rules_fault(p, n->shape, "%s has no elements", name);
    } else {
        int function = rules_find_function(p, name);
        kind = HLO_SHAPE_IS;
        if (function < 0 || m != PATTERN || !is_test_of_one(&p->words->functions[function]))
            rules_fault(p, n->shape, "'%s' is neither a type nor a test of one value", name);
        else
            code = (uint16_t)function;
    }
    hlo_rule_term *t = rules_term_at(p, index);
    if (t->shape_kind) rules_fault(p, n->shape, "a value has two shapes");
    t->shape_kind = kind;
    t->shape_code = code;
}

static uint32_t lower_apply(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
    const let_node *let = rules_find_let(p, n->name);
    if (let) return lower_let(p, f, n, let, m);
    const char *name = rules_name(p, n->name);
    hlo_op op = hlo_op_find(name, strlen(name));
    if (op != HLO_OP_INVALID) return lower_op(p, f, n, op, m);
    return lower_function(p, f, n, m);
}

/* Lowers a parameter. A pattern is lowered once for all uses that add nothing to it. */
static uint32_t lower_parameter(rules_parser *p, const let_frame *f, const node *n, const node *arg,
                                shared_term *made, term_mode m) {
    struct rules_draft *d = p->draft;
    bool apart = d->apart;
    d->apart |= m != PATTERN || n->shape.last || n->bind.last;
    bool shares = !d->apart;
    uint32_t index = made->term, before = d->size;
    if (shares && made->size && !rules_is_full(p, n->where, made->size))
        d->size += made->size;
    else
        index = rules_lower(p, f->caller, arg, m);
    d->apart = apart;
    if (shares) *made = (shared_term){.term = index, .size = d->size - before};
    return index;
}

static uint32_t lower_var(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
    uint32_t index;
    const node *arg = rules_parameter(p, f, rules_name(p, n->name), &index);
    if (arg) return lower_parameter(p, f, n, arg, &f->made[index], m);
    int16_t slot = rules_slot(p, f, n->name, m == PATTERN);
    index = rules_new_term(p, HLO_TERM_VAR);
    rules_term_at(p, index)->slot = slot;
    return index;
}

static uint32_t lower_leaf(rules_parser *p, const node *n, hlo_term_kind kind, bool allowed) {
    if (!allowed) rules_fault(p, n->where, "this is not allowed here");
    uint32_t index = rules_new_term(p, kind);
    rules_term_at(p, index)->number = n->number;
    if (kind == HLO_TERM_WORD) rules_term_at(p, index)->word = rules_name(p, n->name);
    return index;
}

uint32_t rules_lower(rules_parser *p, const let_frame *f, const node *n, term_mode m) {
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
        rules_fault(p, n->where, "a pattern is not allowed on the right-hand side");
    if (!pattern && (n->kind == NODE_SPLAT || n->kind == NODE_CONSTANT) && !n->like)
        rules_fault(p, n->where, "specify the shape with `like %%x`");
    if (n->shape.last) lower_shape(p, f, n, index, m);
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
