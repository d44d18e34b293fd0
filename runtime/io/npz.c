/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes arrays in .npz files: zip archives of .npy files, which numpy.savez writes and
 * numpy.load reads. Source: the .npy format, versions 1.0 to 3.0, of numpy.lib.format. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "ir/text/writer.h"
#include "runtime/io/arrays.h"

#ifdef HLO_WITH_NPZ
#include <zip.h>

enum { MAX_HEADER = 1 << 20, MAX_RANK = 64, HEADER_ALIGN = 64, MAX_NAME = 1024 };

static const char magic[] = "\x93NUMPY";
enum { MAGIC_SIZE = sizeof magic - 1 };

/* Returns the letter of numpy's kind of type, or 'V' for types that numpy does not have. */
static char numpy_kind(hlo_type type) {
    if (hlo_types[type].bits < 8 && type != HLO_TYPE_PRED) return 'V';
    switch ((hlo_type_class)hlo_types[type].class) {
    case HLO_CLASS_PRED: return 'b';
    case HLO_CLASS_SIGNED: return 'i';
    case HLO_CLASS_UNSIGNED: return 'u';
    case HLO_CLASS_COMPLEX: return 'c';
    default: break;
    }
    return type == HLO_TYPE_F16 || type == HLO_TYPE_F32 || type == HLO_TYPE_F64 ? 'f' : 'V';
}

/* The contents of a header. */
typedef struct npy_header {
    char order, kind;
    long width;
    bool fortran;
    uint32_t rank;
    int64_t dims[MAX_RANK];
} npy_header;

/* Returns the text after `'key':`, or NULL if the header does not contain the key. */
static const char *find_key(const char *text, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(text, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    while (*at == ' ') at++;
    if (*at++ != ':') return NULL;
    while (*at == ' ') at++;
    return at;
}

static bool parse_header(const char *text, npy_header *out) {
    const char *descr = find_key(text, "descr"), *fortran = find_key(text, "fortran_order");
    const char *shape = find_key(text, "shape");
    if (!descr || !fortran || !shape || *descr++ != '\'' || !strchr("<>=|", *descr)) return false;
    out->order = *descr++;
    out->kind = *descr++;
    char *end;
    out->width = strtol(descr, &end, 10);
    out->fortran = strncmp(fortran, "True", 4) == 0;
    if (*end != '\'' || *shape++ != '(') return false;
    for (out->rank = 0;;) {
        while (*shape == ' ' || *shape == ',') shape++;
        if (*shape == ')') return true;
        if (!isdigit((unsigned char)*shape) || out->rank == MAX_RANK) return false;
        errno = 0;
        out->dims[out->rank++] = strtoll(shape, &end, 10);
        if (errno) return false;
        shape = *end == 'L' ? end + 1 : end;
    }
}

/* An archive being read. */
typedef struct npz_reader {
    const hlo_module *module;
    const hlo_diag_sink *sink;
    const char *path;
    hlo_role role;
    zip_t *archive;
} npz_reader;

/* True if memory ran out. libzip then reports an invalid file, but sets errno, which must be 0
 * before the call of libzip. */
static bool starved(const npz_reader *r) {
    const int code = r->archive ? zip_error_code_zip(zip_get_error(r->archive)) : ZIP_ER_OK;
    return errno == ENOMEM || code == ZIP_ER_MEMORY;
}

static bool read_bytes(zip_file_t *file, void *out, size_t size) {
    for (char *at = out; size > 0;) {
        zip_int64_t got = zip_fread(file, at, size);
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

/* Reads a header, which the caller frees. Returns NULL if invalid, or out of memory. */
static char *read_header(zip_file_t *file) {
    unsigned char start[MAGIC_SIZE + 2], count[4] = {0};
    if (!read_bytes(file, start, sizeof start) || memcmp(start, magic, MAGIC_SIZE) != 0)
        return NULL;
    if (!read_bytes(file, count, start[MAGIC_SIZE] == 1 ? 2 : 4)) return NULL;
    size_t size =
        count[0] | (size_t)count[1] << 8 | (size_t)count[2] << 16 | (size_t)count[3] << 24;
    if (size > MAX_HEADER) return NULL;
    char *text = hlo_calloc(size + 1, 1);
    if (text && read_bytes(file, text, size)) return text;
    hlo_free(text);
    return NULL;
}

/* Maximum size of the list of an archive's files in a message. */
enum { LIST_SIZE = 1024 };

static hlo_status fail(const npz_reader *r, size_t index, bool list, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reports an error. `list`: the message lists the arrays of the archive. */
static hlo_status fail(const npz_reader *r, size_t index, bool list, const char *format, ...) {
    if (starved(r)) return HLO_OUT_OF_MEMORY;
    if (!r->sink) return HLO_INVALID_INPUT;
    char what[512], there[LIST_SIZE] = "", message[LIST_SIZE + 600], role[32];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (list) {
        enum { ONE = 160 };
        zip_int64_t count = zip_get_num_entries(r->archive, 0), i = 0;
        size_t at = (size_t)snprintf(there, LIST_SIZE,
                                     count ? "; the file has " : "; the file has no arrays");
        for (; i < count && at + 2 * ONE < LIST_SIZE; i++) {
            const char *name = zip_get_name(r->archive, (zip_uint64_t)i, 0);
            zip_file_t *file = zip_fopen_index(r->archive, (zip_uint64_t)i, 0);
            char *text = file ? read_header(file) : NULL;
            npy_header header;
            if (i) at += (size_t)snprintf(there + at, LIST_SIZE - at, ", ");
            /* Print the name without `.npy` and without bytes that control a terminal. */
            if (!name) name = "?";
            size_t end = strlen(name);
            if (end > 4 && strcmp(name + end - 4, ".npy") == 0) end -= 4;
            for (size_t c = 0; c < end && c < 64; c++)
                there[at++] = isprint((unsigned char)name[c]) ? name[c] : '?';
            there[at] = '\0';
            if (text && parse_header(text, &header)) {
                const size_t limit = at + ONE;
                at += (size_t)snprintf(there + at, ONE, " %c%c%ld[", header.order, header.kind,
                                       header.width);
                for (uint32_t d = 0; d < header.rank && at < limit; d++)
                    at += (size_t)snprintf(there + at, limit - at, d ? ",%lld" : "%lld",
                                           (long long)header.dims[d]);
                if (at < limit) at += (size_t)snprintf(there + at, limit - at, "]");
                if (at >= limit) at = limit - 1;
            }
            hlo_free(text);
            if (file) zip_fclose(file);
        }
        if (i < count)
            snprintf(there + at, LIST_SIZE - at, " and %lld more", (long long)(count - i));
    }
    hlo_role_name(r->role, index, role, sizeof role);
    snprintf(message, sizeof message, "array %zu (%s): %s%s", index, role, what, there);
    hlo_diag_send(r->sink, (hlo_diag){.severity = HLO_ERROR,
                                      .code = HLO_DIAG_INPUT,
                                      .message = message,
                                      .file = r->path});
    return HLO_INVALID_INPUT;
}

static hlo_status read_array(const npz_reader *r, zip_file_t *file, const char *name,
                             const hlo_shape *shape, size_t index, hlo_arrays *out) {
    char *text = read_header(file);
    npy_header header;
    bool parsed = text && parse_header(text, &header);
    hlo_free(text);
    if (!parsed) return fail(r, index, false, "invalid or unsupported .npy header");
    char wanted[256];
    hlo_shape_format(shape, false, wanted, sizeof wanted);
    char kind = numpy_kind(shape->type);
    /* For a type that NumPy does not have, accept raw bytes, but not floats of another type. */
    const char *kinds = shape->type == HLO_TYPE_F8E5M2 ? "Vfui"
                        : kind == 'V'                  ? "Vui"
                                                       : (char[]){kind, 0};
    if (header.width != hlo_types[shape->type].bytes || !strchr(kinds, header.kind) ||
        (header.order == '>' && header.width != 1))
        return fail(r, index, true, "dtype '%c%c%ld' does not match the expected %s", header.order,
                    header.kind, header.width, wanted);
    if (header.rank != shape->rank ||
        (shape->rank && memcmp(header.dims, shape->dims, shape->rank * sizeof *shape->dims) != 0))
        return fail(r, index, true, "its dimensions do not match the expected %s", wanted);
    hlo_array *array = hlo_arrays_add(out, shape->type, shape->rank, shape->dims, false);
    if (!array) return HLO_OUT_OF_MEMORY;
    if (!read_bytes(file, array->data, array->size))
        return fail(r, index, false, "file %s is corrupted or truncated", name);
    /* Read the end of the file, at which libzip checks the checksum. */
    char more;
    const zip_int64_t rest = zip_fread(file, &more, 1);
    if (rest)
        return fail(r, index, false,
                    rest < 0 ? "file %s is corrupted: checksum mismatch"
                             : "file %s is longer than its header declares",
                    name);
    if (header.fortran) { /* column-major */
        const size_t width = hlo_types[shape->type].bytes;
        char *from = array->data, *to = hlo_calloc(array->size ? array->size : 1, 1);
        if (!to) return HLO_OUT_OF_MEMORY;
        int64_t at[MAX_RANK] = {0};
        for (size_t done = 0; done < array->size; done += width) {
            int64_t place = 0;
            for (uint32_t d = 0; d < array->rank; d++) place = place * array->dims[d] + at[d];
            memcpy(to + (size_t)place * width, from + done, width);
            for (uint32_t d = 0; d < array->rank && ++at[d] == array->dims[d]; d++) at[d] = 0;
        }
        hlo_free(from);
        array->data = to;
    }
    hlo_array_extend(array);
    return HLO_OK;
}

/* True if the archive has more than `count` arrays, for other devices or another module. */
static bool has_more(const npz_reader *r, size_t count) {
    zip_int64_t place = -1;
    for (int i = 0; i < 2 && place < 0; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "arr_%zu.npy" : "%zu.npy", count);
        place = zip_name_locate(r->archive, name, 0);
    }
    return place >= 0;
}

/* Reads leaf `index` of a device. */
static hlo_status read_member(const npz_reader *r, const hlo_leaves *leaves, size_t index,
                              size_t device, hlo_arrays *out) {
    const size_t number = device * leaves->count + index;
    errno = 0;
    const hlo_shape *shape = leaves->shapes[index];
    char wanted[256], name[MAX_NAME + 16];
    /* Find an array named by its number, as numpy.savez names unnamed arrays. An input may also be
     * named after its parameter, as in files of saved values. */
    const uint32_t owner = leaves->owners[index];
    const hlo_instruction *parameter =
        r->role == HLO_INPUTS ? r->module->entry->parameters[owner] : NULL;
    size_t first = index;
    while (first > 0 && leaves->owners[first - 1] == owner) first--;
    zip_int64_t place = -1;
    for (int i = 0; i < 2 + (parameter != NULL) && place < 0; i++) {
        if (i < 2)
            snprintf(name, MAX_NAME, i ? "arr_%zu" : "%zu", number);
        else
            hlo_leaf_name(parameter, index - first, name, MAX_NAME);
        char file[MAX_NAME + 32];
        snprintf(file, sizeof file, "%s.npy", name);
        place = zip_name_locate(r->archive, file, 0);
    }
    hlo_shape_format(shape, false, wanted, sizeof wanted);
    if (place < 0)
        return fail(r, index, true, "array `%zu` or `%.200s` of shape %s is missing", number, name,
                    wanted);
    zip_file_t *file = zip_fopen_index(r->archive, (zip_uint64_t)place, 0);
    if (!file) return fail(r, index, false, "%s", zip_strerror(r->archive));
    hlo_status status =
        read_array(r, file, zip_get_name(r->archive, (zip_uint64_t)place, 0), shape, index, out);
    zip_fclose(file);
    return status;
}

/* Element types, each at most once. */
typedef struct type_set {
    bool has[HLO_TYPE_COUNT];
} type_set;

/* Adds the types of the arrays in a shape that the file's array may have. */
static void add_types(const hlo_shape *shape, const npy_header *header, type_set *out) {
    for (uint32_t i = 0; shape->type == HLO_TYPE_TUPLE && i < shape->rank; i++)
        add_types(shape->elements[i], header, out);
    if (hlo_types[shape->type].bytes && hlo_types[shape->type].bytes == header->width &&
        numpy_kind(shape->type) == header->kind && shape->rank == header->rank &&
        !(shape->rank && memcmp(shape->dims, header->dims, shape->rank * sizeof *shape->dims)))
        out->has[shape->type] = true;
}

/* Reads entry `place` of the archive, which a run of the module has sent to the host. */
static hlo_status read_sent(const npz_reader *r, zip_uint64_t place, hlo_arrays *out) {
    const char *name = zip_get_name(r->archive, place, 0);
    const size_t length = strlen(name), index = out->count;
    errno = 0;
    zip_file_t *file = zip_fopen_index(r->archive, place, 0);
    char *text = file ? read_header(file) : NULL;
    npy_header header;
    const bool parsed = text && parse_header(text, &header);
    hlo_free(text);
    if (file) zip_fclose(file);
    if (!parsed) return fail(r, index, false, "invalid or unsupported .npy header of %s", name);
    type_set types = {.has = {false}};
    for (const hlo_computation *c = r->module->first; c; c = c->next)
        for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i))
            if (i->op == HLO_OP_OUTFEED || i->op == HLO_OP_SEND)
                add_types(hlo_instr_operand(i, 0)->shape, &header, &types);
    hlo_shape shape = {.type = HLO_TYPE_INVALID, .rank = header.rank, .dims = header.dims};
    int count = 0;
    for (int type = 0; type < HLO_TYPE_COUNT; type++)
        if (types.has[type]) {
            shape.type = (hlo_type)type;
            count++;
        }
    if (count != 1)
        return fail(r, index, false,
                    "%s has dtype '%c%c%ld' and %u dimensions: expected an array that matches one "
                    "element type of the values that the module sends to the host, found %d",
                    name, header.order, header.kind, header.width, header.rank, count);
    file = zip_fopen_index(r->archive, place, 0);
    if (!file) return fail(r, index, false, "%s", zip_strerror(r->archive));
    const hlo_status status = read_array(r, file, name, &shape, index, out);
    zip_fclose(file);
    if (status != HLO_OK) return status;
    char *own = hlo_calloc(length, 1);
    if (!own) return HLO_OUT_OF_MEMORY;
    memcpy(own, name, length - 4);
    out->items[out->count - 1].name = own;
    return HLO_OK;
}

/* Reads the arrays that a run has sent to the host, in the order of the file. Their names begin
 * with "outfeed." or "send.". */
static hlo_status read_all_sent(const npz_reader *r, hlo_arrays *out) {
    const zip_int64_t entries = zip_get_num_entries(r->archive, 0);
    hlo_status status = HLO_OK;
    for (zip_int64_t e = 0; e < entries && status == HLO_OK; e++) {
        const char *name = zip_get_name(r->archive, (zip_uint64_t)e, 0);
        const size_t length = name ? strlen(name) : 0;
        if (length >= 4 && strcmp(name + length - 4, ".npy") == 0 &&
            (strncmp(name, "outfeed.", 8) == 0 || strncmp(name, "send.", 5) == 0))
            status = read_sent(r, (zip_uint64_t)e, out);
    }
    return status;
}

hlo_status hlo_arrays_read_each(const char *path, const hlo_module *module, hlo_role role,
                                uint32_t devices, const hlo_diag_sink *sink, hlo_arrays **out) {
    *out = NULL;
    npz_reader reader = {.module = module, .sink = sink, .path = path, .role = role};
    int code;
    hlo_status status = hlo_file_check(path, sink);
    if (status != HLO_OK) return status;
    errno = 0;
    reader.archive = zip_open(reader.path, ZIP_RDONLY, &code);
    if (!reader.archive) {
        if (code == ZIP_ER_MEMORY || starved(&reader)) return HLO_OUT_OF_MEMORY;
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        const char *why = code == ZIP_ER_OPNOTSUPP ? "a .npz archive cannot be read from a pipe"
                                                   : zip_error_strerror(&error);
        status = hlo_file_refuse(reader.path, reader.sink, why);
        zip_error_fini(&error);
        return status;
    }
    hlo_leaves leaves = {0};
    status = hlo_leaves_of(module, role, &leaves);
    if (status == HLO_OK) status = hlo_arrays_new(out);
    const bool shared = role == HLO_INPUTS && !has_more(&reader, leaves.count);
    for (uint32_t d = 0; d < (shared ? 1 : devices); d++)
        for (size_t i = 0; i < leaves.count && status == HLO_OK; i++)
            status = read_member(&reader, &leaves, i, d, *out);
    if (status == HLO_OK && !shared && has_more(&reader, devices * leaves.count))
        status = fail(&reader, devices * leaves.count, true, "the module does not have this %s",
                      role == HLO_INPUTS ? "parameter" : "output");
    if (status == HLO_OK && role == HLO_OUTPUTS) status = read_all_sent(&reader, *out);
    hlo_leaves_free(&leaves);
    zip_discard(reader.archive);
    if (status == HLO_OK) return HLO_OK;
    hlo_arrays_free(*out);
    *out = NULL;
    return status;
}

/* Creates the bytes of a .npy file, which the caller frees. Returns NULL if memory runs out. */
static char *make_npy(const hlo_array *array, size_t *out_size) {
    hlo_type type = array->type;
    char dims[MAX_RANK * 21 + 1] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < array->rank && i < MAX_RANK; i++)
        at += (size_t)snprintf(dims + at, sizeof dims - at, i ? " %lld," : "%lld,",
                               (long long)array->dims[i]);
    if (array->rank > 1) dims[at - 1] = '\0';
    char text[sizeof dims + 128];
    int width = hlo_types[type].bytes;
    int length =
        snprintf(text, sizeof text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (%s), }",
                 width == 1 ? '|' : '<', numpy_kind(type), width, dims);
    /* The header is padded to a multiple of 64, including magic, version and length. */
    size_t lead = MAGIC_SIZE + 4;
    size_t header = (lead + (size_t)length + 1 + HEADER_ALIGN - 1) / HEADER_ALIGN * HEADER_ALIGN;
    char *file = hlo_malloc(header + array->size);
    if (!file) return NULL;
    memset(file, ' ', header);
    memcpy(file, magic, MAGIC_SIZE);
    file[MAGIC_SIZE] = 1;
    file[MAGIC_SIZE + 1] = 0;
    file[MAGIC_SIZE + 2] = (char)((header - lead) & 0xff);
    file[MAGIC_SIZE + 3] = (char)((header - lead) >> 8);
    memcpy(file + lead, text, (size_t)length);
    file[header - 1] = '\n';
    if (array->size) memcpy(file + header, array->data, array->size);
    const int bits = hlo_types[type].bits;
    const int own = bits < 8 ? 0xff >> (8 - bits) : 0xff; /* mask of an element's bits, as in arrays
                                                           * of ml_dtypes */
    for (size_t i = 0; bits < 8 && type != HLO_TYPE_PRED && i < array->size; i++)
        file[header + i] = (char)((unsigned char)file[header + i] & own);
    *out_size = header + array->size;
    return file;
}

enum { DOS_1980 = 1 << 5 | 1 }; /* 1980-01-01, the first date of zip archives */

static hlo_status write_arrays(const hlo_arrays *arrays, FILE *out) {
    if (!arrays->count) {
        /* libzip does not write empty archives. Such an archive consists only of an end record. */
        static const char end[22] = "PK\5\6";
        return fwrite(end, 1, sizeof end, out) == sizeof end ? HLO_OK : HLO_INVALID_INPUT;
    }
    char **files = hlo_calloc(arrays->count, sizeof *files);
    zip_source_t *source = files ? zip_source_buffer_create(NULL, 0, 0, NULL) : NULL;
    if (source) zip_source_keep(source); /* closing the archive releases the source once */
    zip_t *archive = source ? zip_open_from_source(source, ZIP_TRUNCATE, NULL) : NULL;
    if (source && !archive) zip_source_free(source);
    bool added = archive != NULL;
    for (size_t i = 0; i < arrays->count && added; i++) {
        const hlo_array *array = &arrays->items[i];
        char name[MAX_NAME + 8];
        if (array->name)
            snprintf(name, sizeof name, "%.*s.npy", MAX_NAME, array->name);
        else
            snprintf(name, sizeof name, "%zu.npy", i);
        size_t size;
        files[i] = make_npy(array, &size); /* freed when the archive is closed */
        zip_source_t *from = files[i] ? zip_source_buffer(archive, files[i], size, 0) : NULL;
        zip_int64_t place = from ? zip_file_add(archive, name, from, 0) : -1;
        if (place < 0) zip_source_free(from);
        added = place >= 0 &&
                zip_set_file_compression(archive, (zip_uint64_t)place, ZIP_CM_STORE, 0) == 0 &&
                zip_file_set_dostime(archive, (zip_uint64_t)place, 0, DOS_1980, 0) == 0;
    }
    hlo_status status = HLO_OUT_OF_MEMORY;
    if (added && zip_close(archive) == 0) {
        char chunk[1 << 16];
        zip_int64_t got = -1;
        if (zip_source_open(source) == 0) {
            while ((got = zip_source_read(source, chunk, sizeof chunk)) > 0)
                if (fwrite(chunk, 1, (size_t)got, out) != (size_t)got) break;
            zip_source_close(source);
        }
        status = got == 0 && !ferror(out) ? HLO_OK : HLO_INVALID_INPUT;
    } else if (archive) {
        zip_discard(archive);
    }
    zip_source_free(source);
    for (size_t i = 0; files && i < arrays->count; i++) hlo_free(files[i]);
    hlo_free(files);
    return status;
}

hlo_status hlo_arrays_write(const hlo_arrays *arrays, hlo_writer writer) {
    FILE *out = hlo_writer_open(&writer);
    if (!out) return HLO_OUT_OF_MEMORY;
    return hlo_writer_close(out, write_arrays(arrays, out));
}
#else
hlo_status hlo_arrays_read_each(const char *path, const hlo_module *module, hlo_role role,
                                uint32_t devices, const hlo_diag_sink *sink, hlo_arrays **out) {
    (void)module, (void)role, (void)devices;
    *out = NULL;
    return hlo_file_refuse(path, sink, "this build has no npz");
}

hlo_status hlo_arrays_write(const hlo_arrays *arrays, hlo_writer writer) {
    (void)arrays, (void)writer;
    return HLO_INVALID_INPUT;
}
#endif

hlo_status hlo_arrays_read(const char *path, const hlo_module *module, hlo_role role,
                           const hlo_diag_sink *sink, hlo_arrays **out) {
    return hlo_arrays_read_each(path, module, role, 1, sink, out);
}
