/* SPDX-License-Identifier: Apache-2.0 */
/* Files of amaxes, from which `--quantize=static` computes scales. A file is a JSON object:
 *
 *   {"version": 1, "module": NAME, "fingerprint": HEX, "amaxes": {VALUE: NUMBER or [NUMBER, ...]}}
 *
 * VALUE is the name of an instruction when the pass quantize-wide runs. A list has the amax of each
 * slice along dimension 0. */
#ifndef HLO_PASSES_QUANTIZE_AMAXES_H
#define HLO_PASSES_QUANTIZE_AMAXES_H

#include <jansson.h>

#include "hlo/pass.h"
#include "ir/ir.h"

/* Reads options->amaxes or options->amaxes_text. The caller releases *out_amaxes, the object
 * "amaxes", with json_decref(). Returns HLO_INVALID_INPUT, with an error in options->sink, if the
 * file cannot be read, is not such a file, has an amax that is not a finite number of at least 0,
 * or has the fingerprint of another module. May also return HLO_OUT_OF_MEMORY. */
hlo_status hlo_amaxes_read(const hlo_pass_options *options, const hlo_module *module,
                           json_t **out_amaxes);

/* Finds the amax of the value `name`, or the `count` amaxes of its slices if `count` is not 0.
 * Returns false if they are not recorded, or if an amax is 0, from which no scale follows. */
bool hlo_amaxes_find(const json_t *amaxes, const char *name, uint32_t count, double *out);

/* Writes a file of amaxes of a module. Returns HLO_INVALID_INPUT if `out` cannot be written to, and
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_amaxes_write(json_t *amaxes, const hlo_module *module, FILE *out);

#endif
