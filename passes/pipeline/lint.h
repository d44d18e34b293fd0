/* Lints: what is likely wrong with the scales of a program. They are rows of why.def, called
 * lint-*. */
#ifndef HLO_PASSES_LINT_H
#define HLO_PASSES_LINT_H

#include "passes/verdict/remark.h"

/* Adds a lint about `at` to the report, with particulars to follow its sentence; NULL: none. */
void hlo_remark_lint(hlo_pass_context *context, hlo_reason reason, const hlo_instr *at,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What the module has before any pass. Works on a copy of it, *copy, which the caller frees, also
 * after an error; `recover` is where the arenas jump to. HLO_OUT_OF_MEMORY. */
hlo_status hlo_lint_as_read(hlo_pass_context *context, hlo_module **copy, jmp_buf *recover);
/* What it has after them all. */
void hlo_lint_as_left(hlo_pass_context *context);

#endif
