/* The pages that a program's memory lies in. */
#ifndef HLO_TOOLS_HEAP_H
#define HLO_TOOLS_HEAP_H

/* What malloc() gives from now on lies in the system's large pages, as far as it has some, and
 * stays with the process when it is freed. Most of the time that a short run spends in the kernel
 * goes into clearing pages, and a large one is cleared in a tenth of the time of as many small
 * ones. Call it before anything else. */
void heap_use_large_pages(void);

#endif
