/* A pool of threads that share one loop at a time. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/cpu/cpu.h"

enum { MAX_THREADS = 64, CHUNKS_PER_THREAD = 4 };

/* ----------------------------------------------------------------------------------------- loop */

void cpu_loop_init(cpu_loop *loop) {
    *loop = (cpu_loop){.count = 0};
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->idle, NULL);
}

void cpu_loop_end(cpu_loop *loop) {
    pthread_cond_destroy(&loop->idle);
    pthread_mutex_destroy(&loop->lock);
}

void cpu_loop_set(cpu_loop *loop, int64_t count, int64_t threads,
                  void (*body)(void *arg, int64_t begin, int64_t end), void *arg) {
    const int64_t chunks = threads * CHUNKS_PER_THREAD;
    loop->body = body;
    loop->arg = arg;
    loop->count = count;
    loop->chunk = (count + chunks - 1) / chunks;
    loop->next = 0;
}

void cpu_loop_take(cpu_loop *loop) {
    loop->busy++;
    while (loop->next < loop->count) {
        int64_t begin = loop->next;
        int64_t end = loop->count - begin < loop->chunk ? loop->count : begin + loop->chunk;
        loop->next = end;
        pthread_mutex_unlock(&loop->lock);
        loop->body(loop->arg, begin, end);
        pthread_mutex_lock(&loop->lock);
    }
    if (--loop->busy == 0) pthread_cond_signal(&loop->idle);
}

void cpu_loop_finish(cpu_loop *loop) {
    cpu_loop_take(loop);
    while (loop->busy) pthread_cond_wait(&loop->idle, &loop->lock);
}

/* ----------------------------------------------------------------------------------------- pool */

struct cpu_pool {
    cpu_loop loop; /* its lock is the pool's */
    pthread_cond_t work;
    pthread_t threads[MAX_THREADS];
    int thread_count; /* without the caller's */
    bool stop;
};

static void *thread_main(void *user) {
    cpu_pool *pool = user;
    pthread_mutex_lock(&pool->loop.lock);
    while (!pool->stop) {
        if (pool->loop.next < pool->loop.count)
            cpu_loop_take(&pool->loop);
        else
            pthread_cond_wait(&pool->work, &pool->loop.lock);
    }
    pthread_mutex_unlock(&pool->loop.lock);
    return NULL;
}

static int processor_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < MAX_THREADS ? count : MAX_THREADS;
}

cpu_pool *cpu_pool_new(int most) {
    cpu_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    cpu_loop_init(&pool->loop);
    pthread_cond_init(&pool->work, NULL);
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
    pool->stop = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->loop.lock);
    for (int i = 0; i < pool->thread_count; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->work);
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
    pthread_mutex_lock(&pool->loop.lock);
    cpu_loop_set(&pool->loop, count, pool->thread_count + 1, body, arg);
    pthread_cond_broadcast(&pool->work);
    cpu_loop_finish(&pool->loop);
    pool->loop.count = 0;
    pthread_mutex_unlock(&pool->loop.lock);
}
