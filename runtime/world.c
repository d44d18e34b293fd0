/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the threads and rendezvous of simulated devices. */
#include "runtime/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Number of lists of messages. A message is in the list that its channel and devices select, so
 * that messages that nobody receives do not slow down others. */
enum { MESSAGE_LISTS = 64 };

/* Messages that were not received, in order. */
typedef struct message_list {
    hlo_message *first, **last;
} message_list;

/* The state of a device, which other devices read. */
typedef struct visitor {
    const void *place; /* the place at which the device waits; NULL if it runs or is done. The
                        * visitor itself while the device waits for a message */
    int64_t first;     /* first member of the group for which it waits */
    int64_t channel;   /* channel and sender of the message for which it waits */
    uint32_t from;
    void *brought;
    hlo_status status; /* status of the rendezvous for which it waited */
    const char *why;
} visitor;

typedef struct thread {
    pthread_t id;
    hlo_world *world;
    uint32_t device;
} thread;

struct hlo_world {
    uint32_t replicas, partitions, count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t awake; /* number of devices that neither wait nor are done */
    bool open;      /* the devices may begin */
    bool stuck;     /* the devices deadlocked, or the run was stopped */
    atomic_bool stopped;
    uint32_t running; /* number of devices that are not done */
    visitor *visitors;
    message_list messages[MESSAGE_LISTS];
    thread *threads;
    void (*body)(void *arg, uint32_t device); /* NULL if a thread could not be created */
    void *arg;
};

hlo_world *hlo_world_new(uint32_t replicas, uint32_t partitions) {
    hlo_world *world = calloc(1, sizeof *world);
    if (!world) return NULL;
    *world =
        (hlo_world){.replicas = replicas, .partitions = partitions, .count = replicas * partitions};
    world->visitors = calloc(world->count, sizeof *world->visitors);
    world->threads = calloc(world->count, sizeof *world->threads);
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->changed, NULL);
    if (world->visitors && world->threads) return world;
    hlo_world_free(world);
    return NULL;
}

void hlo_world_free(hlo_world *world) {
    if (!world) return;
    pthread_cond_destroy(&world->changed);
    pthread_mutex_destroy(&world->lock);
    free(world->threads);
    free(world->visitors);
    free(world);
}

hlo_seat hlo_world_seat(hlo_world *world, uint32_t device) {
    return (hlo_seat){world, device / world->partitions, device % world->partitions,
                      world->replicas, world->partitions};
}

uint32_t hlo_seat_number(const hlo_seat *seat) {
    return seat->replica * seat->partitions + seat->partition;
}

const char hlo_world_stuck[] =
    "deadlocks: other devices have finished or wait at other instructions";

/* Records that a device waits or is done. If no device runs any longer, but a device waits, the
 * devices have deadlocked. */
static void fall_asleep(hlo_world *world) {
    if (--world->awake) return;
    for (uint32_t i = 0; i < world->count; i++) world->stuck |= world->visitors[i].place != NULL;
    if (world->stuck) pthread_cond_broadcast(&world->changed);
}

/* Waits until another device clears own->place. Returns false if the devices have deadlocked. */
static bool wait_for_others(hlo_world *world, visitor *own) {
    fall_asleep(world);
    while (own->place && !world->stuck) pthread_cond_wait(&world->changed, &world->lock);
    if (!own->place) return true;
    own->place = NULL;
    world->awake++;
    return false;
}

hlo_status hlo_world_meet(const hlo_seat *seat, const void *place, const hlo_ints *members,
                          void *brought, hlo_meeting *meet, const char **why) {
    hlo_world *world = seat->world;
    if (!world) return meet(&brought, 1, why);
    visitor *own = &world->visitors[hlo_seat_number(seat)];
    pthread_mutex_lock(&world->lock);
    *own = (visitor){.place = place, .first = members->v[0], .brought = brought};
    hlo_status status = HLO_INVALID_INPUT;
    bool complete = true;
    for (uint32_t i = 0; i < members->count; i++) {
        const visitor *v = &world->visitors[members->v[i]];
        complete &= v->place == place && v->first == members->v[0];
    }
    if (complete) {
        /* The other members wait, so the lock is not needed while their data is used. */
        void **all = calloc(members->count, sizeof *all);
        for (uint32_t i = 0; all && i < members->count; i++)
            all[i] = world->visitors[members->v[i]].brought;
        pthread_mutex_unlock(&world->lock);
        status = all ? meet(all, members->count, why) : HLO_OUT_OF_MEMORY;
        free(all);
        pthread_mutex_lock(&world->lock);
        for (uint32_t i = 0; i < members->count; i++) {
            visitor *v = &world->visitors[members->v[i]];
            v->place = NULL;
            v->status = status;
            v->why = *why;
        }
        world->awake += members->count - 1;
        pthread_cond_broadcast(&world->changed);
    } else if (wait_for_others(world, own)) {
        status = own->status;
        *why = own->why;
    } else {
        *why = hlo_world_stuck;
    }
    pthread_mutex_unlock(&world->lock);
    return status;
}

static message_list *list_of(hlo_world *world, int64_t channel, uint32_t from, uint32_t to) {
    const uint64_t key = ((uint64_t)channel * world->count + from) * world->count + to;
    return &world->messages[key * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

void hlo_world_send(hlo_world *world, hlo_message *message) {
    visitor *v = &world->visitors[message->to];
    pthread_mutex_lock(&world->lock);
    message_list *list = list_of(world, message->channel, message->from, message->to);
    *list->last = message;
    list->last = &message->next;
    if (v->place == v && v->channel == message->channel && v->from == message->from) {
        /* The receiver counts as awake from now on, so that its sender does not seem to deadlock.
         */
        v->place = NULL;
        world->awake++;
        pthread_cond_broadcast(&world->changed);
    }
    pthread_mutex_unlock(&world->lock);
}

static hlo_message *take_message(hlo_world *world, int64_t channel, uint32_t from, uint32_t to) {
    message_list *list = list_of(world, channel, from, to);
    for (hlo_message **at = &list->first; *at; at = &(*at)->next) {
        hlo_message *message = *at;
        if (message->channel != channel || message->from != from || message->to != to) continue;
        *at = message->next;
        if (!message->next) list->last = at;
        return message;
    }
    return NULL;
}

hlo_status hlo_world_receive(const hlo_seat *seat, int64_t channel, uint32_t from,
                             hlo_message **out_message, const char **why) {
    hlo_world *world = seat->world;
    const uint32_t number = hlo_seat_number(seat);
    visitor *own = &world->visitors[number];
    pthread_mutex_lock(&world->lock);
    *out_message = take_message(world, channel, from, number);
    if (!*out_message) {
        *own = (visitor){.place = own, .channel = channel, .from = from};
        if (wait_for_others(world, own)) *out_message = take_message(world, channel, from, number);
    }
    pthread_mutex_unlock(&world->lock);
    if (*out_message) return HLO_OK;
    *why = hlo_world_stuck;
    return HLO_INVALID_INPUT;
}

static void *thread_main(void *user) {
    const thread *t = user;
    hlo_world *world = t->world;
    pthread_mutex_lock(&world->lock);
    while (!world->open) pthread_cond_wait(&world->changed, &world->lock);
    pthread_mutex_unlock(&world->lock);
    if (!world->body) return NULL;
    world->body(world->arg, t->device);
    pthread_mutex_lock(&world->lock);
    fall_asleep(world);
    if (!--world->running) pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
    return NULL;
}

bool hlo_world_goes_on(void *user) {
    hlo_world *world = user;
    return !atomic_load(&world->stopped);
}

hlo_status hlo_world_run(hlo_world *world, void (*body)(void *arg, uint32_t device),
                         bool (*watch)(void *arg), void *arg) {
    uint32_t made = 0;
    world->awake = world->running = world->count;
    atomic_store(&world->stopped, false);
    world->open = world->stuck = false;
    for (int i = 0; i < MESSAGE_LISTS; i++) world->messages[i].last = &world->messages[i].first;
    for (uint32_t i = 0; i < world->count; i++) world->visitors[i] = (visitor){.place = NULL};
    for (; made < world->count; made++) {
        world->threads[made] = (thread){.world = world, .device = made};
        thread *t = &world->threads[made];
        if (pthread_create(&t->id, NULL, thread_main, t) != 0) break;
    }
    pthread_mutex_lock(&world->lock);
    world->body = made == world->count ? body : NULL;
    world->arg = arg;
    world->open = true;
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
    pthread_mutex_lock(&world->lock);
    while (watch && world->body && world->running) {
        enum { NANOSECONDS = 100000000, SECOND = 1000000000 };
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += NANOSECONDS;
        until.tv_sec += until.tv_nsec / SECOND;
        until.tv_nsec %= SECOND;
        pthread_cond_timedwait(&world->changed, &world->lock, &until);
        if (!world->running || !hlo_world_goes_on(world)) continue;
        pthread_mutex_unlock(&world->lock);
        const bool stops = !watch(arg);
        pthread_mutex_lock(&world->lock);
        if (!stops) continue;
        atomic_store(&world->stopped, true);
        world->stuck = true;
        pthread_cond_broadcast(&world->changed);
    }
    pthread_mutex_unlock(&world->lock);
    for (uint32_t i = 0; i < made; i++) pthread_join(world->threads[i].id, NULL);
    for (int i = 0; i < MESSAGE_LISTS; i++)
        while (world->messages[i].first) {
            hlo_message *message = world->messages[i].first;
            world->messages[i].first = message->next;
            hlo_arena_free(message->arena);
        }
    return made == world->count ? HLO_OK : HLO_OUT_OF_MEMORY;
}
