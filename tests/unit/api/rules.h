/* SPDX-License-Identifier: Apache-2.0 */
/* A rules file that removes a double negation. */
#ifndef HLO_TESTS_UNIT_API_RULES_H
#define HLO_TESTS_UNIT_API_RULES_H

static const char rules[] = "phase algebra measure expression_size\n"
                            "rule both %x = negate(negate(%y)) => %y\n"
                            "  example\n"
                            "    ENTRY e { p = f32[4] parameter(0)\n"
                            "              n = f32[4] negate(p)\n"
                            "              ROOT m = f32[4] negate(n) }\n"
                            "  end\n";

#endif
