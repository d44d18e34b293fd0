/* SPDX-License-Identifier: Apache-2.0 */
/* Entry point of this folder: parses a text to a module. */
#ifndef HLO_GRAMMAR_TEXT_PARSE_H
#define HLO_GRAMMAR_TEXT_PARSE_H

#include "hlo/text.h"
#include "ir/text/file.h"

/* Parses a module from a text that begins in line `line` of its file; see hlo_module_parse().
 * Decrements *errors_left for each reported error. The module takes ownership of the content, see
 * hlo_content_take(). */
hlo_status hlo_text_parse(hlo_content *content, const char *name, uint32_t line,
                          unsigned *errors_left, const hlo_diag_sink *sink,
                          hlo_module **out_module);

#endif
