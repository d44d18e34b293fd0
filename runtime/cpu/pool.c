/* A pool of threads that share one loop at a time. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/cpu/cpu.h"

enum { MAX_THREADS = 64, CHUNKS_PER_THREAD = 4 };

typedef struct job {
    void (*body)(void *arg, int64_t begin, int64_t end);
    void *arg;
    int64_t count, chunk;
} job;

struct cpu_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    pthread_t threads[MAX_THREADS];
    int thread_count; /* without the caller's */
    job job;
    int64_t next; /* first index that is not taken */
    int busy;     /* threads inside the job */
    bool stop;
};

/* Takes and runs chunks until none is left. Called and returns with the lock held. */
static void take_chunks(cpu_pool *pool) {
    job j = pool->job;
    pool->busy++;
    while (pool->next < j.count) {
        int64_t begin = pool->next;
        int64_t end = j.count - begin < j.chunk ? j.count : begin + j.chunk;
        pool->next = end;
        pthread_mutex_unlock(&pool->lock);
        j.body(j.arg, begin, end);
        pthread_mutex_lock(&pool->lock);
    }
    if (--pool->busy == 0) pthread_cond_signal(&pool->idle);
}

static void *thread_main(void *user) {
    cpu_pool *pool = user;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (pool->next < pool->job.count)
            take_chunks(pool);
        else
            pthread_cond_wait(&pool->work, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int processor_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < MAX_THREADS ? count : MAX_THREADS;
}

cpu_pool *cpu_pool_new(void) {
    cpu_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->idle, NULL);
    int wanted = processor_count() - 1;
    while (pool->thread_count < wanted &&
           pthread_create(&pool->threads[pool->thread_count], NULL, thread_main, pool) == 0)
        pool->thread_count++;
    return pool;
}

void cpu_pool_free(cpu_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->thread_count; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void cpu_pool_run(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                  void *arg) {
    cpu_pool *pool = user;
    int64_t chunks = (int64_t)(pool->thread_count + 1) * CHUNKS_PER_THREAD;
    if (pool->thread_count == 0 || count < 2) {
        if (count > 0) body(arg, 0, count);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->job = (job){body, arg, count, (count + chunks - 1) / chunks};
    pool->next = 0;
    pthread_cond_broadcast(&pool->work);
    take_chunks(pool);
    while (pool->busy) pthread_cond_wait(&pool->idle, &pool->lock);
    pool->job.count = 0;
    pthread_mutex_unlock(&pool->lock);
}
