/* What execute.c and command_buffer.c share: going through the steps of a plan. */
#ifndef HLO_RUNTIME_RUN_H
#define HLO_RUNTIME_RUN_H

#include "runtime/plan/plan.h"

/* What is done with each job. */
typedef enum plan_mode {
    PLAN_EXECUTE,
    PLAN_BIND,  /* once, whichever way control may go */
    PLAN_RECORD /* on the tape; where control depends on data, the tape branches */
} plan_mode;

typedef struct plan_run {
    hlo_plan *plan;
    const hlo_diag_sink *sink;
    plan_mode mode;
    plan_command_buffer *tape; /* with PLAN_RECORD */
    uint64_t *stream;          /* the next job's */
} plan_run;

/* Runs the computation on `arguments`, to `results`. */
hlo_status plan_run_comp(const plan_run *r, plan_comp *comp, char *frame,
                         const plan_place *arguments, const plan_place *results);
/* Copies a leaf that is like that slot. */
void plan_copy_leaf(const hlo_plan *plan, plan_place to, plan_place from, const plan_slot *like);
/* The branch of a conditional that the value at `from` chooses. */
uint32_t plan_chosen(const hlo_plan *plan, const plan_slot *selector, const void *from,
                     uint32_t count);
/* Tells that the step, or all if `step` is NULL, failed. Returns the status. */
hlo_status plan_failed(const plan_run *r, const plan_step *step, hlo_status status,
                       const char *why);

/* command_buffer.c: these go on the tape instead of being run. step->arguments and step->lent are
 * set. */
hlo_status plan_command_buffer_job(const plan_run *r, const plan_step *step);
hlo_status plan_command_buffer_while(const plan_run *r, const plan_comp *comp,
                                     const plan_step *step);
hlo_status plan_command_buffer_conditional(const plan_run *r, const plan_comp *comp,
                                           const plan_step *step);
/* Something was recorded. */
void plan_command_buffer_note(const plan_run *r);
hlo_status plan_command_buffer_play(const plan_run *r, const plan_command_buffer *tape);

#endif
