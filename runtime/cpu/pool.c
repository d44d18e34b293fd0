/* SPDX-License-Identifier: Apache-2.0 */
/* A thread pool that runs one loop at a time. Loops follow one another within microseconds, and
 * waking a thread takes as long. Therefore threads sleep only after a period without work. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ir/memory.h"
#include "runtime/cpu/cpu.h"

enum {
    CHUNKS_PER_SHARE = 8,
    WATCHED_CHUNKS = 64, /* number of chunks per share, if the loop has a watch */
    ASKED = 2000         /* number of spins before a thread sleeps: about 50 microseconds */
};

void cpu_loop_init(cpu_loop *loop) {
    *loop = (cpu_loop){.share_count = 0};
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->opened, NULL);
    pthread_cond_init(&loop->left, NULL);
}

void cpu_loop_end(cpu_loop *loop) {
    pthread_cond_destroy(&loop->left);
    pthread_cond_destroy(&loop->opened);
    pthread_mutex_destroy(&loop->lock);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void take_all(cpu_loop *loop, int64_t seat) {
    for (int64_t i = 0; i < loop->share_count; i++) {
        cpu_share *share = &loop->shares[(seat + i) % loop->share_count];
        while (atomic_load(&share->next) < share->end) {
            /* Only the thread that opened the loop (`seat` 0) calls the watch. */
            if (loop->watch && !seat && !loop->watch->goes_on(loop->watch->user))
                atomic_store(&loop->stopped, true);
            if (loop->watch && atomic_load(&loop->stopped)) break;
            const int64_t begin = atomic_fetch_add(&share->next, share->chunk);
            if (begin >= share->end) break;
            loop->body(loop->arg, begin, smaller(begin + share->chunk, share->end));
        }
    }
}

void cpu_loop_open(cpu_loop *loop, int64_t count, int64_t threads,
                   void (*body)(void *arg, int64_t begin, int64_t end), void *arg) {
    const int64_t shares = smaller(smaller(threads, count), CPU_MAX_THREADS);
    const int64_t chunks = loop->watch ? WATCHED_CHUNKS : CHUNKS_PER_SHARE;
    atomic_store(&loop->stopped, false);
    loop->body = body;
    loop->arg = arg;
    loop->share_count = shares;
    for (int64_t i = 0, begin = 0; i < shares; i++) {
        cpu_share *share = &loop->shares[i];
        const int64_t size = count / shares + (i < count % shares);
        atomic_store(&share->next, begin);
        begin += size;
        share->end = begin;
        share->chunk = (size + chunks - 1) / chunks;
    }
    atomic_fetch_add(&loop->generation, 1);
    if (!atomic_load(&loop->asleep)) return;
    pthread_mutex_lock(&loop->lock);
    for (int64_t i = 1; i < count && i <= atomic_load(&loop->asleep); i++)
        pthread_cond_signal(&loop->opened);
    pthread_mutex_unlock(&loop->lock);
}

/* A helping thread increments `inside` before it checks whether the loop is open. cpu_loop_finish()
 * closes the loop before it reads `inside`. Therefore no thread is inside when the loop is opened
 * again. */
void cpu_loop_help(cpu_loop *loop, unsigned generation, int64_t seat) {
    atomic_fetch_add(&loop->inside, 1);
    if (generation % 2 && atomic_load(&loop->generation) == generation) take_all(loop, seat);
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
    take_all(loop, 0);
    atomic_fetch_add(&loop->generation, 1);
    for (int i = 0; i < ASKED && atomic_load(&loop->inside); i++) pause_a_little();
    if (!atomic_load(&loop->inside)) return;
    pthread_mutex_lock(&loop->lock);
    atomic_store(&loop->finishing, true);
    while (atomic_load(&loop->inside)) pthread_cond_wait(&loop->left, &loop->lock);
    atomic_store(&loop->finishing, false);
    pthread_mutex_unlock(&loop->lock);
}

typedef struct pool_thread {
    cpu_pool *pool;
    int seat;
    pthread_t id;
} pool_thread;

struct cpu_pool {
    cpu_loop loop;
    pool_thread threads[CPU_MAX_THREADS];
    int thread_count; /* number of threads, without the caller's */
    atomic_bool stop;
};

static void *thread_main(void *user) {
    const pool_thread *thread = user;
    cpu_pool *pool = thread->pool;
    cpu_loop *loop = &pool->loop;
    unsigned seen = 0, now = 0;
    while (!atomic_load(&pool->stop)) {
        /* Wait for a loop after generation `seen`: first actively, then asleep. */
        bool open = false;
        for (int i = 0; i < ASKED && !open; i++) {
            now = atomic_load(&loop->generation);
            open = now % 2 && now != seen;
            if (!open) pause_a_little();
        }
        if (!open) {
            pthread_mutex_lock(&loop->lock);
            atomic_fetch_add(&loop->asleep, 1);
            for (;;) {
                now = atomic_load(&loop->generation);
                if ((now % 2 && now != seen) || atomic_load(&pool->stop)) break;
                pthread_cond_wait(&loop->opened, &loop->lock);
            }
            atomic_fetch_sub(&loop->asleep, 1);
            pthread_mutex_unlock(&loop->lock);
        }
        seen = now;
        cpu_loop_help(loop, seen, thread->seat);
    }
    return NULL;
}

cpu_pool *cpu_pool_new(int most) {
    cpu_pool *pool = hlo_aligned_alloc(_Alignof(cpu_pool), sizeof *pool);
    if (!pool) return NULL;
    cpu_loop_init(&pool->loop);
    pool->thread_count = 0;
    atomic_init(&pool->stop, false);
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    const int processors = (int)smaller(count, CPU_MAX_THREADS),
              wanted = (processors < most ? processors : most) - 1;
    while (pool->thread_count < wanted) {
        pool_thread *thread = &pool->threads[pool->thread_count];
        *thread = (pool_thread){.pool = pool, .seat = pool->thread_count + 1};
        if (pthread_create(&thread->id, NULL, thread_main, thread) != 0) break;
        pool->thread_count++;
    }
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
    for (int i = 0; i < pool->thread_count; i++) pthread_join(pool->threads[i].id, NULL);
    cpu_loop_end(&pool->loop);
    hlo_free(pool);
}

void cpu_pool_watch(cpu_pool *pool, const hlo_watch *watch) {
    pool->loop.watch = watch;
}

void cpu_pool_run(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                  void *arg) {
    cpu_pool *pool = user;
    if ((pool->thread_count == 0 && !pool->loop.watch) || count < 2) {
        if (count > 0) body(arg, 0, count);
        return;
    }
    cpu_loop_open(&pool->loop, count, pool->thread_count + 1, body, arg);
    cpu_loop_finish(&pool->loop);
}
