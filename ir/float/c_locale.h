/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and prints numbers in the C locale, regardless of the program's locale. In another locale,
 * strtod() may stop at the point of `0.5`, and printf() may write a comma. */
#ifndef HLO_IR_FLOAT_C_LOCALE_H
#define HLO_IR_FLOAT_C_LOCALE_H

#include <locale.h>

static inline void hlo_c_locale_leave(const locale_t *before) {
    uselocale(*before);
}

/* Begins a public function that reads or prints numbers: until it returns, its thread uses the C
 * locale. The C library has a static object for the C locale, so nothing needs to be freed. */
#define HLO_IN_C_LOCALE                                                                            \
    const locale_t hlo_locale_before __attribute__((cleanup(hlo_c_locale_leave), unused)) =        \
        uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0))

#endif
