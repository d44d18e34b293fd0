/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that XLA draws from a hidden state: rng, rng-get-and-update-state. */
#ifndef HLO_RUNTIME_CPU_RANDOM_H
#define HLO_RUNTIME_CPU_RANDOM_H

#include "runtime/cpu/cpu.h"

bool cpu_is_random(hlo_op op);
/* Returns why the device does not support it, or NULL. */
const char *cpu_random_refusal(const hlo_instr *instr);
/* Creates the job's state. */
void cpu_random_prepare(hlo_job *job, hlo_arena *arena);
void cpu_random_execute(const cpu_device *cpu, const hlo_job *job);

#endif
