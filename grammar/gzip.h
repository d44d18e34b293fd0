/* SPDX-License-Identifier: Apache-2.0 */
/* Inflates gzip-compressed files. */
#ifndef HLO_GRAMMAR_GZIP_H
#define HLO_GRAMMAR_GZIP_H

#include "ir/text/file.h"

/* Replaces the compressed bytes, which start with gzip's magic number, by the uncompressed bytes.
 * The caller frees content->bytes in any case. Returns HLO_INVALID_INPUT, with the reason in
 * *out_why, or HLO_OUT_OF_MEMORY. */
hlo_status hlo_gzip_inflate(hlo_content *content, const char **out_why);

#endif
