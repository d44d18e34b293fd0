/* SPDX-License-Identifier: Apache-2.0 */
/* The source location of an instruction in the compiled program. */
#include "ir/ir.h"

/* Returns row `number` of a table, counted from 1; NULL if out of range. */
#define ROW(rows, count, number)                                                                   \
    ((number) >= 1 && (number) <= (int64_t)(count) ? &(rows)[(number)-1] : NULL)

const hlo_attr *hlo_instr_metadata(const hlo_instr *instr, hlo_attr_id id) {
    const hlo_attr *metadata = hlo_instr_attr(instr, HLO_ATTR_METADATA);
    for (uint32_t i = 0; metadata && i < metadata->u.attrs->count; i++)
        if (metadata->u.attrs->v[i].id == id) return &metadata->u.attrs->v[i];
    return NULL;
}

const char *hlo_instr_op_name(const hlo_instr *instr) {
    const hlo_attr *metadata = hlo_instr_attr(instr, HLO_ATTR_METADATA);
    return metadata ? hlo_attrs_str(metadata->u.attrs, HLO_ATTR_OP_NAME) : NULL;
}

const hlo_stack_frame *hlo_tables_frame(const hlo_tables *tables, int64_t frame) {
    return ROW(tables->frames, tables->frame_count, frame);
}

const hlo_file_location *hlo_frame_location(const hlo_tables *tables, int64_t frame) {
    const hlo_stack_frame *at = hlo_tables_frame(tables, frame);
    return at ? ROW(tables->locations, tables->location_count, at->file_location) : NULL;
}

const char *hlo_frame_file(const hlo_tables *tables, int64_t frame) {
    const hlo_file_location *at = hlo_frame_location(tables, frame);
    const char **file = at ? ROW(tables->files, tables->file_count, at->file_name) : NULL;
    return file ? *file : NULL;
}

int64_t hlo_frame_parent(const hlo_tables *tables, int64_t frame) {
    return hlo_tables_frame(tables, frame)->parent - 1;
}

const char *hlo_instr_source(const hlo_instr *instr, int64_t *out_line) {
    const hlo_tables *tables = &instr->parent->module->tables;
    const hlo_attr *id = hlo_instr_metadata(instr, HLO_ATTR_STACK_FRAME_ID);
    const hlo_attr *file = hlo_instr_metadata(instr, HLO_ATTR_SOURCE_FILE);
    const hlo_attr *line = hlo_instr_metadata(instr, HLO_ATTR_SOURCE_LINE);
    int64_t frame = id ? id->u.i : 0;
    /* Frames in the text may form a cycle. */
    for (uint32_t left = tables->frame_count; left && hlo_tables_frame(tables, frame); left--) {
        const char *found = hlo_frame_file(tables, frame);
        if (found) {
            const int64_t at = hlo_frame_location(tables, frame)->line;
            *out_line = at > 0 ? at : 0;
            return found;
        }
        frame = hlo_frame_parent(tables, frame);
    }
    *out_line = file && line && line->u.i > 0 ? line->u.i : 0;
    return file ? file->u.str : NULL;
}
