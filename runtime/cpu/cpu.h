/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: its device, its threads, and cuBLASLt calls. */
#ifndef HLO_RUNTIME_CPU_CPU_H
#define HLO_RUNTIME_CPU_CPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "ir/error/error.h"
#include "matmul/call.h"
#include "runtime/backend.h"

typedef struct cpu_pool cpu_pool;

typedef struct cpu_device {
    hlo_arena *scratch;
    cpu_pool *pool; /* NULL if another program's threads are used */
    hlo_eval_env env;
    bool wants_every_value; /* each instruction's value is requested, so instructions are not
                             * grouped */
    double *marks;          /* times of marks, in seconds */
    size_t mark_capacity;
    bool unmarked; /* memory for a mark ran out */
    hlo_seat seat;
    void *lapack; /* the LAPACK library, loaded when a module needs it; stays loaded */
} cpu_device;

extern const hlo_backend cpu_backend;

/* Type of hlo_eval_env.parallel. */
typedef void cpu_parallel(void *user, int64_t count,
                          void (*body)(void *arg, int64_t begin, int64_t end), void *arg);
/* Initializes a device without threads, which divides its loops by `parallel` and need not be
 * closed. The device executes jobs one at a time, like a device that cpu_backend opens. */
void cpu_device_init(cpu_device *cpu, hlo_arena *scratch, void *user, cpu_parallel *parallel);

enum { CPU_MAX_THREADS = 64 };

/* A range of a loop's indices, taken from its start. */
typedef struct cpu_share {
    _Alignas(64) _Atomic int64_t next; /* first index that is not taken */
    int64_t end, chunk;
} cpu_share;

/* pool.c: a loop that threads share. One thread opens and finishes the loop. Other threads may try
 * to help at any time, even after its end. Waiting threads spin briefly, and then sleep. A thread
 * begins with its own share, so that consecutive loops over the same arrays find its part in the
 * cache of its processor. After that, the thread helps with other shares. */
typedef struct cpu_loop {
    void (*body)(void *arg, int64_t begin, int64_t end);
    void *arg;
    const hlo_watch *watch; /* NULL if nothing stops the loop; set only while the loop is closed */
    atomic_bool stopped;    /* the watch stopped the loop */
    int64_t share_count;
    cpu_share shares[CPU_MAX_THREADS];
    _Alignas(64) atomic_uint generation; /* odd while the loop is open */
    _Alignas(64) atomic_int inside;      /* number of threads that help */
    atomic_int asleep;                   /* number of threads that wait for the loop to open */
    atomic_bool finishing;               /* the thread that opened the loop sleeps until the other
                                          * threads leave */
    pthread_mutex_t lock;
    pthread_cond_t opened, left;
} cpu_loop;
void cpu_loop_init(cpu_loop *loop);
void cpu_loop_end(cpu_loop *loop);
/* Opens the loop, and divides its indices into at most `threads` shares. */
void cpu_loop_open(cpu_loop *loop, int64_t count, int64_t threads,
                   void (*body)(void *arg, int64_t begin, int64_t end), void *arg);
/* Runs chunks until none is left, if the loop is still open with that `generation`. `seat` is the
 * thread's number; 0 is the thread that opened the loop. */
void cpu_loop_help(cpu_loop *loop, unsigned generation, int64_t seat);
/* Runs chunks, closes the loop and waits for the other threads. */
void cpu_loop_finish(cpu_loop *loop);

/* pool.c: creates a pool with a thread for each processor that the process may use, at most `most`
 * including the caller's, or fewer if the system cannot create them. Returns NULL if memory runs
 * out. */
cpu_pool *cpu_pool_new(int most);
/* Returns the number of threads, including the caller's. */
int cpu_pool_threads(const cpu_pool *pool);
/* Ends the threads and frees the pool. */
void cpu_pool_free(cpu_pool *pool);
/* Sets the watch of later loops; `watch` may be NULL. */
void cpu_pool_watch(cpu_pool *pool, const hlo_watch *watch);
/* Divides a loop among the threads; see hlo_eval_env.parallel. `user` is the pool. */
cpu_parallel cpu_pool_run;

/* matmul.c: returns the options with which the job's sigmas are computed. */
hlo_error_options cpu_error_options(const hlo_job *job);

/* random.c: true for the opcodes whose values XLA draws from a hidden state. */
bool cpu_is_random(hlo_op op);
/* Returns why the device does not support an instruction with random results, or NULL. */
const char *cpu_random_refusal(const hlo_instruction *instr);
/* Creates the state of the job of an instruction with random results. */
void cpu_random_prepare(hlo_job *job, hlo_arena *arena);
void cpu_random_execute(const cpu_device *cpu, const hlo_job *job);

/* lapack.c: true for custom calls that run a LAPACK routine (lapack.def). */
bool cpu_is_lapack(const hlo_instruction *instr);
/* Returns why such a call is not supported (static or in the arena), or NULL. */
const char *cpu_lapack_refusal(cpu_device *cpu, const hlo_instruction *instr, hlo_arena *arena);
/* Creates the job's state: the routine and the arrays of the call. */
void cpu_lapack_prepare(cpu_device *cpu, hlo_job *job, hlo_arena *arena);
/* Runs the routine for each matrix of the batch. Computed results have infinite sigmas. */
hlo_status cpu_lapack_execute(const cpu_device *cpu, const hlo_job *job, const char **why);

/* collective.c: true for the instructions of the next three functions: collectives and their
 * asynchronous starts, send, recv-done, partition-id, replica-id, and calls at the boundary of a
 * manual region. */
bool cpu_is_collective(const hlo_instruction *instr);
/* Returns why the device does not support a collective (static or in the arena), or NULL. */
const char *cpu_collective_refusal(const cpu_device *cpu, const hlo_instruction *instr,
                                   hlo_arena *arena);
/* Creates the job's state: the participants of the device's group. */
void cpu_collective_prepare(const cpu_device *cpu, hlo_job *job, hlo_arena *arena);
/* Waits for the other participants, and runs the job together with theirs. */
hlo_status cpu_collective_execute(const cpu_device *cpu, const hlo_job *job, const char **why);

/* tile.c: groups live instructions; see hlo_backend.group. */
uint32_t cpu_tile_group(const hlo_instruction *const *live, uint32_t count, hlo_arena *arena,
                        hlo_group **out_groups);
/* Creates the program of a group of several instructions, which is the job's state. */
void cpu_tile_prepare(hlo_job *job, hlo_arena *arena);
void cpu_tile_execute(const cpu_device *cpu, const hlo_job *job);

/* An activation of an epilogue. All members are NULL for HLO_ACTIVATION_NONE. */
typedef struct cpu_activation {
    float (*value)(float x);
    double (*exact)(double x);
    double (*rounding)(double x, double y); /* sigma of the error of value() at x, where y = f(x) */
} cpu_activation;
extern const cpu_activation cpu_activations[HLO_ACTIVATION_COUNT];

/* Returns true if the CPU supports the cuBLASLt call; otherwise sets *why. */
bool cpu_matmul_supports(const hlo_instruction *call, hlo_arena *arena, const char **why);
/* Finds the parts of the call; sets the job's state and scratch size. */
void cpu_matmul_prepare(hlo_job *job, hlo_arena *arena);
/* Computes the call by the formula in matmul/call.h and, if requested, its sigmas. */
hlo_status cpu_matmul_execute(const cpu_device *device, const hlo_job *job, const char **why);

#endif
