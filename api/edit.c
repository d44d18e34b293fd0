/* SPDX-License-Identifier: Apache-2.0 */
/* Implements hlo/edit.h: adds instructions, constants, parameters and computations; replaces uses,
 * operands, attributes and roots; removes instructions. */
#include "hlo/edit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/suggest.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/float/literal.h"
#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/module/clone.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/printer.h"
#include "ir/verify/verify.h"

/* The arguments and results of an edit, and the memory that is freed when the edit ends. */
typedef struct edit {
    hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    hlo_module *read; /* a module that the edit parsed from `text`, or NULL */
    hlo_printer text; /* the text of `read` */
    hlo_computation *comp;
    hlo_instruction *instr, *other;
    uint32_t index;
    const char *name, *value;
    hlo_instruction_options options;
    hlo_instruction *made;
    hlo_computation *made_comp;
} edit;

typedef hlo_status edit_step(edit *e);

/* Emits an error at the source location of `at`, or without a location if `at` is NULL. Returns
 * HLO_INVALID_USAGE. */
__attribute__((format(printf, 3, 4))) static hlo_status
refuse(const edit *e, const hlo_instruction *at, const char *format, ...) {
    const hlo_module *module = at && at->parent ? at->parent->module : NULL;
    va_list args;
    va_start(args, format);
    if (module) {
        hlo_diag_vemit(module, e->sink, HLO_ERROR, at->offset, hlo_intern_length(at->name), format,
                       args);
    } else {
        char message[512];
        vsnprintf(message, sizeof message, format, args);
        hlo_diag_refuse(e->sink, NULL, 0, 0, "%s", message);
    }
    va_end(args);
    return HLO_INVALID_USAGE;
}

/* Runs an edit of e->module, of the module of e->comp, or of the module of e->instr. If memory runs
 * out in the module's arena, marks the module as exhausted; an exhausted module rejects all further
 * edits. */
static hlo_status run_edit(edit *e, edit_step *step) {
    if (e->instr && !e->instr->parent) return refuse(e, NULL, "%%%s was removed", e->instr->name);
    if (e->instr) e->comp = e->instr->parent;
    if (e->comp) e->module = e->comp->module;
    if (e->module->exhausted) return HLO_OUT_OF_MEMORY;
    jmp_buf recover, *before = hlo_arena_set_recover(e->module->arena, NULL);
    hlo_status status = HLO_OUT_OF_MEMORY;
    if (setjmp(recover)) {
        e->module->exhausted = true;
    } else if ((e->scratch = hlo_arena_new(&recover))) {
        hlo_arena_set_recover(e->module->arena, &recover);
        status = step(e);
    }
    hlo_arena_set_recover(e->module->arena, before);
    if (status == HLO_OK) {
        e->module->verified = false;
        e->module->edits++;
    }
    hlo_module_free(e->read);
    free(e->text.buffer);
    hlo_arena_free(e->scratch);
    return status;
}

/* Starts e->text as an empty text that can grow. Returns false if memory runs out. */
static bool open_text(edit *e) {
    enum { FIRST = 1 << 10 };
    e->text = (hlo_printer){.overflow = HLO_OVERFLOW_GROW, .options = &hlo_print_long_form};
    return hlo_printer_grow(&e->text, FIRST);
}

/* True if `a` is before `b` in their common computation; walks from `a` in both directions. */
static bool is_before(const hlo_instruction *a, const hlo_instruction *b) {
    const hlo_instruction *after = a->next, *before = a;
    while (after && before) {
        if (after == b) return true;
        if (before == b) return false;
        after = after->next;
        before = before->prev;
    }
    while (after && after != b) after = after->next;
    return after != NULL;
}

/* Checks that `value` can be an operand in e->comp of an instruction that is inserted before
 * `before` (NULL: at the end). The error calls the value `role`. */
static hlo_status check_operand(const edit *e, const hlo_instruction *value,
                                const hlo_instruction *before, const char *role) {
    if (!value) return refuse(e, NULL, "%s must not be NULL", role);
    if (!value->parent) return refuse(e, NULL, "%s, %%%s, was removed", role, value->name);
    if (value->parent->module != e->module)
        return refuse(e, NULL, "%s, %%%s, is in another module, %s", role, value->name,
                      value->parent->module->name);
    if (value->parent != e->comp)
        return refuse(e, value, "%s, %%%s, is in computation %%%s, not in %%%s", role, value->name,
                      value->parent->name, e->comp->name);
    if (before && !is_before(value, before))
        return refuse(e, value, "%s, %%%s, must be defined before %%%s", role, value->name,
                      before->name);
    return HLO_OK;
}

/* Checks a single instruction. Emits an error and returns HLO_INVALID_INPUT if the instruction is
 * invalid. */
static hlo_status check_fault(const edit *e, const hlo_instruction *instr) {
    const char *fault = hlo_instr_fault(instr, e->scratch);
    if (!fault) return HLO_OK;
    refuse(e, NULL, "%%%s: %s", instr->name, fault);
    return HLO_INVALID_INPUT;
}

/* If e->comp is the entry and the module has an entry_computation_layout, sets the result in this
 * layout to `shape` or, with `parameter`, adds a parameter of that shape. */
static void set_layout(const edit *e, const hlo_shape *shape, bool parameter) {
    hlo_module *module = e->module;
    const hlo_attr *attr =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_ENTRY_COMPUTATION_LAYOUT);
    if (module->entry != e->comp || !attr) return;
    const hlo_shapes *old = attr->u.shapes;
    const uint32_t count = old->count + parameter;
    hlo_shapes *layout = hlo_arena_alloc(module->arena, sizeof *layout + count * sizeof *layout->v);
    memcpy(layout, old, sizeof *old + old->count * sizeof *old->v);
    layout->count = count;
    layout->v[count - 1] = old->v[old->count - 1];
    layout->v[parameter ? count - 2 : count - 1] = shape;
    hlo_attr *changed =
        hlo_arena_copy(module->arena, module->attrs, module->attr_count * sizeof *changed);
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (changed[i].id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT) changed[i].u.shapes = layout;
    module->attrs = changed;
}

static void note_replaced(const edit *e, const hlo_instruction *from, const hlo_instruction *to) {
    hlo_module *module = e->module;
    if (!module->logs_replaced) return;
    hlo_arena_grow(module->arena, &module->replaced, module->replaced_count,
                   &module->replaced_capacity, sizeof *module->replaced);
    module->replaced[module->replaced_count++] = (hlo_replaced){from, to};
}

/* ---------------------------------------------------------------- instructions from their parts */

/* README.md describes how an instruction is parsed. */

/* The parts of an instruction that is parsed. */
typedef struct fragment {
    const char *opcode;
    const char *shape, *attributes; /* NULL if absent */
    const hlo_literal *literal;     /* the elements of a constant */
    hlo_instruction *const *operands;
    uint32_t operand_count;
} fragment;

/* The parts of an instruction after parsing, copied to e->module. */
typedef struct fragment_parts {
    hlo_op op;
    const hlo_shape *shape;
    const hlo_attr *attrs;
    uint32_t attr_count;
} fragment_parts;

/* The name of the new instruction in the composed text. */
#define RESULT "new.instruction"
/* Prefix of the names of values whose own names cannot be in the text. */
#define OPERAND "__xla_operand."
/* Prefix of the names of the operands of an asynchronous operation that the new instruction updates
 * or ends. */
#define BOUND "__xla_bound."

/* A module whose text is composed line by line. */
typedef struct composition {
    edit *e;
    const fragment *f;
    bool *declared;           /* by id of a computation of e->module: true after its declaration */
    const char *unreachable;  /* name of a computation that the attributes name but that cannot be
                               * called, or NULL */
    hlo_instruction **inputs; /* instructions of e->comp that become parameters, by parameter
                               * number */
    uint32_t input_count;
    hlo_instruction *ongoing; /* operand 0 of an async-update or async-done, otherwise NULL */
    uint32_t added;           /* number of instructions emitted for `ongoing` */
    uint32_t line;            /* number of lines composed so far */
} composition;

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

/* True if the parser accepts the name. */
static bool is_name(const char *name) {
    bool plain = isalpha((unsigned char)*name) || *name == '_';
    for (const char *at = name; *at; at++) plain &= is_word(*at);
    const bool reserved = strncmp(name, "__", 2) == 0 && strncmp(name, "__xla_", 6) != 0;
    return plain && !reserved && hlo_type_find(name, strlen(name)) == HLO_TYPE_INVALID;
}

/* Prints the name of a value. Replaces names that the parser rejects (binary modules may have them)
 * and names that are reserved for the composed text. */
static void put_value_name(hlo_printer *o, const hlo_instruction *value) {
    const char *name = value->name;
    hlo_put_char(o, '%');
    if (is_name(name) && hlo_intern_length(name) == strlen(name) && strcmp(name, RESULT) != 0 &&
        strncmp(name, "__xla_", 6) != 0) {
        hlo_put_interned(o, name);
    } else {
        HLO_PUT(o, OPERAND);
        hlo_put_uint(o, value->id);
    }
}

static void end_line(composition *c) {
    hlo_put_char(&c->e->text, '\n');
    c->line++;
}

static void put_parameter(composition *c, const hlo_instruction *value, uint32_t number) {
    hlo_printer *o = &c->e->text;
    put_value_name(o, value);
    HLO_PUT(o, " = ");
    hlo_put_shape(o, value->shape, true);
    HLO_PUT(o, " parameter(");
    hlo_put_uint(o, number);
    hlo_put_char(o, ')');
    end_line(c);
}

static void put_operands(hlo_printer *o, hlo_instruction *const *operands, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) HLO_PUT(o, ", ");
        put_value_name(o, operands[i]);
    }
}

/* Declares a computation with the signature of `comp`; its body is a custom call that computes the
 * result from the parameters. */
static void declare(composition *c, const hlo_computation *comp) {
    hlo_printer *o = &c->e->text;
    if (c->declared[comp->id] || !comp->root) return;
    c->declared[comp->id] = true;
    hlo_put_char(o, '%');
    hlo_put_interned(o, comp->name);
    HLO_PUT(o, " {");
    end_line(c);
    for (uint32_t i = 0; i < comp->parameter_count; i++) put_parameter(c, comp->parameters[i], i);
    HLO_PUT(o, "ROOT %" RESULT " = ");
    hlo_put_shape(o, comp->root->shape, true);
    HLO_PUT(o, " custom-call(");
    put_operands(o, comp->parameters, comp->parameter_count);
    HLO_PUT(o, "), custom_call_target=\"declaration\"");
    end_line(c);
    hlo_put_char(o, '}');
    hlo_put_attrs(o, comp->attrs, comp->attr_count, ", ", ", ");
    end_line(c);
}

/* In the text of attributes, returns the next word that is neither quoted nor the name of an
 * attribute; NULL if there is no such word. */
static const char *next_word(const char *at, size_t *out_length) {
    while (*at) {
        size_t length = 0;
        if (*at == '"')
            for (length++; at[length] && at[length] != '"'; length++)
                length += at[length] == '\\' && at[length + 1];
        while (*at != '"' && is_word(at[length])) length++;
        if (*at != '"' && length && at[length] != '=') {
            *out_length = length;
            return at;
        }
        at += length;
        if (*at) at++;
    }
    return NULL;
}

static bool is_named(const char *name, const char *word, size_t length) {
    return strncmp(name, word, length) == 0 && name[length] == '\0';
}

static void add_input(composition *c, hlo_instruction *value) {
    if (value == c->ongoing) return;
    for (uint32_t i = 0; i < c->input_count; i++)
        if (c->inputs[i] == value) return;
    c->inputs[c->input_count++] = value;
}

/* Declares the computations that the attributes name and that `ongoing` executes. Adds inputs: the
 * operands, and the instructions that the attributes name. */
static void find_named(composition *c) {
    const fragment *f = c->f;
    const char *text = f->attributes ? f->attributes : "";
    const bool control = strstr(text, hlo_attrs_info[HLO_ATTR_CONTROL_PREDECESSORS].name) != NULL;
    size_t length, words = 0;
    /* Find the asynchronous operation that the instruction continues. */
    const hlo_op op = hlo_op_find(f->opcode, strlen(f->opcode));
    if ((op == HLO_OP_ASYNC_UPDATE || op == HLO_OP_ASYNC_DONE) && f->operand_count) {
        hlo_instruction *operand = f->operands[0];
        const hlo_instruction *start =
            operand->op == HLO_OP_ASYNC_DONE ? NULL : hlo_async_start(operand);
        const hlo_shape *shape = operand->shape;
        if (start && hlo_instr_attr(start, HLO_ATTR_CALLS) && shape->type == HLO_TYPE_TUPLE &&
            shape->rank && shape->elements[0]->type == HLO_TYPE_TUPLE)
            c->ongoing = operand;
    }
    if (c->ongoing) declare(c, hlo_instr_comp(hlo_async_start(c->ongoing), HLO_ATTR_CALLS));
    for (const char *at = text; (at = next_word(at, &length)); at += length, words++)
        for (const hlo_computation *comp = c->e->module->first, *own = NULL; comp;
             comp = comp->next) {
            if (comp == c->e->comp) own = comp;
            if (!is_named(comp->name, at, length)) continue;
            if (own)
                c->unreachable = comp->name;
            else
                declare(c, comp);
        }
    c->inputs = hlo_arena_array(c->e->scratch, f->operand_count + words + 1, sizeof *c->inputs);
    for (uint32_t i = 0; i < f->operand_count; i++) add_input(c, f->operands[i]);
    for (const char *at = text; control && (at = next_word(at, &length)); at += length)
        for (hlo_instruction *instr = c->e->comp->first; instr; instr = instr->next)
            if (is_named(instr->name, at, length)) add_input(c, instr);
}

static void compose(composition *c) {
    static const hlo_attr_id ids[] = {HLO_ATTR_CALLS, HLO_ATTR_ASYNC_EXECUTION_THREAD};
    const fragment *f = c->f;
    hlo_printer *o = &c->e->text;
    HLO_PUT(o, "HloModule fragment");
    end_line(c);
    find_named(c);
    HLO_PUT(o, "ENTRY %__xla_fragment {");
    end_line(c);
    for (uint32_t i = 0; i < c->input_count; i++) put_parameter(c, c->inputs[i], i);
    if (c->ongoing) { /* print `ongoing` as an async-start of new parameters */
        const hlo_shape *bound = c->ongoing->shape->elements[0];
        for (uint32_t i = 0; i < bound->rank; i++) {
            HLO_PUT(o, "%" BOUND);
            hlo_put_uint(o, i);
            HLO_PUT(o, " = ");
            hlo_put_shape(o, bound->elements[i], true);
            HLO_PUT(o, " parameter(");
            hlo_put_uint(o, c->input_count + i);
            hlo_put_char(o, ')');
            end_line(c);
        }
        put_value_name(o, c->ongoing);
        HLO_PUT(o, " = ");
        hlo_put_shape(o, c->ongoing->shape, true);
        HLO_PUT(o, " async-start(");
        for (uint32_t i = 0; i < bound->rank; i++) {
            if (i) HLO_PUT(o, ", ");
            HLO_PUT(o, "%" BOUND);
            hlo_put_uint(o, i);
        }
        hlo_put_char(o, ')');
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
            const hlo_attr *attr = hlo_instr_attr(hlo_async_start(c->ongoing), ids[i]);
            if (attr) hlo_put_attrs(o, attr, 1, ", ", ", ");
        }
        end_line(c);
        c->added = bound->rank + 1;
    }
    HLO_PUT(o, "ROOT %" RESULT " = ");
    if (f->shape) {
        hlo_put_string(o, f->shape);
        hlo_put_char(o, ' ');
    }
    hlo_put_string(o, f->opcode);
    hlo_put_char(o, '(');
    if (strcmp(f->opcode, "parameter") == 0) hlo_put_char(o, '0');
    if (f->literal && hlo_shape_rank(f->literal->shape))
        HLO_PUT(o, "{...}");
    else if (f->literal)
        hlo_put_literal(o, f->literal);
    put_operands(o, f->operands, f->operand_count);
    hlo_put_char(o, ')');
    if (f->attributes && *f->attributes) {
        HLO_PUT(o, ", ");
        hlo_put_string(o, f->attributes);
    }
    HLO_PUT(o, "\n}\n");
}

/* Passes on diagnostics about the line of the instruction, with line numbers that start at this
 * line. */
static void relay(void *user, const hlo_diag *diag) {
    const composition *c = user;
    if (diag->line <= c->line || !c->e->sink) return;
    hlo_diag own = *diag;
    own.file = NULL;
    own.line -= c->line;
    c->e->sink->emit(c->e->sink->user, &own);
}

/* Parses an instruction for e->comp. Emits errors and returns HLO_INVALID_INPUT if the instruction
 * is invalid. */
static hlo_status read_fragment(edit *e, const fragment *f, fragment_parts *out) {
    composition c = {.e = e, .f = f};
    c.declared = hlo_arena_zero(e->scratch, e->module->next_computation_id + 1);
    if (!open_text(e)) return HLO_OUT_OF_MEMORY;
    compose(&c);
    if (e->text.failed) return HLO_OUT_OF_MEMORY;
    const hlo_diag_sink sink = {.emit = relay, .user = &c};
    const size_t size = (size_t)(e->text.at - e->text.buffer);
    hlo_status status = hlo_module_parse(e->text.buffer, size, "fragment", &sink, &e->read);
    if (status == HLO_INVALID_INPUT && c.unreachable)
        hlo_diag_emit(e->module, e->sink, HLO_NOTE, 0, 0,
                      "%%%s follows its caller %%%s in the module; callees must precede callers",
                      c.unreachable, e->comp->name);
    if (status != HLO_OK) return status;
    /* The text must contain the instruction and nothing else. */
    const hlo_instruction *root = e->read->entry->root;
    size_t declared = 1, computations = 0;
    for (uint32_t i = 0; i < e->module->next_computation_id; i++) declared += c.declared[i];
    for (const hlo_computation *comp = e->read->first; comp; comp = comp->next) computations++;
    if (computations != declared || strcmp(hlo_ops[root->op].name, f->opcode) != 0 ||
        root->operand_count != f->operand_count ||
        e->read->entry->instr_count != c.input_count + c.added + 1) {
        refuse(e, NULL, "'%s': attributes and operands must form exactly one instruction",
               f->opcode);
        return HLO_INVALID_INPUT;
    }
    hlo_copier copier = hlo_copier_new(e->module, e->read, e->scratch);
    for (const hlo_computation *comp = e->read->first; comp; comp = comp->next)
        if (comp != e->read->entry)
            copier.comps[comp->id] = hlo_module_find_computation(e->module, comp->name);
    for (uint32_t i = 0; i < c.input_count; i++)
        copier.instrs[e->read->entry->parameters[i]->id] = c.inputs[i];
    if (c.ongoing) copier.instrs[hlo_instr_operand(root, 0)->id] = c.ongoing;
    *out = (fragment_parts){.op = root->op,
                            .shape = hlo_copy_shape(&copier, root->shape),
                            .attrs = hlo_copy_attrs(&copier, root->attrs, root->attr_count),
                            .attr_count = root->attr_count};
    return HLO_OK;
}

/* --------------------------------------------------------------------------------- instructions */

/* Returns the source location for the new instruction: the location of `like`, or of the
 * instruction at which the new one is inserted. */
static uint32_t place_of(const edit *e) {
    const hlo_instruction *at = e->options.like ? e->options.like : e->options.before;
    return at ? at->offset : e->comp->offset;
}

static hlo_status check_before(const edit *e, const hlo_instruction *before) {
    if (!before || before->parent == e->comp) return HLO_OK;
    if (!before->parent)
        return refuse(e, before, "cannot insert before %%%s, which was removed", before->name);
    return refuse(e, before, "cannot insert before %%%s, which is in computation %%%s, not in %%%s",
                  before->name, before->parent->name, e->comp->name);
}

static hlo_status check_name(const edit *e, const char *name) {
    if (!name || is_name(name)) return HLO_OK;
    return refuse(e, NULL,
                  "invalid name '%s': a name begins with a letter or '_' but not with '__', "
                  "consists of letters, digits, '_', '.' and '-', and is not an element type",
                  name);
}

static hlo_status make_instruction(edit *e) {
    const hlo_instruction_options *o = &e->options;
    fragment_parts parts;
    if (!o->opcode) return refuse(e, NULL, "hlo_instruction_options.opcode must not be NULL");
    const hlo_op op = hlo_op_find(o->opcode, strlen(o->opcode));
    if (op == HLO_OP_INVALID) {
        hlo_suggestion s = hlo_suggest(o->opcode);
        for (int i = 0; i < HLO_OP_COUNT; i++) hlo_suggest_offer(&s, hlo_ops[i].name);
        return refuse(e, NULL, "unknown opcode '%s'%s", o->opcode, hlo_suggest_meant(&s));
    }
    if (op == HLO_OP_PARAMETER || op == HLO_OP_CONSTANT)
        return refuse(e, NULL, "create a %s with hlo_instruction_new_%s()", o->opcode, o->opcode);
    if (o->operand_count && !o->operands)
        return refuse(e, NULL, "hlo_instruction_options.operands must not be NULL");
    if (o->operand_count > UINT16_MAX)
        return refuse(e, NULL, "%zu operands exceed the maximum of %d", o->operand_count,
                      UINT16_MAX);
    if (o->like && !o->like->parent)
        return refuse(e, NULL, "hlo_instruction_options.like, %%%s, was removed", o->like->name);
    if (o->like && o->like->parent->module != e->module)
        return refuse(e, NULL, "hlo_instruction_options.like, %%%s, is in another module",
                      o->like->name);
    hlo_status status = check_name(e, o->name);
    if (status == HLO_OK) status = check_before(e, o->before);
    for (size_t i = 0; status == HLO_OK && i < o->operand_count; i++) {
        char role[32];
        snprintf(role, sizeof role, "operand %zu", i);
        status = check_operand(e, o->operands[i], o->before, role);
    }
    const fragment f = {.opcode = o->opcode,
                        .shape = o->shape,
                        .attributes = o->attributes,
                        .operands = o->operands,
                        .operand_count = (uint32_t)o->operand_count};
    if (status == HLO_OK) status = read_fragment(e, &f, &parts);
    if (status != HLO_OK) return status;
    const char *interned = hlo_intern_string(e->module, o->name ? o->name : o->opcode);
    e->made = hlo_instr_new_interned(e->comp, o->before, parts.op, parts.shape, f.operand_count,
                                     f.operands, interned);
    e->made->offset = place_of(e);
    hlo_instr_take_attrs(e->made, parts.attrs, parts.attr_count);
    if (o->like) hlo_instr_inherit(e->made, o->like);
    status = check_fault(e, e->made);
    if (status != HLO_OK) {
        const char *name = e->made->name;
        hlo_instr_remove(e->made);
        hlo_name_release(e->module, HLO_NAME_INSTR, name, interned);
    } else if (o->like)
        note_replaced(e, o->like, e->made);
    return status;
}

static hlo_status finish(edit *e, edit_step *step, hlo_instruction **out) {
    const hlo_status status = run_edit(e, step);
    if (out) *out = status == HLO_OK ? e->made : NULL;
    return status;
}

hlo_status hlo_instruction_new(hlo_computation *computation, const hlo_instruction_options *options,
                               const hlo_diag_sink *sink, hlo_instruction **out_instruction) {
    HLO_IN_C_LOCALE;
    edit e = {.sink = sink, .comp = computation};
    const hlo_status status =
        hlo_options_take("hlo_instruction_options", &e.options, sizeof e.options, options, sink);
    if (status == HLO_OK) return finish(&e, make_instruction, out_instruction);
    if (out_instruction) *out_instruction = NULL;
    return status;
}

/* The value of a new constant. */
typedef struct constant {
    edit e; /* must be first: an edit_step receives a pointer to this member */
    const char *type;
    size_t rank;
    const int64_t *dims;
    const void *data;
} constant;

static hlo_status make_constant(edit *e) {
    const constant *c = (const constant *)e;
    const hlo_type type = hlo_type_find(c->type, strlen(c->type));
    hlo_status status = check_before(e, e->options.before);
    if (status != HLO_OK) return status;
    if (type == HLO_TYPE_INVALID || !hlo_types[type].bytes)
        return refuse(e, NULL, "unknown element type '%s'", c->type);
    if (c->rank > HLO_LARGEST_RANK)
        return refuse(e, NULL, "an array of %zu dimensions exceeds the maximum of %d", c->rank,
                      HLO_LARGEST_RANK);
    if (c->rank && !c->dims) return refuse(e, NULL, "dims must not be NULL");
    for (size_t i = 0; i < c->rank; i++)
        if (c->dims[i] < 0)
            return refuse(e, NULL, "dimension %zu is %lld, expected a non-negative size", i,
                          (long long)c->dims[i]);
    const hlo_shape *shape = hlo_shape_array(e->module, type, (uint32_t)c->rank, c->dims);
    const int64_t size = hlo_shape_bytes(shape);
    if (size < 0) return refuse(e, NULL, "the constant is too large");
    /* The caller stores an integer of fewer than 8 bits sign-extended in a byte. */
    const hlo_type_info *info = &hlo_types[type];
    const bool is_signed = info->class == HLO_CLASS_SIGNED;
    const int values = info->bits < 8 ? 1 << info->bits : 0, least = is_signed ? -values / 2 : 0;
    for (int64_t i = 0; c->data && values && i < size; i++) {
        const int value = ((const int8_t *)c->data)[i];
        if (value < least || value >= least + values)
            return refuse(e, NULL, "element %lld is not a valid %s", (long long)i, c->type);
    }
    hlo_literal *literal = hlo_literal_new(e->module, shape);
    if (c->data)
        memcpy(literal->data, c->data, (size_t)size);
    else
        memset(literal->data, 0, (size_t)size);
    e->made = hlo_constant_new(e->comp, e->options.before, literal);
    e->made->offset = place_of(e);
    return HLO_OK;
}

hlo_status hlo_instruction_new_constant(hlo_computation *computation, hlo_instruction *before,
                                        const char *type, size_t rank, const int64_t *dims,
                                        const void *data, const hlo_diag_sink *sink,
                                        hlo_instruction **out_instruction) {
    constant c = {.e = {.sink = sink, .comp = computation, .options = {.before = before}},
                  .type = type,
                  .rank = rank,
                  .dims = dims,
                  .data = data};
    return finish(&c.e, make_constant, out_instruction);
}

static hlo_status make_parameter(edit *e) {
    const uint32_t number = e->comp->parameter_count;
    fragment_parts parts;
    const fragment f = {.opcode = "parameter", .shape = e->value};
    hlo_status status = check_name(e, e->name);
    if (status == HLO_OK) status = read_fragment(e, &f, &parts);
    if (status != HLO_OK) return status;
    const char *interned = hlo_intern_string(e->module, e->name ? e->name : "parameter");
    e->made =
        hlo_instr_new_interned(e->comp, e->comp->first, parts.op, parts.shape, 0, NULL, interned);
    e->made->offset = e->comp->offset;
    hlo_instr_set_parameter(e->made, number);
    set_layout(e, parts.shape, true);
    return HLO_OK;
}

hlo_status hlo_instruction_new_parameter(hlo_computation *computation, const char *shape,
                                         const char *name, const hlo_diag_sink *sink,
                                         hlo_instruction **out_instruction) {
    edit e = {.sink = sink, .comp = computation, .name = name, .value = shape};
    return finish(&e, make_parameter, out_instruction);
}

/* --------------------------------------------------------------------------------- computations */

static hlo_status make_computation(edit *e) {
    const hlo_module *read = e->read;
    if (read->tables.frame_count || read->tables.location_count)
        return refuse(e, NULL,
                      "the text has stack frame tables, which cannot be added to a module");
    hlo_computation *last = e->module->last;
    hlo_copier copier = hlo_copier_new(e->module, read, e->scratch);
    if (!e->module->read) e->module->read = read->read;
    hlo_copy_computations(&copier, read);
    if (last) { /* move the new computations before the existing ones */
        hlo_module *module = e->module;
        hlo_computation *first = last->next;
        last->next = first->prev = NULL;
        module->last->next = module->first;
        module->first->prev = module->last;
        module->first = first;
        module->last = last;
    }
    e->made_comp = copier.comps[read->entry->id];
    for (const hlo_computation *comp = read->first; comp; comp = comp->next) {
        hlo_computation *made = copier.comps[comp->id];
        made->offset = 0; /* the offset refers to the text of another module */
        for (hlo_instruction *instr = made->first; instr; instr = instr->next) instr->offset = 0;
    }
    return HLO_OK;
}

hlo_status hlo_computation_new_text(hlo_module *module, const char *text, size_t size,
                                    const hlo_diag_sink *sink, hlo_computation **out_computation) {
    HLO_IN_C_LOCALE;
    edit e = {.module = module, .sink = sink};
    if (out_computation) *out_computation = NULL;
    hlo_status status = hlo_module_parse(text, size, "computation", sink, &e.read);
    if (status == HLO_OK) status = hlo_module_verify(e.read, NULL, sink);
    if (status != HLO_OK) {
        hlo_module_free(e.read);
        return status;
    }
    status = run_edit(&e, make_computation);
    if (out_computation && status == HLO_OK) *out_computation = e.made_comp;
    return status;
}

/* -------------------------------------------------------------------------------------- changes */

static hlo_status replace(edit *e) {
    hlo_instruction *from = e->instr, *to = e->other;
    hlo_status status = check_operand(e, to, NULL, "the replacement");
    if (status != HLO_OK || from == to) return status;
    if (!hlo_shape_compatible(from->shape, to->shape)) {
        char is[128], was[128];
        hlo_shape_format(to->shape, false, is, sizeof is);
        hlo_shape_format(from->shape, false, was, sizeof was);
        refuse(e, to, "%%%s is %s, but %%%s, which it replaces, is %s", to->name, is, from->name,
               was);
        return HLO_INVALID_INPUT;
    }
    /* `to` must be before each user of `from`. If `to` is after `from`, no user of `from` may be
     * between them. */
    const hlo_instruction *between = is_before(to, from) ? to : from->next;
    for (; between != to; between = between->next)
        for (uint32_t i = 0; i < between->operand_count; i++)
            if (hlo_instr_operand(between, i) == from)
                return refuse(e, between, "%%%s must be defined before %%%s, which uses %%%s",
                              to->name, between->name, from->name);
    hlo_instr_replace_uses(from, to);
    note_replaced(e, from, to);
    return HLO_OK;
}

hlo_status hlo_instruction_replace(hlo_instruction *from, hlo_instruction *to,
                                   const hlo_diag_sink *sink) {
    edit e = {.sink = sink, .instr = from, .other = to};
    return run_edit(&e, replace);
}

static hlo_status set_operand(edit *e) {
    hlo_status status = HLO_OK;
    if (e->index >= e->instr->operand_count)
        return refuse(e, e->instr, "%%%s has %u operands, so index %u is out of range",
                      e->instr->name, e->instr->operand_count, e->index);
    status = check_operand(e, e->other, e->instr, "the operand");
    if (status != HLO_OK) return status;
    hlo_instruction *before = hlo_instr_operand(e->instr, e->index);
    hlo_instr_set_operand(e->instr, e->index, e->other);
    status = check_fault(e, e->instr);
    if (status != HLO_OK) hlo_instr_set_operand(e->instr, e->index, before);
    return status;
}

hlo_status hlo_instruction_set_operand(hlo_instruction *instruction, size_t index,
                                       hlo_instruction *operand, const hlo_diag_sink *sink) {
    edit e = {.sink = sink,
              .instr = instruction,
              .other = operand,
              .index = index < UINT32_MAX ? (uint32_t)index : UINT32_MAX};
    return run_edit(&e, set_operand);
}

static hlo_status set_attribute(edit *e) {
    hlo_instruction *instr = e->instr;
    const hlo_attr_id id = hlo_attr_find(e->name, strlen(e->name));
    if (id == HLO_ATTR_INVALID) {
        hlo_suggestion s = hlo_suggest(e->name);
        for (int i = 0; i < HLO_ATTR_COUNT; i++) hlo_suggest_offer(&s, hlo_attrs_info[i].name);
        return refuse(e, instr, "unknown attribute '%s'%s", e->name, hlo_suggest_meant(&s));
    }
    if (!e->value && !hlo_instr_attr(instr, id)) return HLO_OK;
    /* Print the other attributes after the new one. */
    hlo_printer *o = &e->text;
    hlo_attr *kept = hlo_arena_array(e->scratch, instr->attr_count, sizeof *kept);
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < instr->attr_count; i++)
        if (instr->attrs[i].id != id) kept[kept_count++] = instr->attrs[i];
    if (!open_text(e)) return HLO_OUT_OF_MEMORY;
    if (e->value) {
        hlo_put_string(o, e->name);
        hlo_put_char(o, '=');
        hlo_put_string(o, e->value);
    }
    hlo_put_attrs(o, kept, kept_count, e->value ? ", " : "", ", ");
    hlo_put_char(o, '\0');
    if (o->failed) return HLO_OUT_OF_MEMORY;
    const char *attributes = hlo_intern_string(e->module, o->buffer);
    free(o->buffer);
    o->buffer = NULL;
    hlo_instruction **operands =
        hlo_arena_array(e->scratch, instr->operand_count, sizeof *operands);
    for (uint32_t i = 0; i < instr->operand_count; i++) operands[i] = hlo_instr_operand(instr, i);
    const fragment f = {.opcode = hlo_ops[instr->op].name,
                        .literal = instr->op == HLO_OP_CONSTANT ? instr->u.literal : NULL,
                        .shape = hlo_shape_copy_text(e->scratch, instr->shape, true),
                        .attributes = attributes,
                        .operands = operands,
                        .operand_count = instr->operand_count};
    fragment_parts parts;
    hlo_status status = read_fragment(e, &f, &parts);
    if (status != HLO_OK) return status;
    const hlo_attr *before = instr->attrs;
    const uint32_t count = instr->attr_count;
    hlo_instr_take_attrs(instr, parts.attrs, parts.attr_count);
    status = check_fault(e, instr);
    if (status != HLO_OK) hlo_instr_take_attrs(instr, before, count);
    return status;
}

hlo_status hlo_instruction_set_attribute(hlo_instruction *instruction, const char *name,
                                         const char *value, const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    edit e = {.sink = sink, .instr = instruction, .name = name, .value = value};
    return run_edit(&e, set_attribute);
}

static hlo_status replace_root(edit *e) {
    const hlo_status status = check_operand(e, e->other, NULL, "the root");
    if (status != HLO_OK) return status;
    hlo_computation_set_root(e->comp, e->other);
    set_layout(e, e->other->shape, false);
    return HLO_OK;
}

hlo_status hlo_computation_replace_root(hlo_computation *computation, hlo_instruction *root,
                                        const hlo_diag_sink *sink) {
    edit e = {.comp = computation, .sink = sink, .other = root};
    return run_edit(&e, replace_root);
}

static hlo_status remove_instruction(edit *e) {
    hlo_instruction *instr = e->instr;
    if (instr->uses)
        return refuse(e, instr, "cannot remove %%%s: %%%s uses it", instr->name,
                      instr->uses->user->name);
    if (instr == e->comp->root)
        return refuse(e, instr, "cannot remove %%%s: it is the root of %%%s", instr->name,
                      e->comp->name);
    if (instr->op == HLO_OP_PARAMETER)
        return refuse(e, instr, "cannot remove %%%s: it is a parameter of %%%s", instr->name,
                      e->comp->name);
    const bool controls = e->module->attrs_seen[HLO_ATTR_CONTROL_PREDECESSORS];
    for (const hlo_instruction *after = controls ? e->comp->first : NULL; after;
         after = hlo_instr_next(after)) {
        const hlo_attr *control = hlo_instr_attr(after, HLO_ATTR_CONTROL_PREDECESSORS);
        for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
            if (control->u.instrs->v[i] == instr)
                return refuse(e, instr, "cannot remove %%%s: it is a control predecessor of %%%s",
                              instr->name, after->name);
    }
    hlo_instr_remove(instr);
    return HLO_OK;
}

hlo_status hlo_instruction_remove(hlo_instruction *instruction, const hlo_diag_sink *sink) {
    edit e = {.sink = sink, .instr = instruction};
    return run_edit(&e, remove_instruction);
}
