/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the plan of one computation: the state shared by steps.c, calls.c, jobs.c and
 * schedule.c. */
#ifndef HLO_RUNTIME_PLAN_BUILD_H
#define HLO_RUNTIME_PLAN_BUILD_H

#include "runtime/plan/plan.h"

/* The slots of one instruction's leaves. */
typedef struct build_value {
    uint32_t *slots;
    uint32_t count;
} build_value;

typedef struct build {
    hlo_plan *plan;
    plan_comp *comp;
    const hlo_diag_sink *sink;
    build_value *values;     /* by position in the computation */
    const uint32_t **starts; /* by position: number of leaves before each element of a tuple; NULL:
                              * unknown */
    uint32_t *arguments;     /* by parameter: its first argument */
    uint32_t *place;         /* position of an instruction, by id - first_id */
    uint32_t first_id;
    bool failed;
} build;

/* A unit of the schedule: an instruction, or a group that runs as one. */
typedef struct build_unit {
    const hlo_instr *instr; /* the group's last instruction */
    const hlo_group *group; /* NULL: only the instruction */
} build_unit;

/* Reports an error at the instruction: the computation cannot be executed. */
void build_refuse(build *b, const hlo_instr *instr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports a warning at the instruction. */
void build_warn(const build *b, const hlo_instr *instr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True if all dimensions are known, and not too many or too large. */
bool build_is_static(const hlo_shape *shape);
/* Returns the leaves' shapes, in the plan's arena. */
const hlo_shape **build_leaves(const build *b, const hlo_shape *shape);

/* Writes the leaves' shapes to *out and moves it past them. */
void build_leaf_shapes(const hlo_shape *shape, const hlo_shape ***out);

/* Returns the instruction's value; it must have been built. */
build_value *build_value_of(const build *b, const hlo_instr *instr);
build_value build_new_value(const build *b, uint32_t count);
/* Creates a slot for every leaf of the shape. */
build_value build_new_slots(build *b, plan_slot_kind kind, const hlo_shape *shape);
/* Creates a slot; `shape` may be NULL. */
uint32_t build_slot(build *b, plan_slot_kind kind, const hlo_shape *shape);
/* Creates a slot for working memory. */
uint32_t build_work(build *b, size_t size);
/* Returns the leaves of the instruction's operands. */
build_value build_operands(const build *b, const hlo_instr *instr);
plan_step *build_step(build *b, plan_step_kind kind, const hlo_instr *instr, build_value operands,
                      build_value results);
/* Converts `value`, `count` leaves, from the layouts of `from` to the layouts of `to`, with copies
 * where they differ. */
build_value build_adapt(build *b, const hlo_instr *instr, build_value value,
                        const hlo_shape *const *from, const hlo_shape *const *to);

/* jobs.c: creates the job of an instruction that the backend runs separately, whose results have
 * the given shape, or of a group, whose values are set. */
build_value build_job(build *b, const hlo_instr *instr, const hlo_shape *shape);
void build_group(build *b, const build_unit *unit);

/* schedule.c: orders the units to run, each after the units that it reads. */
build_unit *build_order(build *b, uint32_t *out_count);

/* look.c: adds the step that inspects the value of an instruction, if requested. */
void build_look(build *b, const hlo_instr *instr);

/* calls.c: create the steps of call, fusion, while and conditional, whose callees are built. */
build_value build_call(build *b, const hlo_instr *instr, hlo_computation *called,
                       const hlo_shape *shape);
build_value build_while(build *b, const hlo_instr *instr);
build_value build_conditional(build *b, const hlo_instr *instr);

#endif
