/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program that sets no locale: sets the locale of the environment, as programs
 * that use the library may do. */
#include <locale.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_locale(void) {
    if (!setlocale(LC_ALL, "")) abort();
}
