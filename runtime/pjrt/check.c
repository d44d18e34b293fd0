/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects modules that no plugin supports. */
#include "runtime/pjrt/check.h"

#include <string.h>

#include "ir/text/diag.h"

hlo_status pjrt_refuse(const hlo_module *module, const hlo_instr *value, const hlo_diag_sink *sink,
                       const char *why) {
    hlo_diag_emit(module, sink, HLO_ERROR, value->offset, strlen(value->name), "%s", why);
    return HLO_INVALID_INPUT;
}

const hlo_instr *pjrt_find_call(const hlo_module *module, const char *start) {
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
            if (target && strncmp(target, start, strlen(start)) == 0) return instr;
        }
    return NULL;
}

/* Rejects cuBLASLt calls, on which XLA's layout assignment aborts, unless that pass is disabled. */
static hlo_status check_calls(const hlo_module *module, const hlo_pjrt_options *options,
                              const hlo_diag_sink *sink) {
    const hlo_instr *call = pjrt_find_call(module, "__cublas$lt$matmul");
    for (size_t i = 0; call && i < options->setting_count; i++)
        if (strstr(options->settings[i], "layout-assignment")) call = NULL;
    return call ? pjrt_refuse(module, call, sink,
                              "XLA supports only cuBLASLt calls that it makes itself: use "
                              "--emit=qdq or --emit=ffi (docs/emit.md)")
                : HLO_OK;
}

/* Rejects parameters that plugins do not support: tuples, except for a single tuple of arrays. */
static hlo_status check_parameters(const hlo_module *module, const hlo_diag_sink *sink) {
    const hlo_computation *entry = module->entry;
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        const hlo_instr *parameter = entry->parameters[i];
        if (parameter->shape->type != HLO_TYPE_TUPLE) continue;
        if (entry->parameter_count > 1)
            return pjrt_refuse(
                module, parameter, sink,
                "a tuple parameter next to other parameters is not supported with a plugin");
        for (uint32_t k = 0; k < parameter->shape->rank; k++)
            if (parameter->shape->elements[k]->type == HLO_TYPE_TUPLE)
                return pjrt_refuse(module, parameter, sink,
                                   "a nested tuple parameter is not supported with a plugin");
    }
    return HLO_OK;
}

/* Rejects a number of devices that differs from the partitions of a partitioned module. */
static hlo_status check_partitions(const hlo_module *module, const hlo_pjrt_options *options,
                                   const hlo_diag_sink *sink) {
    const int64_t partitions = hlo_module_int(module, HLO_ATTR_NUM_PARTITIONS, 1);
    if (!options->partitioned || partitions <= 1 || partitions == options->devices) return HLO_OK;
    hlo_diag_emit(module, sink, HLO_ERROR, 0, 1,
                  "the module has %lld partitions, but %u devices are given", (long long)partitions,
                  options->devices);
    return HLO_INVALID_INPUT;
}

hlo_status pjrt_check_module(const hlo_module *module, const hlo_pjrt_options *options,
                             const hlo_diag_sink *sink) {
    hlo_status status = check_parameters(module, sink);
    if (status == HLO_OK) status = check_partitions(module, options, sink);
    return status == HLO_OK ? check_calls(module, options, sink) : status;
}
