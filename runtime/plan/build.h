/* SPDX-License-Identifier: Apache-2.0 */
/* The state of building the plan of one computation, which steps.c and schedule.c share. */
#ifndef HLO_RUNTIME_PLAN_BUILD_H
#define HLO_RUNTIME_PLAN_BUILD_H

#include "runtime/plan/plan.h"

/* The slots of the leaves of one instruction's value. */
typedef struct build_value {
    uint32_t *slots;
    uint32_t count;
} build_value;

typedef struct build {
    hlo_plan *plan;
    plan_comp *comp;
    const hlo_diag_sink *sink;
    build_value *values;     /* indexed by position in the computation */
    const uint32_t **starts; /* by position of a tuple: for each element, the number of leaves
                              * before it; NULL until needed */
    uint32_t *arguments;     /* by parameter: number of the parameter's first argument */
    uint32_t *place;         /* by id - first_id: position of the instruction in the computation */
    uint32_t first_id;
    bool failed;
} build;

/* A unit of the schedule: an instruction, or a group that runs as one. */
typedef struct build_unit {
    const hlo_instruction *instr; /* the group's last instruction */
    const hlo_group *group;       /* NULL for a single instruction */
} build_unit;

/* Reports an error at the instruction, which makes building the plan fail. */
void build_refuse(build *b, const hlo_instruction *instr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True if all dimensions are static, and their number and sizes do not exceed the limits. */
bool build_is_static(const hlo_shape *shape);

/* schedule.c: returns the units to run, each after the units that it reads. */
build_unit *build_order(build *b, uint32_t *out_count);

#endif
