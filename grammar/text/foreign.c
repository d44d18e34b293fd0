/* Files of other tools that users take for HLO, recognized by their first bytes. */
#include "grammar/text/foreign.h"

#include <string.h>

#define FROM_XLA                                                                                   \
    "; set XLA_FLAGS=--xla_dump_to=DIR for HLO text, or in JAX print "                             \
    "lowered.as_text(dialect=\"hlo\")"

enum { LOOKED_AT = 4096 };

typedef struct kind {
    const char *start; /* first bytes of the file */
    size_t size;
    const char *later; /* must follow in the first LOOKED_AT bytes; "": nothing must */
    const char *hint;
} kind;

#define START(bytes) (bytes), sizeof(bytes) - 1

static const kind kinds[] = {
    {START("ML\xefR"), "", "this is MLIR bytecode, not HLO" FROM_XLA},
    {START("module @"), "", "this is MLIR text, not HLO" FROM_XLA},
    {START("module attributes"), "", "this is MLIR text, not HLO" FROM_XLA},
    {START("module {"), "func", "this is MLIR text, not HLO" FROM_XLA},
    {START("builtin.module"), "", "this is MLIR text, not HLO" FROM_XLA},
    {START("\"builtin.module\""), "", "this is MLIR text, not HLO" FROM_XLA},
    {START("func.func"), "", "this is MLIR text, not HLO" FROM_XLA},
    {START("#loc"), "", "this is MLIR text, not HLO" FROM_XLA},
    {START("["), "TensorsGraphInfo:",
     "this is a file of torch_xla's XLA_SAVE_TENSORS_FILE, not HLO; set XLA_SAVE_TENSORS_FMT=hlo "
     "and "
     "copy the lines between ## BEGIN_GRAPH and ## END_GRAPH to a file"},
    {START("hlo_module {"), "", "this is protobuf text, not HLO" FROM_XLA},
    {START("PK\x03\x04"), "", "this is a zip archive, not HLO" FROM_XLA},
    {START("\x28\xb5\x2f\xfd"), "", "this is a zstd file; unpack it first (only gzip is read)"},
    {START("\xfd"
           "7zXZ"),
     "", "this is an xz file; unpack it first (only gzip is read)"},
    {START("BZh"), "1AY&SY", "this is a bzip2 file; unpack it first (only gzip is read)"},
    {START("\x93NUMPY"), "", "this is a NumPy array, not HLO" FROM_XLA},
};

const char *hlo_foreign_hint(const char *text, size_t size) {
    while (size && memchr(" \t\r\n", *text, 4)) text++, size--;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        if (size < k->size || memcmp(text, k->start, k->size) != 0) continue;
        const size_t rest = (size < LOOKED_AT ? size : LOOKED_AT) - k->size;
        if (memmem(text + k->size, rest, k->later, strlen(k->later))) return k->hint;
    }
    return NULL;
}
