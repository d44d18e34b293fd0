/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: sets the locale of the environment in a program that sets none, as programs that use
 * the library may do. */
#include <locale.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_locale(void) {
    if (!setlocale(LC_ALL, "")) abort();
}
