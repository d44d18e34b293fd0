/* SPDX-License-Identifier: Apache-2.0 */
/* Creates random inputs from a seed. */
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "ir/devices/boundary.h"
#include "ir/float/float.h"
#include "ir/text/diag.h"
#include "runtime/io/arrays.h"

__extension__ typedef unsigned __int128 u128;

/* The generator of numpy.random.default_rng(seed), bit for bit. */

enum { LAYERS = 256 };

/* The state of PCG64 (XSL-RR output of a 128-bit congruential state; M. O'Neill, "PCG",
 * HMC-CS-2014-0905), which numpy's SeedSequence seeds. */
typedef struct generator {
    u128 state, increment;
    bool has_half; /* a 32-bit draw uses half of a 64-bit draw, the low half first */
    uint32_t half;
    /* The ziggurat of the normal distribution (J. Doornik, "An improved ziggurat method", 2005,
     * after G. Marsaglia and W. Tsang): layer 0 is the base with the tail, layer 255 is the widest
     * layer above it, and layer 1 is the top. */
    uint64_t accept[LAYERS]; /* a 52-bit draw below this number is accepted without a test */
    double width[LAYERS];    /* factor that converts a 52-bit draw to a point x in the layer */
    double height[LAYERS];   /* density at the layer's right edge */
} generator;

/* A hash, whose multiplier changes at every use, spreads the entropy over a pool of four
 * words (numpy.random.SeedSequence, after M. O'Neill's randutils::seed_seq_fe). */
enum { POOL = 4, HASH_SHIFT = 16 };

typedef struct hash {
    uint32_t constant, multiplier;
} hash;

static uint32_t hash_word(hash *h, uint32_t word) {
    word ^= h->constant;
    h->constant *= h->multiplier;
    word *= h->constant;
    return word ^ (word >> HASH_SHIFT);
}

static void step(generator *r) {
    const u128 multiplier = (u128)2549297995355413924u << 64 | 4865540595714422341u;
    r->state = r->state * multiplier + r->increment;
}

static uint64_t next64(generator *r) {
    step(r);
    uint64_t folded = (uint64_t)(r->state >> 64) ^ (uint64_t)r->state;
    unsigned turn = (unsigned)(r->state >> 122);
    return folded >> turn | folded << (-turn & 63);
}

static uint32_t next32(generator *r) {
    if (r->has_half) {
        r->has_half = false;
        return r->half;
    }
    uint64_t both = next64(r);
    r->has_half = true;
    r->half = (uint32_t)(both >> 32);
    return (uint32_t)both;
}

static double next_double(generator *r) {
    return (double)(next64(r) >> 11) * 0x1p-53;
}

/* Right edge of the base layer, and the area of each layer, including the tail. The area is 4 ulp
 * below the exact area: numpy's tables were computed in doubles, and the tables here must have the
 * same bits. */
static const double edge = 3.6541528853610088;
static const double area = 0.0049286732339746519;

/* Returns the density at x, correctly rounded independently of libm. One exception is a value
 * within 0.0003 ulp of a tie, for which numpy's table has the other neighbor. */
static double density(int layer, double x) {
    double f = (double)expl(-0.5 * x * x);
    return layer == 38 ? nextafter(f, 1) : f;
}

/* Draws a number like numpy's Generator.standard_normal(). */
static double random_normal(generator *r) {
    for (;;) {
        uint64_t bits = next64(r);
        unsigned layer = bits & 0xff;
        bool negative = bits >> 8 & 1;
        uint64_t magnitude = bits >> 9 & 0xfffffffffffff;
        double x = (double)magnitude * r->width[layer];
        if (negative) x = -x;
        if (magnitude < r->accept[layer]) return x;
        if (layer == 0) {
            /* Draw from the tail, by Marsaglia's method of two exponentials. */
            for (;;) {
                x = -(1 / edge) * log1p(-next_double(r));
                double y = -log1p(-next_double(r));
                if (y + y > x * x) return (magnitude >> 8 & 1) ? -(edge + x) : edge + x;
            }
        }
        double low = r->height[layer], high = r->height[layer - 1];
        if ((high - low) * next_double(r) + low < exp(-0.5 * x * x)) return x;
    }
}

static void random_seed(generator *r, uint64_t seed) {
    uint32_t words[8];
    hash in = {0x43b0d7e5u, 0x931e8875u};
    uint32_t pool[POOL];
    for (int i = 0; i < POOL; i++) pool[i] = hash_word(&in, i < 2 ? (uint32_t)(seed >> 32 * i) : 0);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to) {
                const uint32_t mixed =
                    0xca01f9ddu * pool[to] - 0x4973f715u * hash_word(&in, pool[from]);
                pool[to] = mixed ^ (mixed >> HASH_SHIFT);
            }
    hash next = {0x8b51f9ddu, 0x58f38dedu};
    for (int i = 0; i < 8; i++) words[i] = hash_word(&next, pool[i % POOL]);
    u128 wide[2] = {0}; /* the high 64-bit half comes first */
    for (int i = 0; i < 4; i++)
        wide[i / 2] = wide[i / 2] << 64 | (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
    r->increment = wide[1] << 1 | 1;
    r->state = 0;
    step(r);
    r->state += wide[0];
    step(r);
    r->has_half = false;
    r->half = 0;
    const double scale = 0x1p52;
    int last = LAYERS - 1;
    double x = edge, f = density(last, x);
    r->accept[0] = (uint64_t)(x * f / area * scale);
    r->width[0] = area / f / scale;
    r->height[0] = 1;
    r->width[last] = x / scale;
    r->height[last] = f;
    for (int i = last - 1; i >= 1; i--) {
        double wider = x;
        x = sqrt(-2 * (double)logl(area / x + f));
        f = density(i, x);
        r->accept[i + 1] = (uint64_t)rint(x / wider * scale);
        r->width[i] = x / scale;
        r->height[i] = f;
    }
    r->accept[1] = 0;
}

/* Realistic numbers resemble those of a trained model: weights as layers initialize them, scales
 * that fit the quantized values, and data with mean 0 and deviation 1. */

/* How floats of an input are drawn: as normal numbers, or as their absolute values. */
typedef struct draw_role {
    double mean, deviation;
    bool positive;
} draw_role;

/* A value that depends on a parameter: an element of a tuple, or an array. */
typedef struct visit {
    const hlo_instruction *instr;
    int64_t element; /* index of the tuple's element, or -1 for an array */
} visit;

enum { MAX_VISITS = 512 };

typedef struct search {
    visit visits[MAX_VISITS];
    uint32_t count;
    const hlo_instruction *dot; /* the dot that uses the value and comes first in the text */
    double contracted;          /* number of terms of the dot's sums */
} search;

static void add(search *s, const hlo_instruction *instr, int64_t element) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->visits[i].instr == instr && s->visits[i].element == element) return;
    if (s->count < MAX_VISITS) s->visits[s->count++] = (visit){instr, element};
}

static void follow_call(search *s, const hlo_computation *called, uint32_t operand) {
    if (called && operand < called->parameter_count &&
        hlo_shape_is_array(called->parameters[operand]->shape))
        add(s, called->parameters[operand], -1);
}

/* Adds the results of a user of a value that depend on the value. */
static void follow(search *s, visit from, const hlo_instruction *user, uint32_t operand) {
    switch (user->op) {
    case HLO_OP_DOT: {
        if (s->dot && s->dot->offset <= user->offset) return;
        const hlo_ints *dims = hlo_instr_ints(user, operand ? HLO_ATTR_RHS_CONTRACTING_DIMS
                                                            : HLO_ATTR_LHS_CONTRACTING_DIMS);
        const hlo_shape *shape = hlo_instr_operand(user, operand)->shape;
        s->dot = user;
        s->contracted = 1;
        for (uint32_t i = 0; i < dims->count; i++) s->contracted *= (double)shape->dims[dims->v[i]];
        return;
    }
    case HLO_OP_TUPLE:
        if (from.element < 0) add(s, user, operand);
        return;
    case HLO_OP_GET_TUPLE_ELEMENT:
        if (from.element == hlo_instr_int(user, HLO_ATTR_INDEX, 0)) add(s, user, -1);
        return;
    case HLO_OP_WHILE:
        add(s, hlo_instr_comp(user, HLO_ATTR_BODY)->parameters[0], from.element);
        return;
    case HLO_OP_OPT_BARRIER: add(s, user, from.element); return;
    case HLO_OP_CALL: follow_call(s, hlo_instr_comp(user, HLO_ATTR_TO_APPLY), operand); return;
    case HLO_OP_FUSION: follow_call(s, hlo_instr_comp(user, HLO_ATTR_CALLS), operand); return;
    default: break;
    }
    const bool moves = hlo_op_is(user->op, HLO_MOVEMENT) || user->op == HLO_OP_DYNAMIC_SLICE;
    const bool scales = user->op == HLO_OP_MULTIPLY || user->op == HLO_OP_DIVIDE ||
                        user->op == HLO_OP_CONVERT || user->op == HLO_OP_CLAMP ||
                        user->op == HLO_OP_MAXIMUM || user->op == HLO_OP_MINIMUM;
    if (from.element < 0 && ((moves && operand == 0) || scales)) add(s, user, -1);
}

/* Returns the number of terms of the sums with the parameter as factor, or 0 without a dot. */
static double terms_of(const hlo_instruction *parameter) {
    search s = {.count = 0};
    if (!hlo_shape_is_array(parameter->shape)) return 0;
    add(&s, parameter, -1);
    for (uint32_t at = 0; at < s.count; at++) {
        const visit from = s.visits[at];
        for (const hlo_use *use = from.instr->uses; use; use = use->next)
            follow(&s, from, use->user, (uint32_t)(use - use->user->operands));
        if (from.instr == from.instr->parent->root && from.element < 0) {
            /* Continue with the callers of the computation that returns a value. */
            const hlo_module *module = from.instr->parent->module;
            for (const hlo_computation *c = module->first; c; c = c->next)
                for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i))
                    if (i->op == HLO_OP_CALL &&
                        hlo_instr_comp(i, HLO_ATTR_TO_APPLY) == from.instr->parent)
                        add(&s, i, -1);
        }
    }
    return s.dot ? s.contracted : 0;
}

static bool has(const char *name, const char *word) {
    return strcasestr(name, word) != NULL;
}

/* Returns the expected amax of the data that the parameter scales or measures. The data has
 * deviation 1, or consists of weights for sums of 64 terms. Gradients may be smaller, but need no
 * smaller amax, because f8e5m2 represents much smaller values. */
static double amax_of(const char *name) {
    return has(name, "kernel") || has(name, "weight") || has(name, "rhs") ? 0.5 : 4;
}

/* Returns the role that a parameter, or an array of that shape in it, has in a trained model. The
 * role follows from the parameter's name and from the dots that use it. */
static draw_role realistic_role(const hlo_instruction *parameter, const hlo_shape *shape) {
    const char *op_name = hlo_instr_op_name(parameter);
    const char *name = op_name ? op_name : parameter->name;
    if (has(name, "amax")) return (draw_role){amax_of(name), 0, true};
    if (has(name, "['scale") || has(name, "____scale__")) return (draw_role){1, 0.1, true};
    if (has(name, "_scale"))
        return (draw_role){amax_of(name) / (has(name, "grad") ? 57344 : 448), 0, true};
    if (has(name, ".nu")) return (draw_role){0x1p-12, 0x1p-14, true};
    if (has(name, ".mu")) return (draw_role){0, 0x1p-7, false};
    if (has(name, "bias")) return (draw_role){0, 0.1, false};
    if (hlo_type_is_fp8(shape->type)) return (draw_role){0, 64, false};
    if (has(name, "embedding"))
        return (draw_role){0, 1 / sqrt((double)shape->dims[shape->rank - 1]), false};
    const double terms = shape->rank > 1 ? terms_of(parameter) : 0;
    const bool weight = has(name, "kernel") || has(name, "weight") || has(name, "param");
    return (draw_role){0, weight && terms > 0 ? 1 / sqrt(terms) : 1, false};
}

/* True if the name is that of a parameter whose values are never negative: a scale, a maximum of
 * absolute values, a second moment. */
static bool is_positive(const char *op_name) {
    if (!op_name) return false;
    if (strstr(op_name, "_scale") || strstr(op_name, "amax") || strstr(op_name, "['scale"))
        return true;
    for (const char *at = op_name; (at = strstr(at, ".nu")); at++)
        if (!isalnum((unsigned char)at[3]) && at[3] != '_') return true;
    return false;
}

/* Draws the elements of an array of a type that is not complex. */
static void draw_elements(generator *random, hlo_type type, draw_role role, void *data,
                          size_t size) {
    const size_t width = hlo_types[type].bytes;
    char *at = data;
    role.positive |= type == HLO_TYPE_F8E8M0FNU; /* the type has no negative numbers */
    /* Draw types that numpy does not treat as integers like floats. */
    const bool integer =
        type == HLO_TYPE_PRED || (hlo_type_is_integer(type) && hlo_types[type].bits >= 8);
    for (size_t done = 0; done < size; done += width, at += width) {
        if (integer) { /* like Generator.integers(0, bound) */
            const uint64_t bound = type == HLO_TYPE_PRED ? 2 : 8;
            hlo_number_store(type, at, (double)(next32(random) * bound >> 32));
        } else {
            float value = (float)(role.mean + role.deviation * random_normal(random));
            hlo_number_store(type, at, role.positive ? fabsf(value) : value);
        }
    }
}

/* Returns a number that depends on both arguments. */
static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * 0x9e3779b97f4a7c15;
    a = (a ^ a >> 32) * 0xd6e8feb86659fd93;
    return a ^ a >> 32;
}

void hlo_draw_received(const hlo_arrays *inputs, uint32_t device, int64_t channel, uint64_t number,
                       uint32_t leaf, hlo_type type, void *out, size_t size) {
    generator random;
    uint64_t seed = mix(inputs->seed + device, (uint64_t)channel);
    random_seed(&random, mix(mix(seed, number), leaf));
    const bool wide = inputs->draw == HLO_DRAW_REALISTIC && hlo_type_is_fp8(type);
    const draw_role role = {0, wide ? 64 : 1, false};
    if (type == HLO_TYPE_C64 || type == HLO_TYPE_C128)
        type = type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64;
    draw_elements(&random, type, role, out, size);
}

static hlo_status draw_all(const hlo_module *module, const hlo_leaves *leaves, uint64_t seed,
                           hlo_draw kind, const hlo_diag_sink *sink, hlo_arrays *out) {
    generator random;
    random_seed(&random, seed);
    for (size_t i = 0; i < leaves->count; i++) {
        const hlo_shape *shape = leaves->shapes[i];
        const hlo_instruction *parameter = module->entry->parameters[leaves->owners[i]];
        const bool sized = hlo_shape_count(shape) >= 0;
        if (!sized || hlo_types[shape->type].class == HLO_CLASS_COMPLEX) {
            hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_UNSUPPORTED, parameter->offset, 1,
                          "cannot generate random inputs %s",
                          sized ? "of complex type" : "of unknown size");
            return HLO_INVALID_INPUT;
        }
        hlo_array *array = hlo_arrays_add(out, shape->type, shape->rank, shape->dims, false);
        if (!array) return HLO_OUT_OF_MEMORY;
        draw_role role = kind == HLO_DRAW_REALISTIC
                             ? realistic_role(parameter, shape)
                             : (draw_role){0, 1, is_positive(hlo_instr_op_name(parameter))};
        draw_elements(&random, shape->type, role, array->data, array->size);
    }
    return HLO_OK;
}

/* Returns the groups of devices that have equal arrays for leaf `leaf` of a value; NULL: all. */
static const hlo_device_groups *equal_devices(hlo_arena *arena, const hlo_sharding *sharding,
                                              size_t leaf) {
    if (sharding && sharding->kind == HLO_SHARDING_TUPLE)
        sharding = leaf < sharding->count ? sharding->v[leaf] : NULL;
    return sharding ? hlo_device_groups_of_sharding(arena, sharding, HLO_GET) : NULL;
}

/* Returns the device whose array a device of these groups has. */
static uint32_t source_of(const hlo_device_groups *groups, uint32_t device, uint32_t devices) {
    const bool known = groups && device < groups->count && groups->of[device] < devices;
    return known ? groups->of[device] : 0;
}

uint32_t hlo_draw_source(hlo_arena *arena, const hlo_sharding *sharding, size_t leaf,
                         uint32_t device, uint32_t devices) {
    return source_of(equal_devices(arena, sharding, leaf), device, devices);
}

/* Draws the inputs of all devices. Devices that must have equal inputs share them. */
static hlo_status draw_each(const hlo_module *module, const hlo_leaves *leaves, hlo_draw kind,
                            uint64_t seed, uint32_t devices, const hlo_diag_sink *sink,
                            hlo_arrays *out) {
    jmp_buf recover;
    hlo_status status = HLO_OK;
    for (uint32_t d = 0; d < devices && status == HLO_OK; d++)
        status = draw_all(module, leaves, seed + d, kind, sink, out);
    if (status != HLO_OK || devices == 1) return status;
    hlo_arena *arena = hlo_arena_new(&recover);
    if (!arena || setjmp(recover)) {
        hlo_arena_free(arena);
        return HLO_OUT_OF_MEMORY;
    }
    uint32_t *sources = hlo_arena_array(arena, devices * leaves->count + 1, sizeof *sources);
    /* Set sources[device * leaves + leaf] to the device whose array the device uses for the
     * leaf. */
    const hlo_instruction *marked;
    const bool whole = hlo_devices_unpartitioned(module, &marked);
    for (size_t i = 0, first = 0; i < leaves->count; i++) {
        if (i && leaves->owners[i - 1] != leaves->owners[i]) first = i;
        const hlo_instruction *parameter = module->entry->parameters[leaves->owners[i]];
        const hlo_sharding *sharding = whole ? NULL : hlo_instr_sharding(parameter);
        const hlo_device_groups *groups = equal_devices(arena, sharding, i - first);
        for (uint32_t d = 0; d < devices; d++)
            sources[d * leaves->count + i] = source_of(groups, d, devices);
    }
    for (size_t i = 0; i < devices * leaves->count; i++) {
        const hlo_array *from = &out->items[sources[i] * leaves->count + i % leaves->count];
        if (from != &out->items[i]) memcpy(out->items[i].data, from->data, from->size);
    }
    hlo_arena_free(arena);
    return HLO_OK;
}

hlo_status hlo_arrays_draw_each(const hlo_module *module, hlo_draw kind, uint64_t seed,
                                uint32_t devices, const hlo_diag_sink *sink, hlo_arrays **out) {
    *out = NULL;
    hlo_leaves leaves;
    hlo_status status = hlo_leaves_of(module, HLO_INPUTS, &leaves);
    if (status != HLO_OK) return status;
    status = hlo_arrays_new(out);
    if (status == HLO_OK) {
        (*out)->seed = seed;
        (*out)->draw = kind;
        status = draw_each(module, &leaves, kind, seed, devices, sink, *out);
    }
    hlo_leaves_free(&leaves);
    if (status == HLO_OK) return HLO_OK;
    hlo_arrays_free(*out);
    *out = NULL;
    return status;
}

hlo_status hlo_arrays_draw(const hlo_module *module, uint64_t seed, const hlo_diag_sink *sink,
                           hlo_arrays **out) {
    return hlo_arrays_draw_each(module, HLO_DRAW_NORMAL, seed, 1, sink, out);
}
