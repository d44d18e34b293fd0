/* SPDX-License-Identifier: Apache-2.0 */
/* Entry point: parses the text of a file to rules. */
#include "grammar/rules/ast.h"
#include "ir/text/diag.h"
/* Keep this order: the scanner's header uses the parser's types. */
/* clang-format off */
#include "rules.tab.h"
#include "rules.lex.h"
/* clang-format on */

/* Real rule files are far smaller. Steps that are quadratic in the size are fast below this
 * limit. */
enum { LARGEST_FILE = 1 << 20 };

hlo_status hlo_rules_parse(hlo_module *owner, const hlo_rule_vocabulary *words, unsigned max_errors,
                           const hlo_diag_sink *sink, const hlo_rules **out_rules) {
    rules_parser p = {
        .owner = owner, .words = words, .sink = sink, .faults = hlo_error_budget_new(max_errors)};
    *out_rules = NULL;
    if (owner->source_size > LARGEST_FILE) {
        hlo_diag_emit(owner, sink, HLO_ERROR, HLO_DIAG_RULE, 0, 0, "the rules exceed 1 MB");
        return HLO_INVALID_INPUT;
    }
    yyscan_t scanner;
    rules_begin(&p);
    rules_yylex_init_extra(&p, &scanner);
    rules_yy_scan_bytes(owner->source, (int)owner->source_size, scanner);
    const bool syntax = rules_yyparse(scanner, &p) != 0;
    hlo_status status = hlo_error_budget_end(&p.faults, owner, sink);
    if (syntax || status != HLO_OK) return HLO_INVALID_INPUT;

    *out_rules = rules_take(&p);
    return HLO_OK;
}
