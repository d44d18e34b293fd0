/* SPDX-License-Identifier: Apache-2.0 */
/* Parses instructions from their parts (README.md). */
#include <ctype.h>
#include <string.h>

#include "api/edit.h"
#include "hlo/text.h"
#include "ir/intern.h"
#include "ir/module/clone.h"
#include "ir/text/diag.h"

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

/* Prints the name of a value. Replaces names that the parser rejects (binary modules may have them)
 * and names that are reserved for the composed text. */
static void put_value_name(hlo_printer *o, const hlo_instruction *value) {
    const char *name = value->name;
    hlo_put_char(o, '%');
    if (edit_is_name(name) && hlo_intern_length(name) == strlen(name) &&
        strcmp(name, RESULT) != 0 && strncmp(name, "__xla_", 6) != 0) {
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

bool edit_is_closed(const char *text) {
    for (const char *at = text; *at; at++) {
        if (at[0] == '/' && at[1] == '/') return false;
        if (at[0] == '/' && at[1] == '*') {
            at = strstr(at + 2, "*/");
            if (!at++) return false;
        } else if (*at == '"' || *at == '\'') {
            const char quote = *at;
            for (at++; *at && *at != quote; at++) at += *at == '\\' && at[1];
            if (!*at) return false;
        }
    }
    return true;
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
    const char *entry = "__xla_fragment";
    for (unsigned i = 0; hlo_module_find_computation(c->e->module, entry); i++)
        entry = hlo_arena_format(c->e->scratch, "__xla_fragment.%u", i);
    HLO_PUT(o, "ENTRY %");
    hlo_put_string(o, entry);
    HLO_PUT(o, " {");
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
    if (f->literal && f->literal->shape->rank)
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

void edit_keep_error(void *error, const hlo_diag *diag) {
    kept_error *kept = error;
    const size_t size = strlen(kept->text), column = diag->column ? diag->column - 1 : 0;
    const char *at =
        diag->source ? memmem(diag->source, diag->source_size, kept->text, size) : NULL;
    const size_t first = at ? (size_t)(at - diag->source) : 0;
    if (kept->message[0] || !at || column < first || column - first >= size) return;
    snprintf(kept->message, sizeof kept->message, ": %s", diag->message);
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

hlo_status edit_read(edit *e, const fragment *f, fragment_parts *out) {
    composition c = {.e = e, .f = f};
    c.declared = hlo_arena_zero(e->scratch, e->module->next_computation_id + 1);
    if (!edit_open_text(e)) return HLO_OUT_OF_MEMORY;
    compose(&c);
    if (e->text.failed) return HLO_OUT_OF_MEMORY;
    const hlo_diag_sink sink = {.emit = relay, .user = &c};
    const size_t size = (size_t)(e->text.at - e->text.buffer);
    hlo_status status = hlo_module_parse(e->text.buffer, size, "fragment", &sink, &e->read);
    if (status == HLO_INVALID_INPUT && c.unreachable)
        hlo_diag_emit(e->module, e->sink, HLO_NOTE, HLO_DIAG_EDIT, 0, 0,
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
        edit_refuse(e, NULL, "'%s': attributes and operands must form exactly one instruction",
                    f->opcode);
        return HLO_INVALID_INPUT;
    }
    hlo_copier copier = hlo_copier_new(e->module, e->read, e->scratch);
    for (const hlo_computation *comp = e->read->first; comp; comp = comp->next)
        if (comp != e->read->entry)
            copier.comps[comp->id] =
                edit_own_comp(hlo_module_find_computation(e->module, comp->name));
    for (uint32_t i = 0; i < c.input_count; i++)
        copier.instrs[e->read->entry->parameters[i]->id] = c.inputs[i];
    if (c.ongoing) copier.instrs[hlo_instr_operand(root, 0)->id] = c.ongoing;
    *out = (fragment_parts){.op = root->op,
                            .shape = hlo_copy_shape(&copier, root->shape),
                            .attrs = hlo_copy_attrs(&copier, root->attrs, root->attr_count),
                            .attr_count = root->attr_count};
    return HLO_OK;
}
