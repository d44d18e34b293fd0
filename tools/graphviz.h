/* Drawing by Graphviz, where the machine has it. */
#ifndef HLO_TOOLS_GRAPHVIZ_H
#define HLO_TOOLS_GRAPHVIZ_H

#include "hlo/pass.h"

/* An hlo_drawer: all graphs through one run of `dot -Tsvg`. Where there is no such program, or it
 * fails, nothing is drawn, which is no error. `user` is not used. */
hlo_drawer graphviz_draw;

#endif
