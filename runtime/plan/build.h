/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the plan of one computation: the state shared by steps.c and schedule.c. */
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

/* True if all dimensions are known, and not too many or too large. */
bool build_is_static(const hlo_shape *shape);

/* schedule.c: orders the units to run, each after the units that it reads. */
build_unit *build_order(build *b, uint32_t *out_count);

#endif
