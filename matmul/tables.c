/* The tables epilogue.def and target.def. */
#include <string.h>

#include "matmul/call.h"

const hlo_epilogue_info hlo_epilogues[HLO_EPILOGUE_COUNT] = {
#define HLO_EPILOGUE(id, bias, relu, gelu, aux) {#id, bias, relu, gelu, aux},
#include "matmul/epilogue.def"
#undef HLO_EPILOGUE
};

hlo_epilogue hlo_epilogue_find(const char *name) {
    for (int i = 0; i < HLO_EPILOGUE_COUNT; i++)
        if (strcmp(hlo_epilogues[i].name, name) == 0) return (hlo_epilogue)i;
    return HLO_EPILOGUE_COUNT;
}

const char *hlo_epilogue_name(hlo_epilogue epilogue) {
    return hlo_epilogues[epilogue].name;
}

hlo_epilogue hlo_epilogue_add(hlo_epilogue epilogue, hlo_epilogue what) {
    const hlo_epilogue_info *a = &hlo_epilogues[epilogue], *b = &hlo_epilogues[what];
    bool activated = a->relu || a->gelu;
    if ((activated && (b->bias || b->relu || b->gelu)) || (a->bias && b->bias))
        return HLO_EPILOGUE_COUNT;
    for (int i = 0; i < HLO_EPILOGUE_COUNT; i++) {
        const hlo_epilogue_info *row = &hlo_epilogues[i];
        if (row->bias == (a->bias || b->bias) && row->relu == (a->relu || b->relu) &&
            row->gelu == (a->gelu || b->gelu) && row->aux == (a->aux || b->aux))
            return (hlo_epilogue)i;
    }
    return HLO_EPILOGUE_COUNT;
}

static const hlo_target_info targets[] = {
#define HLO_TARGET(sm, fp8, tn_only, workspace, gpu, fp8_tflops, bf16_tflops, memory_gbs)          \
    {sm, fp8, tn_only, workspace, gpu, fp8_tflops, bf16_tflops, memory_gbs},
#include "matmul/target.def"
#undef HLO_TARGET
};

const hlo_target_info *hlo_target_find(int sm) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].sm == sm) return &targets[i];
    return NULL;
}
