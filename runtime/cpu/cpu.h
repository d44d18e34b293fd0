/* The CPU backend: its device, and the calls that no opcode of HLO stands for. */
#ifndef HLO_RUNTIME_CPU_CPU_H
#define HLO_RUNTIME_CPU_CPU_H

#include "runtime/backend.h"

typedef struct cpu_pool cpu_pool;

typedef struct cpu_device {
    hlo_arena *scratch;
    cpu_pool *pool;
    hlo_eval_env env;
} cpu_device;

/* pool.c: threads, as many as the machine has processors for this process. NULL when there is no
 * memory; threads that cannot be made are done without. */
cpu_pool *cpu_pool_new(void);
void cpu_pool_free(cpu_pool *pool);
/* hlo_eval_env.parallel; `user` is the pool. */
void cpu_pool_run(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                  void *arg);

/* matmul.c: cuBLASLt calls, by the formula in matmul/call.h. */
bool cpu_matmul_supports(const hlo_instr *call, hlo_arena *arena, const char **why);
void cpu_matmul_prepare(hlo_job *job, hlo_arena *arena);
hlo_status cpu_matmul_execute(const cpu_device *device, const hlo_job *job, const char **why);

#endif
