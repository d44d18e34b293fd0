/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/text/writer.h"

#include <stdint.h>
#include <sys/types.h>

/* Reports a failure as 0 bytes, as fopencookie(3) requires. */
static ssize_t write_part(void *cookie, const char *bytes, size_t size) {
    const hlo_writer *writer = cookie;
    return writer->write(writer->user, bytes, size) ? (ssize_t)size : 0;
}

FILE *hlo_writer_open(const hlo_writer *writer) {
    const cookie_io_functions_t functions = {.write = write_part};
    return fopencookie((void *)(uintptr_t)writer, "w", functions);
}

hlo_status hlo_writer_close(FILE *stream, hlo_status status) {
    bool failed = ferror(stream) != 0;
    failed |= fclose(stream) != 0;
    return failed && (status == HLO_OK || status == HLO_MISMATCH) ? HLO_INVALID_INPUT : status;
}
