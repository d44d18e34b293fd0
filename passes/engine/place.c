/* Places of new instructions.
 *
 * Every new instruction is made before one place, the first of the roots that are replaced. An
 * operand that stands behind that place (a scale defined after the matmul's first user) is moved
 * before it, which is possible exactly when it does not depend on a replaced root. */
#include <string.h>

#include "passes/analysis/pin.h"
#include "passes/engine/rewrite.h"

enum { MOVE_LIMIT = 256, DEPEND_LIMIT = 1024 };

bool hlo_rule_refuse(hlo_rule_env *env, const char *reason, const hlo_instr *blocker) {
    env->unbuildable = true;
    if (env->reason != HLO_REASON_COUNT || !reason) return false;
    env->reason = hlo_reason_find(reason);
    env->blocker = blocker;
    return false;
}

typedef struct hlo_rule_move {
    hlo_instr *instr, *place;
    hlo_instr *after; /* right before the place when the move was planned; NULL: none */
} hlo_rule_move;

static const hlo_rule_move *find_move(const hlo_rule_env *env, const hlo_instr *value) {
    for (uint32_t i = 0; i < env->move_count; i++)
        if (env->moves[i].instr == value) return &env->moves[i];
    return NULL;
}

/* True if `value` stands before the place already, or will after the planned moves. */
static bool stands_before(const hlo_rule_env *env, const hlo_instr *value) {
    if (value == env->build->at) return false;
    if (hlo_engine_before(env->engine, value, env->build->at)) return true;
    const hlo_rule_move *move = find_move(env, value);
    return move && (move->place == env->build->at ||
                    hlo_engine_before(env->engine, move->place, env->build->at));
}

/* Plans to move `value`, operands first, before the place. `users`: the number of values on the
 * path to the one that hlo_rule_hoist_before() is for, which move after it. */
static bool hoist_for(hlo_rule_env *env, hlo_instr *value, uint32_t users) {
    if (stands_before(env, value)) return true;
    if (value == env->build->at || env->move_count + users >= MOVE_LIMIT || find_move(env, value))
        return hlo_rule_refuse(env, "depends-on-result", value);
    if (value->pin)
        return hlo_rule_refuse(env, hlo_reason_name((size_t)hlo_pin_reason(value)), value);
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!hoist_for(env, hlo_instr_operand(value, i), users + 1)) return false;
    if (env->move_count + users >= MOVE_LIMIT)
        return hlo_rule_refuse(env, "depends-on-result", value);
    hlo_arena_grow(env->context->scratch, &env->moves, env->move_count, &env->move_capacity,
                   sizeof *env->moves);
    env->moves[env->move_count++] = (hlo_rule_move){value, env->build->at, env->build->at->prev};
    return true;
}

bool hlo_rule_hoist_before(hlo_rule_env *env, hlo_instr *value) {
    return hoist_for(env, value, 0);
}

void hlo_rule_move_all(hlo_rule_env *env) {
    /* Moves each value to the point where new instructions were made when its move was planned. */
    for (uint32_t i = 0; i < env->move_count; i++) {
        const hlo_rule_move *m = &env->moves[i], *last = i ? m - 1 : NULL;
        const bool again = last && last->after == m->after && last->place == m->place;
        hlo_instr *after = again ? last->instr : m->after;
        hlo_engine_move(env->engine, m->instr, after ? after->next : m->place->parent->first);
    }
}

bool hlo_rule_shape_fits(hlo_rule_env *env, const hlo_shape *shape) {
    if (!hlo_shape_is_array(shape) || hlo_shape_bytes(shape) >= 0) return true;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) return true;
    return hlo_rule_refuse(env, "too-large", NULL);
}

bool hlo_rule_admits(hlo_builder *b, const hlo_shape *shape, uint32_t count,
                     hlo_instr *const *operands) {
    hlo_rule_env *env = (hlo_rule_env *)b; /* its first member is the builder */
    if (!hlo_rule_shape_fits(env, shape)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!hlo_rule_hoist_before(env, operands[i])) return false;
    return true;
}

static bool depends(hlo_rule_env *env, const hlo_instr *value, const hlo_instr *from,
                    uint32_t *budget) {
    if (value == from) return true;
    if (hlo_engine_before(env->engine, value, from)) return false;
    if (!*budget) return true;
    --*budget;
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (depends(env, hlo_instr_operand(value, i), from, budget)) return true;
    return false;
}

bool hlo_rule_depends(hlo_rule_env *env, const hlo_instr *value, const hlo_instr *from) {
    uint32_t budget = DEPEND_LIMIT;
    return depends(env, value, from, &budget);
}
