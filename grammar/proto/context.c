/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a conversion: reports errors, and finds the instructions and computations that ids
 * stand for. */
#include "grammar/proto/proto.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

#include <stdlib.h>

hlo_status hlo_proto_read_into(hlo_proto *p, const char *file, const hlo_diag_sink *sink,
                               hlo_status (*body)(hlo_proto *p, void *user), void *user) {
    jmp_buf recover, failed;
    *p = (hlo_proto){.sink = sink, .failed = &failed};
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    if (setjmp(failed)) return HLO_INVALID_INPUT;
    p->module = hlo_module_new(&recover);
    p->scratch = hlo_arena_new(&recover);
    if (!p->module || !p->scratch) return HLO_OUT_OF_MEMORY;
    p->module->file = hlo_intern_string(p->module, file);
    p->module->source = NULL;
    return body(p, user);
}

_Noreturn void hlo_proto_fail(hlo_proto *p, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (p->kind)
        hlo_diag_emit(p->module, p->sink, HLO_ERROR, p->offset, 1, "%s '%.200s': %s", p->kind,
                      p->name, message);
    else
        hlo_diag_emit(p->module, p->sink, HLO_ERROR, p->offset, 1, "%s", message);
    longjmp(*p->failed, 1);
}

static int by_number(const void *a, const void *b) {
    int64_t x = ((const hlo_proto_id *)a)->number, y = ((const hlo_proto_id *)b)->number;
    return (x > y) - (x < y);
}

hlo_proto_id *hlo_proto_find_id(const hlo_proto_ids *in, int64_t number) {
    hlo_proto_id key = {.number = number};
    return in->count ? bsearch(&key, in->v, in->count, sizeof key, by_number) : NULL;
}

void *hlo_proto_find(const hlo_proto_ids *in, int64_t number) {
    const hlo_proto_id *found = hlo_proto_find_id(in, number);
    return found ? found->is : NULL;
}

void hlo_proto_sort_ids(hlo_proto *p, hlo_proto_ids *of, const char *what) {
    qsort(of->v, of->count, sizeof *of->v, by_number);
    for (size_t i = 1; i < of->count; i++)
        if (of->v[i].number == of->v[i - 1].number)
            hlo_proto_fail(p, "two %s have id %lld", what, (long long)of->v[i].number);
}

static hlo_computation *called(hlo_proto *p, int64_t number) {
    hlo_computation *comp = hlo_proto_find(&p->ids->computations, number);
    if (comp) return comp;
    if (hlo_proto_find_id(&p->ids->computations, number))
        hlo_proto_fail(p, "called computation with id %lld is not before its caller",
                       (long long)number);
    hlo_proto_fail(p, "called computation with id %lld does not exist", (long long)number);
}

hlo_computation *hlo_proto_called(hlo_proto *p, const hlo_pb *message, size_t index) {
    const Xla__HloInstructionProto *instr = (const Xla__HloInstructionProto *)message;
    if (index >= instr->n_called_computation_ids)
        hlo_proto_fail(p, "calls %zu computations, expected at least %zu",
                       instr->n_called_computation_ids, index + 1);
    return called(p, instr->called_computation_ids[index]);
}

const hlo_comps *hlo_proto_all_called(hlo_proto *p, const hlo_pb *message) {
    const Xla__HloInstructionProto *instr = (const Xla__HloInstructionProto *)message;
    size_t count = instr->n_called_computation_ids;
    hlo_comps *comps = hlo_arena_alloc(p->module->arena, sizeof *comps + count * sizeof *comps->v);
    comps->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) comps->v[i] = called(p, instr->called_computation_ids[i]);
    return comps;
}

hlo_instruction *hlo_proto_operand(hlo_proto *p, int64_t number, const char *what) {
    hlo_instruction *instr = hlo_proto_find(&p->ids->instrs, number);
    if (instr) return instr;
    hlo_proto_fail(p,
                   hlo_proto_find_id(&p->ids->instrs, number)
                       ? "%s with id %lld is not before its user"
                       : "%s with id %lld does not exist in the computation",
                   what, (long long)number);
}

const hlo_instrs *hlo_proto_instrs(hlo_proto *p, size_t count, const int64_t *numbers) {
    hlo_instrs *list = hlo_arena_alloc(p->module->arena, sizeof *list + count * sizeof *list->v);
    list->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        list->v[i] = hlo_proto_operand(p, numbers[i], "control predecessor");
    return list;
}
