/* A pool of threads that share one loop at a time. Loops follow one another within microseconds,
 * and to wake a thread takes as long: threads sleep only when there was nothing to do for a while.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/cpu/cpu.h"

enum {
    MAX_THREADS = 64,
    CHUNKS_PER_THREAD = 8,
    ASKED = 2000 /* times that a thread asks before it sleeps: some 50 microseconds */
};

/* ----------------------------------------------------------------------------------------- loop */

void cpu_loop_init(cpu_loop *loop) {
    *loop = (cpu_loop){.count = 0};
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->opened, NULL);
    pthread_cond_init(&loop->left, NULL);
}

void cpu_loop_end(cpu_loop *loop) {
    pthread_cond_destroy(&loop->left);
    pthread_cond_destroy(&loop->opened);
    pthread_mutex_destroy(&loop->lock);
}

static void take(cpu_loop *loop) {
    for (;;) {
        const int64_t begin = atomic_fetch_add(&loop->next, loop->chunk);
        if (begin >= loop->count) return;
        const int64_t left = loop->count - begin;
        loop->body(loop->arg, begin, begin + (left < loop->chunk ? left : loop->chunk));
    }
}

void cpu_loop_open(cpu_loop *loop, int64_t count, int64_t threads,
                   void (*body)(void *arg, int64_t begin, int64_t end), void *arg) {
    const int64_t chunks = threads * CHUNKS_PER_THREAD;
    loop->body = body;
    loop->arg = arg;
    loop->count = count;
    loop->chunk = (count + chunks - 1) / chunks;
    atomic_store(&loop->next, 0);
    atomic_fetch_add(&loop->generation, 1);
    if (!atomic_load(&loop->asleep)) return;
    pthread_mutex_lock(&loop->lock);
    for (int64_t i = 1; i < count && i <= atomic_load(&loop->asleep); i++)
        pthread_cond_signal(&loop->opened);
    pthread_mutex_unlock(&loop->lock);
}

/* The thread is counted before it looks whether the loop is open, and the loop is closed before its
 * threads are counted: none is inside when it is opened again. */
void cpu_loop_help(cpu_loop *loop, unsigned generation) {
    atomic_fetch_add(&loop->inside, 1);
    if (generation % 2 && atomic_load(&loop->generation) == generation) take(loop);
    if (atomic_fetch_sub(&loop->inside, 1) != 1 || !atomic_load(&loop->finishing)) return;
    pthread_mutex_lock(&loop->lock);
    pthread_cond_signal(&loop->left);
    pthread_mutex_unlock(&loop->lock);
}

static void pause_a_little(void) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

void cpu_loop_finish(cpu_loop *loop) {
    take(loop);
    atomic_fetch_add(&loop->generation, 1);
    for (int i = 0; i < ASKED && atomic_load(&loop->inside); i++) pause_a_little();
    if (!atomic_load(&loop->inside)) return;
    pthread_mutex_lock(&loop->lock);
    atomic_store(&loop->finishing, true);
    while (atomic_load(&loop->inside)) pthread_cond_wait(&loop->left, &loop->lock);
    atomic_store(&loop->finishing, false);
    pthread_mutex_unlock(&loop->lock);
}

/* ----------------------------------------------------------------------------------------- pool */

struct cpu_pool {
    cpu_loop loop;
    pthread_t threads[MAX_THREADS];
    int thread_count; /* without the caller's */
    atomic_bool stop;
};

/* Returns the generation of the next loop after `seen`, or any when the pool stops. */
static unsigned wait_for_loop(cpu_pool *pool, unsigned seen) {
    cpu_loop *loop = &pool->loop;
    unsigned now = seen;
    for (int i = 0; i < ASKED; i++) {
        now = atomic_load(&loop->generation);
        if (now % 2 && now != seen) return now;
        pause_a_little();
    }
    pthread_mutex_lock(&loop->lock);
    atomic_fetch_add(&loop->asleep, 1);
    for (;;) {
        now = atomic_load(&loop->generation);
        if ((now % 2 && now != seen) || atomic_load(&pool->stop)) break;
        pthread_cond_wait(&loop->opened, &loop->lock);
    }
    atomic_fetch_sub(&loop->asleep, 1);
    pthread_mutex_unlock(&loop->lock);
    return now;
}

static void *thread_main(void *user) {
    cpu_pool *pool = user;
    unsigned seen = 0;
    while (!atomic_load(&pool->stop)) {
        seen = wait_for_loop(pool, seen);
        cpu_loop_help(&pool->loop, seen);
    }
    return NULL;
}

static int processor_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < MAX_THREADS ? count : MAX_THREADS;
}

cpu_pool *cpu_pool_new(int most) {
    cpu_pool *pool = aligned_alloc(_Alignof(cpu_pool), sizeof *pool);
    if (!pool) return NULL;
    cpu_loop_init(&pool->loop);
    pool->thread_count = 0;
    atomic_init(&pool->stop, false);
    const int processors = processor_count(), wanted = (processors < most ? processors : most) - 1;
    while (pool->thread_count < wanted &&
           pthread_create(&pool->threads[pool->thread_count], NULL, thread_main, pool) == 0)
        pool->thread_count++;
    return pool;
}

int cpu_pool_threads(const cpu_pool *pool) {
    return pool->thread_count + 1;
}

void cpu_pool_free(cpu_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->loop.lock);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->loop.opened);
    pthread_mutex_unlock(&pool->loop.lock);
    for (int i = 0; i < pool->thread_count; i++) pthread_join(pool->threads[i], NULL);
    cpu_loop_end(&pool->loop);
    free(pool);
}

void cpu_pool_run(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                  void *arg) {
    cpu_pool *pool = user;
    if (pool->thread_count == 0 || count < 2) {
        if (count > 0) body(arg, 0, count);
        return;
    }
    cpu_loop_open(&pool->loop, count, pool->thread_count + 1, body, arg);
    cpu_loop_finish(&pool->loop);
}
