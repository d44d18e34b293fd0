/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the fake libcuda: with HLO_STANDIN_LATE, work queued on a stream is done only when a call
 * waits for the work, so that reads, writes and frees without waiting are detected. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

typedef struct work {
    struct work *next;
    void (*run)(void *argument);
    max_align_t argument[];
} work;

/* Queue of a stream, kept until the process ends: the next stream at its address continues it. */
struct standin_queue {
    standin_queue *next;
    const cuda_stream *stream;
    work *first, **last;
    long queued, done;
};

static standin_queue *queues;

static standin_queue *queue_of(const cuda_stream *stream) {
    standin_queue *q = queues;
    while (q && q->stream != stream) q = q->next;
    if (q) return q;
    q = calloc(1, sizeof *q);
    if (!q) abort();
    *q = (standin_queue){.next = queues, .stream = stream};
    q->last = &q->first;
    return queues = q;
}

int standin_later(const cuda_stream *stream, void (*run)(void *argument), const void *argument,
                  size_t size) {
    work *w = calloc(1, sizeof *w + size);
    if (!w) return CUDA_OUT_OF_MEMORY;
    w->run = run;
    memcpy(w->argument, argument, size);
    standin_queue *q = queue_of(stream);
    *q->last = w;
    q->last = &w->next;
    q->queued++;
    if (!getenv("HLO_STANDIN_LATE")) standin_finish(standin_end_of(stream));
    return 0;
}

standin_place standin_end_of(const cuda_stream *stream) {
    standin_queue *q = queue_of(stream);
    return (standin_place){q, q->queued};
}

bool standin_is_done(standin_place place) {
    return !place.queue || place.queue->done >= place.count;
}

void standin_finish(standin_place place) {
    standin_queue *q = place.queue;
    while (!standin_is_done(place)) {
        work *w = q->first;
        q->first = w->next;
        if (!q->first) q->last = &q->first;
        q->done++;
        w->run(w->argument);
        free(w);
    }
}

void standin_finish_all(void) {
    for (standin_queue *q = queues; q; q = q->next) standin_finish((standin_place){q, q->queued});
}

static void run_wait(void *place) {
    standin_finish(*(standin_place *)place);
}

int standin_wait_later(const cuda_stream *stream, standin_place place) {
    return standin_later(stream, run_wait, &place, sizeof place);
}
