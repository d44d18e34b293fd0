/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library. Within a minor release, a program runs with every library that is not
 * older than the headers with which it was compiled. */
#ifndef HLO_VERSION_H
#define HLO_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The version of the headers. CMakeLists.txt has the same version. */
#define HLO_VERSION_MAJOR 0
#define HLO_VERSION_MINOR 1
#define HLO_VERSION_PATCH 0

/* The version of the headers as text. */
#define HLO_VERSION "0.1.0"

/* The version of the headers as a number that can be compared: major * 1000000 + minor * 1000 +
 * patch. */
#define HLO_VERSION_NUMBER                                                                         \
    (HLO_VERSION_MAJOR * 1000000 + HLO_VERSION_MINOR * 1000 + HLO_VERSION_PATCH)

/* Returns the version of the library as text, such as "0.1.0". It differs from HLO_VERSION if the
 * program was compiled with the headers of another version. The string is static. */
const char *hlo_version(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
