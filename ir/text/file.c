/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. */
#include "ir/text/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/memory.h"
#include "ir/text/diag.h"

enum { LARGEST_FILE = INT32_MAX, FIRST_CAPACITY = 1 << 16, NULS = 2 };

hlo_status hlo_file_refuse(const char *path, const hlo_diag_sink *sink, const char *why) {
    return hlo_diag_refuse(sink, HLO_DIAG_FILE, path, 0, 0, "cannot read file: %s", why);
}

static hlo_status refuse_errno(const char *path, const hlo_diag_sink *sink, int why) {
    return why == ENOMEM ? HLO_OUT_OF_MEMORY : hlo_file_refuse(path, sink, strerror(why));
}

/* True for /dev/stdin, /dev/fd/N and /proc/self/fd/N, which the caller has opened. */
static bool is_handed_over(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) return true;
    return strcmp(path, "/dev/stdin") == 0;
}

/* Opens a file without waiting for the writer of a FIFO. */
static hlo_status open_file(const char *path, const hlo_diag_sink *sink, int *out_fd,
                            struct stat *out_about) {
    const int fd = strcmp(path, "-") == 0
                       ? STDIN_FILENO
                       : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, out_about) != 0) {
        const int why = errno;
        if (fd > STDIN_FILENO) close(fd);
        return refuse_errno(path, sink, why);
    }
    *out_fd = fd;
    if (fd == STDIN_FILENO && !S_ISDIR(out_about->st_mode)) return HLO_OK;
    const char *why = S_ISDIR(out_about->st_mode)                           ? strerror(EISDIR)
                      : S_ISREG(out_about->st_mode) || is_handed_over(path) ? NULL
                      : S_ISFIFO(out_about->st_mode)                        ? "Is a FIFO"
                                                     : "Is a device or a socket";
    const int flags = fcntl(fd, F_GETFL);
    if (!why && (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)) why = strerror(errno);
    if (!why) return HLO_OK;
    if (fd != STDIN_FILENO) close(fd);
    return hlo_file_refuse(path, sink, why);
}

bool hlo_content_grow(hlo_content *c) {
    const size_t capacity = c->capacity ? c->capacity * 2 : FIRST_CAPACITY;
    char *grown = hlo_realloc(c->bytes, capacity);
    if (!grown) return false;
    c->bytes = grown;
    c->capacity = capacity;
    return true;
}

char *hlo_content_take(hlo_content *content, hlo_arena *arena) {
    const size_t size = content->size;
    char *taken = content->bytes;
    if (content->capacity >= size + NULS) {
        hlo_arena_adopt(arena, taken);
        content->bytes = NULL;
    } else {
        taken = hlo_arena_alloc(arena, size + NULS);
        if (size) memcpy(taken, content->bytes, size);
    }
    memset(taken + size, '\0', NULS);
    return taken;
}

/* Reads to the end; returns 0 or errno. */
static int read_all(int fd, const struct stat *about, hlo_content *out) {
    const bool sized = S_ISREG(about->st_mode);
    if (sized && about->st_size > LARGEST_FILE) return EFBIG;
    out->capacity = sized ? (size_t)about->st_size + 1 + NULS : FIRST_CAPACITY;
    out->bytes = hlo_malloc(out->capacity);
    if (!out->bytes) return ENOMEM;
    for (;;) {
        if (out->size == out->capacity && !hlo_content_grow(out)) return ENOMEM;
        const ssize_t got = read(fd, out->bytes + out->size, out->capacity - out->size);
        if (got == 0) return 0;
        if (got < 0 && errno != EINTR) return errno;
        if (got > 0) out->size += (size_t)got;
        if (out->size > LARGEST_FILE) return EFBIG;
    }
}

hlo_status hlo_file_read(const char *path, const hlo_diag_sink *sink, hlo_content *out) {
    int fd;
    struct stat about;
    *out = (hlo_content){.bytes = NULL};
    hlo_status status = open_file(path, sink, &fd, &about);
    if (status != HLO_OK) return status;
    const int why = read_all(fd, &about, out);
    if (fd != STDIN_FILENO) close(fd);
    return why ? refuse_errno(path, sink, why) : HLO_OK;
}

hlo_status hlo_file_check(const char *path, const hlo_diag_sink *sink) {
    int fd;
    struct stat about;
    const hlo_status status = open_file(path, sink, &fd, &about);
    if (status == HLO_OK && fd != STDIN_FILENO) close(fd);
    return status;
}
