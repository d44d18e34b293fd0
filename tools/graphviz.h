/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing with Graphviz, if it is installed. */
#ifndef HLO_TOOLS_GRAPHVIZ_H
#define HLO_TOOLS_GRAPHVIZ_H

#include "hlo/pass.h"

/* An hlo_drawer that passes all graphs to one run of `dot -Tsvg`. If that program is missing or
 * fails, nothing is drawn, which is not an error. `user` is unused. */
hlo_drawer graphviz_draw;

#endif
