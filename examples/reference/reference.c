/* SPDX-License-Identifier: Apache-2.0 */
/* reference DUMP [PLUGIN TARGET]: runs all examples of the reference in the current folder, to
 * which some of them write files. DUMP is a folder that XLA wrote with --xla_dump_to. With a PJRT
 * plugin and a description of a GPU, also runs the examples of pjrt.h. Exits with status 1 if one
 * fails. */
#include "reference.h"

#include <string.h>

#include <hlo/text.h>

const char scaled[] =
    "HloModule scaled\n"
    "%maximum (x: f32[], y: f32[]) -> f32[] {\n"
    "  %x = f32[] parameter(0)\n"
    "  %y = f32[] parameter(1)\n"
    "  ROOT %m = f32[] maximum(%x, %y)\n"
    "}\n"
    "ENTRY %main (a: f8e4m3fn[32,64], b: f8e4m3fn[64,16], s: f32[]) -> (f32[32,16], f32[]) {\n"
    "  %a = f8e4m3fn[32,64]{1,0} parameter(0)\n"
    "  %b = f8e4m3fn[64,16]{1,0} parameter(1)\n"
    "  %s = f32[] parameter(2)\n"
    "  %aw = f32[32,64]{1,0} convert(%a)\n"
    "  %as = f32[32,64]{1,0} broadcast(%s), dimensions={}\n"
    "  %ad = f32[32,64]{1,0} multiply(%aw, %as)\n"
    "  %bd = f32[64,16]{1,0} convert(%b)\n"
    "  %d = f32[32,16]{1,0} dot(%ad, %bd), lhs_contracting_dims={1}, rhs_contracting_dims={0},\n"
    "    metadata={op_name=\"jit(f)/dense\" source_file=\"model.py\" source_line=3}\n"
    "  %zero = f32[] constant(0)\n"
    "  %amax = f32[] reduce(%d, %zero), dimensions={0,1}, to_apply=%maximum\n"
    "  ROOT %out = (f32[32,16]{1,0}, f32[]) tuple(%d, %amax)\n"
    "}\n";

const char wide[] =
    "HloModule wide\n"
    "ENTRY %main (x: f32[64,64], w: f32[64,64]) -> f32[64,64] {\n"
    "  %x = f32[64,64]{1,0} parameter(0)\n"
    "  %w = f32[64,64]{1,0} parameter(1)\n"
    "  ROOT %y = f32[64,64]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0},\n"
    "    metadata={op_name=\"jit(g)/dense\"}\n"
    "}\n";

static void print_diagnostic(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 100, hlo_file_writer(stderr));
}

const hlo_diag_sink sink = {print_diagnostic, NULL};

hlo_status read_text(const char *text, hlo_module **out_module) {
    return hlo_module_parse(text, strlen(text), "example.hlo", &sink, out_module);
}

static int failed;

static void report(const char *name, hlo_status status) {
    printf("%s: %s\n", name, hlo_status_name(status));
    failed |= status != HLO_OK;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 4) {
        fputs("usage: reference DUMP [PLUGIN TARGET]\n", stderr);
        return 2;
    }
    report("memory.h", example_memory()); /* first, because it sets the allocator */
    report("bisect.h", example_bisect());
    report("buffer.h", example_buffer());
    report("diag.h", example_diag());
    report("dump.h", example_dump(argv[1]));
    report("edit.h", example_edit());
    report("ffi.h", example_ffi());
    report("ir.h", example_ir());
    report("module.h", example_module());
    report("opcode.h", example_opcode());
    report("pass.h", example_pass());
    if (argc == 4) report("pjrt.h", example_pjrt(argv[2], argv[3]));
    report("proto.h", example_proto());
    report("report.h", example_report());
    report("runtime.h", example_runtime());
    report("status.h", example_status());
    report("text.h", example_text());
    report("version.h", example_version());
    report("writer.h", example_writer());
    return failed;
}
