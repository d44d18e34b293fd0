/* SPDX-License-Identifier: Apache-2.0 */
// Checks that declarations of the public headers link from C++ (run.sh compiles each header as
// C++).
#include <hlo/bisect.h>
#include <hlo/buffer.h>
#include <hlo/dump.h>
#include <hlo/ffi.h>
#include <hlo/pass.h>
#include <hlo/proto.h>
#include <hlo/runtime.h>
#include <hlo/memory.h>
#include <hlo/edit.h>
#include <hlo/text.h>

int main()
{
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    hlo_module *module = nullptr;
    const hlo_status refused = hlo_module_parse("no module", 9, "none", nullptr, &module);
    hlo_module_free(module);
    hlo_dump *dump = nullptr;
    const hlo_status none = hlo_dump_open("/none", nullptr, &dump);
    hlo_dump_free(dump);
    hlo_buffer_free(nullptr);
    hlo_event_free(nullptr);
    hlo_plan_options plan;
    hlo_plan_options_init(&plan);
    return refused == HLO_INVALID_INPUT && !options.target && none == HLO_INVALID_INPUT &&
                   !hlo_proto_recognize("text", 4) && plan.graph && hlo_opcode_parse("dot") == HLO_OP_DOT &&
                   !hlofp8_ffi_matmul_cpu(nullptr)
               ? 0
               : 1;
}
