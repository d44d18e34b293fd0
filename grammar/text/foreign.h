/* Files of other tools that users take for HLO. */
#ifndef HLO_GRAMMAR_TEXT_FOREIGN_H
#define HLO_GRAMMAR_TEXT_FOREIGN_H

#include <stddef.h>

/* Returns a sentence that names the kind of the file and how to get HLO; NULL: the text may be HLO.
 */
const char *hlo_foreign_hint(const char *text, size_t size);

#endif
