/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the pass manager that the other files of this folder use. */
#ifndef HLO_PASSES_PIPELINE_PIPELINE_H
#define HLO_PASSES_PIPELINE_PIPELINE_H

#include "hlo/pass.h"

/* Fills in the defaults and checks the options, as hlo_pass_options_check() does. */
hlo_status hlo_pass_options_take(const hlo_pass_options *options, hlo_pass_options *out);

#endif
