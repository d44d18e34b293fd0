/* SPDX-License-Identifier: Apache-2.0 */
/* Large pages for a program's memory. */
#ifndef HLO_TOOLS_HEAP_H
#define HLO_TOOLS_HEAP_H

/* Makes malloc() allocate from the system's large pages if available. Freed memory stays with the
 * process. A short run spends most of its time in the kernel clearing pages, and clearing a large
 * page takes a tenth of the time of clearing the same memory in small pages. */
void heap_use_large_pages(void);

#endif
