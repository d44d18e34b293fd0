/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a module as HLO text: instructions, computations, the header. */
#include <stdlib.h>

#include "ir/float/c_locale.h"
#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/printer.h"

/* Writes the attributes of an `op`, each after a comma. The dimensions of a reduce-scatter come
 * later than those of other opcodes. */
static void put_op_attrs(hlo_printer *o, hlo_op op, const hlo_attr *attrs, uint32_t count) {
    const int early = HLO_ATTR_DIMENSIONS, late = HLO_ATTR_USE_GLOBAL_DEVICE_IDS;
    o->op = op;
    if (op != HLO_OP_REDUCE_SCATTER) {
        hlo_put_attrs(o, attrs, count, ", ", ", ");
        return;
    }
    hlo_put_attrs_between(o, attrs, count, -1, early, ", ", ", ");
    hlo_put_attrs_between(o, attrs, count, early, late + 1, ", ", ", ");
    hlo_put_attrs_between(o, attrs, count, early - 1, early + 1, ", ", ", ");
    hlo_put_attrs_between(o, attrs, count, late, HLO_ATTR_COUNT, ", ", ", ");
}

static void put_body_line(hlo_printer *o, const hlo_computation *comp,
                          const hlo_instruction *instr) {
    hlo_put_line(o, o->depth + 1);
    if (instr == comp->root) HLO_PUT(o, "ROOT ");
    const hlo_instruction *wrapped = o->wrapped ? o->wrapped[instr->id] : NULL;
    hlo_put_instr_name(o, instr);
    HLO_PUT(o, " = ");
    hlo_put_shape(o, instr->shape, true);
    hlo_put_char(o, ' ');
    hlo_put_string(o, hlo_ops[(wrapped ? wrapped : instr)->op].name);
    if (wrapped) hlo_put_string(o, hlo_ops[instr->op].name + sizeof "async" - 1);
    hlo_put_char(o, '(');
    if (instr->op == HLO_OP_PARAMETER) hlo_put_int(o, instr->u.parameter);
    if (instr->op == HLO_OP_CONSTANT) {
        enum { FEW = 10 };
        const hlo_shape *shape = instr->u.literal->shape;
        if (o->options->large_constants ||
            (hlo_shape_is_array(shape) && hlo_shape_count(shape) <= FEW))
            hlo_put_literal(o, instr->u.literal);
        else
            HLO_PUT(o, "{...}");
    }
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, i);
        if (o->options->operand_index)
            hlo_put_comma(o, i);
        else if (i)
            HLO_PUT(o, ", ");
        if (o->options->operand_shapes) {
            hlo_put_shape(o, operand->shape, true);
            hlo_put_char(o, ' ');
        }
        hlo_put_instr_name(o, operand);
    }
    hlo_put_char(o, ')');
    if (wrapped && instr->op == HLO_OP_ASYNC_START) {
        /* Write the attributes of both instructions in one order. */
        hlo_attr all[HLO_ATTR_COUNT];
        uint32_t count = 0;
        for (uint32_t i = 0; i < instr->attr_count; i++)
            if (instr->attrs[i].id != HLO_ATTR_CALLS ||
                (o->options->canonical && !hlo_op_has(wrapped->op, HLO_ATTR_CALLS)))
                all[count++] = instr->attrs[i];
        for (uint32_t i = 0; i < wrapped->attr_count; i++)
            if (!hlo_async_shares(wrapped->attrs[i].id)) all[count++] = wrapped->attrs[i];
        put_op_attrs(o, wrapped->op, all, count);
    } else
        put_op_attrs(o, instr->op, instr->attrs, instr->attr_count);
}

enum { BEGUN = -1, NOT_SEEN = -2 };

typedef struct postorder {
    uint32_t *numbers;
    const hlo_instruction **stack;
    size_t depth;
} postorder;

static bool is_placed(const postorder *w, const hlo_instruction *instr) {
    return w->numbers[instr->id] < (uint32_t)NOT_SEEN;
}

static void push(postorder *w, const hlo_instruction *instr) {
    if (!is_placed(w, instr)) w->stack[w->depth++] = instr;
}

/* Returns the instructions of a computation in the order of a canonical print, and numbers them.
 * The order is a depth-first postorder that starts from the instructions without users. The caller
 * frees the result. Returns NULL if memory runs out. */
static const hlo_instruction **print_order(const hlo_computation *comp, uint32_t *numbers) {
    size_t most = 1; /* maximum number of entries on the stack: an instruction is pushed once per
                      * user */
    for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
        const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
        most += 1 + instr->operand_count + (control ? control->u.instrs->count : 0);
        numbers[instr->id] = (uint32_t)NOT_SEEN;
    }
    const hlo_instruction **order = hlo_malloc((comp->instr_count + most) * sizeof *order);
    if (!order) return NULL;
    postorder w = {.numbers = numbers, .stack = order + comp->instr_count};
    uint32_t count = 0;
    for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
        if (!instr->uses) {
            push(&w, instr);
            while (w.depth) {
                const hlo_instruction *top = w.stack[w.depth - 1];
                uint32_t *number = &numbers[top->id];
                if (*number == (uint32_t)NOT_SEEN) {
                    *number = (uint32_t)BEGUN;
                    for (uint32_t i = top->operand_count; i > 0; i--)
                        push(&w, hlo_instr_operand(top, i - 1));
                    const hlo_attr *control = hlo_instr_attr(top, HLO_ATTR_CONTROL_PREDECESSORS);
                    for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
                        push(&w, control->u.instrs->v[i]);
                    continue;
                }
                w.depth--;
                if (is_placed(&w, top)) continue;
                *number = count;
                order[count++] = top;
            }
        }
    return order;
}

static void put_called(hlo_printer *o, const hlo_computation *comp) {
    if (!o->options->canonical) {
        hlo_put_name(o, comp->name);
        return;
    }
    o->depth++;
    for (uint32_t i = 0; i < o->depth; i++) HLO_PUT(o, "  ");
    const hlo_instruction **order = print_order(comp, o->numbers);
    o->failed |= !order;
    hlo_put_char(o, '{');
    for (uint32_t i = 0; order && i < comp->instr_count; i++) put_body_line(o, comp, order[i]);
    hlo_put_line(o, o->depth);
    hlo_put_char(o, '}');
    hlo_free(order);
    hlo_put_attrs(o, comp->attrs, comp->attr_count, ", ", ", ");
    o->depth--;
}

static void put_strings(hlo_printer *o, const char *title, const char *const *strings,
                        uint32_t count) {
    hlo_put_string(o, title);
    for (uint32_t i = 0; i < count; i++) {
        hlo_put_uint(o, i + 1);
        hlo_put_char(o, ' ');
        hlo_put_quoted(o, strings[i]);
        hlo_put_char(o, '\n');
    }
}

static void put_field(hlo_printer *o, char before, hlo_attr_id id, int64_t value) {
    hlo_put_char(o, before);
    hlo_put_attr(o, &(hlo_attr){.id = id, .u.i = value});
}

static void put_tables(hlo_printer *o, const hlo_tables *t) {
    if (!t->file_count && !t->function_count && !t->location_count && !t->frame_count) return;
    put_strings(o, "FileNames\n", t->files, t->file_count);
    put_strings(o, "\nFunctionNames\n", t->functions, t->function_count);
    HLO_PUT(o, "\nFileLocations\n");
    for (uint32_t i = 0; i < t->location_count; i++) {
        const hlo_file_location *l = &t->locations[i];
        hlo_put_uint(o, i + 1);
        hlo_put_char(o, ' ');
        put_field(o, '{', HLO_ATTR_FILE_NAME_ID, l->file_name);
        put_field(o, ' ', HLO_ATTR_FUNCTION_NAME_ID, l->function_name);
        put_field(o, ' ', HLO_ATTR_LINE, l->line);
        put_field(o, ' ', HLO_ATTR_END_LINE, l->end_line);
        put_field(o, ' ', HLO_ATTR_COLUMN, l->column);
        put_field(o, ' ', HLO_ATTR_END_COLUMN, l->end_column);
        HLO_PUT(o, "}\n");
    }
    HLO_PUT(o, "\nStackFrames\n");
    for (uint32_t i = 0; i < t->frame_count; i++) {
        const hlo_stack_frame *f = &t->frames[i];
        hlo_put_uint(o, i + 1);
        hlo_put_char(o, ' ');
        put_field(o, '{', HLO_ATTR_FILE_LOCATION_ID, f->file_location);
        put_field(o, ' ', HLO_ATTR_PARENT_FRAME_ID, f->parent);
        HLO_PUT(o, "}\n");
    }
    HLO_PUT(o, "\n\n");
}

static void count_call(void *callers, hlo_computation *called) {
    ((uint32_t *)callers)[called->id]++;
}

/* Marks, by id, the computations that only one async-start calls and that can be printed as the
 * single instruction that they wrap. The caller frees the result. Returns NULL if there are no such
 * computations or memory runs out; every computation is then printed. */
static bool *find_hidden(const hlo_module *module) {
    if (!module->op_counts[HLO_OP_ASYNC_START]) return NULL;
    uint32_t *callers = hlo_calloc(module->next_computation_id, sizeof *callers); /* calls, by id */
    bool *hidden = hlo_calloc(module->next_computation_id, sizeof *hidden);
    if (callers && hidden) {
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                hlo_instr_visit_called(instr, count_call, callers);
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
                const hlo_computation *called =
                    instr->op == HLO_OP_ASYNC_START ? hlo_instr_comp(instr, HLO_ATTR_CALLS) : NULL;
                if (called && callers[called->id] == 1 && called != module->entry)
                    hidden[called->id] = hlo_async_tells(instr, called);
            }
    }
    hlo_free(callers);
    return hidden;
}

static void put_module(hlo_printer *o, const hlo_module *module) {
    const int middle = HLO_ATTR_ENTRY_COMPUTATION_LAYOUT;
    const bool layout = !module->entry || hlo_attrs_find(module->attrs, module->attr_count, middle);
    HLO_PUT(o, "HloModule ");
    hlo_put_interned(o, module->name);
    hlo_put_attrs_between(o, module->attrs, module->attr_count, -1, middle + layout, ", ", ", ");
    if (!layout) {
        HLO_PUT(o, ", entry_computation_layout={(");
        for (uint32_t i = 0; i < module->entry->parameter_count; i++) {
            hlo_put_comma(o, i);
            hlo_put_shape(o, module->entry->parameters[i]->shape, true);
        }
        HLO_PUT(o, ")->");
        hlo_put_shape(o, module->entry->root->shape, true);
        hlo_put_char(o, '}');
    }
    hlo_put_attrs_between(o, module->attrs, module->attr_count, middle, HLO_ATTR_COUNT, ", ", ", ");
    HLO_PUT(o, "\n\n");
    if (o->options->metadata) put_tables(o, &module->tables);
    bool *hidden = find_hidden(module);
    const hlo_instruction **wrapped = hidden ? hlo_calloc(module->next_id, sizeof *wrapped) : NULL;
    for (const hlo_computation *comp = wrapped ? module->first : NULL; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            const hlo_computation *called =
                instr->op == HLO_OP_ASYNC_START ? hlo_instr_comp(instr, HLO_ATTR_CALLS) : NULL;
            if (called && hidden[called->id]) wrapped[instr->id] = called->root;
            if (instr->op == HLO_OP_ASYNC_UPDATE || instr->op == HLO_OP_ASYNC_DONE)
                wrapped[instr->id] = wrapped[hlo_instr_operand(instr, 0)->id];
        }
    o->wrapped = wrapped;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        if (!o->wrapped || !hidden[comp->id]) {
            if (comp == comp->module->entry) HLO_PUT(o, "ENTRY ");
            hlo_put_name(o, comp->name);
            if (o->options->signature) {
                HLO_PUT(o, " (");
                for (uint32_t i = 0; i < comp->parameter_count; i++) {
                    if (i) HLO_PUT(o, ", ");
                    hlo_put_interned(o, comp->parameters[i]->name);
                    HLO_PUT(o, ": ");
                    hlo_put_shape(o, comp->parameters[i]->shape, false);
                }
                HLO_PUT(o, ") -> ");
                hlo_put_shape(o, comp->root->shape, false);
            }
            hlo_put_char(o, ' ');
            uint32_t number = 0;
            if (o->numbers)
                for (const hlo_instruction *instr = comp->first; instr;
                     instr = hlo_instr_next(instr))
                    o->numbers[instr->id] = number++;
            hlo_put_char(o, '{');
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                put_body_line(o, comp, instr);
            hlo_put_line(o, o->depth);
            hlo_put_char(o, '}');
            hlo_put_attrs(o, comp->attrs, comp->attr_count, ", ", ", ");
            HLO_PUT(o, "\n\n");
        }
    hlo_free(o->wrapped);
    hlo_free(hidden);
}

void hlo_print_options_init_sized(hlo_print_options *options, size_t struct_size,
                                  hlo_print_form form) {
    hlo_print_options all = hlo_print_long_form;
    bool brief = form == HLO_PRINT_SHORT || form == HLO_PRINT_CANONICAL;
    bool canonical = form == HLO_PRINT_CANONICAL;
    all.percent = all.signature = all.operand_index = !brief;
    all.control_predecessors = !brief;
    all.metadata = !brief && form != HLO_PRINT_NO_METADATA;
    all.operand_shapes = all.canonical = canonical;
    all.backend_config = !canonical;
    all.large_constants = !canonical && form != HLO_PRINT_NO_LARGE_CONSTANTS;
    hlo_options_fill(options, struct_size, &all, sizeof all);
    if (form > HLO_PRINT_NO_LARGE_CONSTANTS && struct_size >= sizeof struct_size)
        options->struct_size = 0; /* functions reject these options */
}

/* The size of a printed computation. A canonical print repeats the body of a computation at each
 * call. */
typedef struct extent {
    uint32_t depth; /* nesting depth of bodies */
    uint64_t instrs;
} extent;

enum { MAX_DEPTH = 1000, MAX_INSTRS = 1 << 22 };

typedef struct extents {
    extent *of; /* indexed by computation id */
    extent now;
} extents;

static void add_called(void *user, hlo_computation *called) {
    extents *e = user;
    const extent *inner = &e->of[called->id];
    if (inner->depth >= e->now.depth) e->now.depth = inner->depth + 1;
    e->now.instrs += inner->instrs;
}

static hlo_status check_extent(const hlo_module *module, const hlo_diag_sink *sink) {
    extents e = {.of = hlo_calloc((size_t)module->next_computation_id + 1, sizeof *e.of)};
    if (!e.of) return HLO_OUT_OF_MEMORY;
    const hlo_instruction *excess = NULL; /* the first instruction with which the print exceeds the
                                           * limit */
    for (const hlo_computation *comp = module->first; comp && !excess; comp = comp->next) {
        e.now = (extent){.depth = 1, .instrs = comp->instr_count};
        for (const hlo_instruction *i = comp->first; i && !excess; i = hlo_instr_next(i)) {
            hlo_instr_visit_called(i, add_called, &e);
            if (e.now.depth > MAX_DEPTH || e.now.instrs > MAX_INSTRS) excess = i;
        }
        e.of[comp->id] = e.now;
    }
    hlo_free(e.of);
    if (!excess) return HLO_OK;
    hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_LIMIT, excess->offset,
                  hlo_intern_length(excess->name),
                  "the canonical form repeats a computation at each call and exceeds %s here",
                  e.now.depth > MAX_DEPTH ? "1000 nested computations" : "2^22 instructions");
    return HLO_INVALID_INPUT;
}

/* Prints the module to the buffer. Returns HLO_OUT_OF_MEMORY if the tables of the printer cannot be
 * allocated. */
static hlo_status print(hlo_printer *o, const hlo_module *module) {
    const bool canonical = o->options->canonical;
    const hlo_status status = canonical ? check_extent(module, o->options->sink) : HLO_OK;
    if (status != HLO_OK) return status;
    o->shapes = hlo_calloc(HLO_SHAPE_TEXTS, sizeof *o->shapes);
    o->numbers = canonical ? hlo_calloc((size_t)module->next_id + 1, sizeof *o->numbers) : NULL;
    const bool whole = o->shapes && (o->numbers || !canonical);
    if (whole) put_module(o, module);
    hlo_free(o->shapes);
    hlo_free(o->numbers);
    return whole ? HLO_OK : HLO_OUT_OF_MEMORY;
}

enum { BUFFER = 1 << 16 };

static hlo_status take_options(const hlo_print_options *options, hlo_print_options *out) {
    *out = hlo_print_long_form;
    return hlo_options_take("hlo_print_options", out, sizeof *out, options,
                            hlo_options_sink(options));
}

hlo_status hlo_module_print(const hlo_module *module, const hlo_print_options *options,
                            hlo_writer out) {
    HLO_IN_C_LOCALE;
    hlo_print_options own;
    if (take_options(options, &own) != HLO_OK) return HLO_INVALID_USAGE;
    hlo_printer o = {.out = out, .put_called = put_called, .options = &own};
    const hlo_status status = hlo_printer_grow(&o, BUFFER) ? print(&o, module) : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) hlo_printer_flush(&o);
    hlo_free(o.buffer);
    return status == HLO_OK && o.failed ? HLO_INVALID_INPUT : status;
}

hlo_status hlo_module_to_text(const hlo_module *module, const hlo_print_options *options,
                              char **out_text, size_t *out_size) {
    HLO_IN_C_LOCALE;
    *out_text = NULL;
    hlo_print_options own;
    if (take_options(options, &own) != HLO_OK) return HLO_INVALID_USAGE;
    hlo_printer o = {.overflow = HLO_OVERFLOW_GROW, .put_called = put_called, .options = &own};
    /* Allocate more than the source, because the long form of a short text is longer. Pages that
     * are not written use no memory. */
    o.failed = !hlo_printer_grow(&o, BUFFER + module->source_size / 2 * 3);
    const hlo_status status = o.failed ? HLO_OUT_OF_MEMORY : print(&o, module);
    if (status == HLO_OK) hlo_put_char(&o, '\0');
    if (status != HLO_OK || o.failed) {
        hlo_free(o.buffer);
        return status == HLO_OK ? HLO_OUT_OF_MEMORY : status;
    }
    *out_size = (size_t)(o.at - o.buffer) - 1;
    *out_text = o.buffer;
    return HLO_OK;
}
