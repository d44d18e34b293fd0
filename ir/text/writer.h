/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that write to the writer of a caller (hlo/writer.h). */
#ifndef HLO_IR_TEXT_WRITER_H
#define HLO_IR_TEXT_WRITER_H

#include <stdio.h>

#include "hlo/status.h"
#include "hlo/writer.h"

/* Opens a stream to *writer, which must remain valid until the stream is closed. After its function
 * fails, the stream sets writer->write to one that always fails. Returns NULL if memory runs out.
 */
FILE *hlo_writer_open(hlo_writer *writer);
/* Closes a stream. Returns `status`, or HLO_INVALID_INPUT if that is HLO_OK or HLO_MISMATCH and the
 * writer failed. */
hlo_status hlo_writer_close(FILE *stream, hlo_status status);

/* Opens a stream to a text that grows. When the stream is closed, *out_text is the text, with a NUL
 * after it, and *out_size is its size without the NUL. The caller frees it with hlo_free(). If
 * memory runs out, the function returns NULL or fclose() fails, and *out_text is NULL. */
FILE *hlo_text_stream(char **out_text, size_t *out_size);

#endif
