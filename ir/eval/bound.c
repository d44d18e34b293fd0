#include "ir/eval/kernel.h"
#define B(n)                                                                                       \
    hlo_status n(const hlo_bound_call *b) {                                                        \
        (void)b;                                                                                   \
        return HLO_INVALID_INPUT;                                                                  \
    }
B(hlo_bound_exact)
B(hlo_bound_elementwise)
B(hlo_bound_compare_op) B(hlo_bound_convert) B(hlo_bound_move) B(hlo_bound_dot) B(hlo_bound_reduce)
    B(hlo_bound_scatter) B(hlo_bound_indexed) B(hlo_bound_sort) B(hlo_bound_moved)
