/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that write to the writer of a caller (hlo/writer.h). */
#ifndef HLO_IR_TEXT_WRITER_H
#define HLO_IR_TEXT_WRITER_H

#include <stdio.h>

#include "hlo/status.h"
#include "hlo/writer.h"

/* Opens a stream to *writer, which must remain valid until the stream is closed. Returns NULL if
 * memory runs out. */
FILE *hlo_writer_open(const hlo_writer *writer);
/* Closes a stream. Returns `status`, or HLO_INVALID_INPUT if that is HLO_OK or HLO_MISMATCH and the
 * writer failed. */
hlo_status hlo_writer_close(FILE *stream, hlo_status status);

#endif
