/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are read and printed as in the C locale, whatever locale the program has set: with
 * another one strtod() stops at the point of `0.5`, and printf() writes a comma. */
#ifndef HLO_IR_FLOAT_C_LOCALE_H
#define HLO_IR_FLOAT_C_LOCALE_H

#include <locale.h>

/* The C library keeps one object for the C locale, so there is nothing to free. */
static inline locale_t hlo_c_locale_enter(void) {
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void hlo_c_locale_leave(const locale_t *before) {
    uselocale(*before);
}

/* Begins a public function that reads or prints numbers: until it returns, its thread is in the C
 * locale. */
#define HLO_IN_C_LOCALE                                                                            \
    const locale_t hlo_locale_before __attribute__((cleanup(hlo_c_locale_leave), unused)) =        \
        hlo_c_locale_enter()

#endif
