/* SPDX-License-Identifier: Apache-2.0 */
/* A fake libnvrtc: the host's C++ compiler creates a shared object, which kernels.c runs. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "standin.h"

enum { COMPILATION_ERROR = 6, OUT_OF_MEMORY = 1 };
enum { FIRST_FP8_MMA = 1204 }; /* the first version whose mma.sync supports fp8 values */

struct nvrtc_program {
    char *source, *log, *image;
    size_t image_size;
};

static int version(void) {
    const char *chosen = getenv("HLO_STANDIN_NVRTC");
    return chosen ? atoi(chosen) : 1300;
}

int nvrtcVersion(int *major, int *minor) {
    *major = version() / 100;
    *minor = version() % 100;
    return 0;
}

const char *nvrtcGetErrorString(int error) {
    return error == COMPILATION_ERROR ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

static const int archs[] = {80, 89, 90, 100, 120};

int nvrtcGetNumSupportedArchs(int *count) {
    *count = (int)(sizeof archs / sizeof *archs);
    return 0;
}

int nvrtcGetSupportedArchs(int *out) {
    memcpy(out, archs, sizeof archs);
    return 0;
}

int nvrtcCreateProgram(nvrtc_program **program, const char *source, const char *name,
                       int header_count, const char *const *headers,
                       const char *const *header_names) {
    (void)headers;
    (void)header_names;
    int failed = standin_enter("nvrtcCreateProgram %s, %d headers", name ? name : "", header_count);
    if (failed) return failed;
    *program = calloc(1, sizeof **program);
    if (!*program) return OUT_OF_MEMORY;
    (*program)->source = strdup(source);
    (*program)->log = strdup("");
    return 0;
}

int nvrtcDestroyProgram(nvrtc_program **program) {
    free((*program)->source);
    free((*program)->log);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return 0;
}

/* Returns the contents of a file, which the caller frees; NULL if it cannot be read. */
static char *read_file(const char *path, size_t *out_size) {
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    size_t size = 0, capacity = 1 << 16;
    char *bytes = malloc(capacity);
    for (size_t got; bytes && (got = fread(bytes + size, 1, capacity - size - 1, in)) > 0;) {
        size += got;
        if (size + 1 == capacity) bytes = realloc(bytes, capacity *= 2);
    }
    fclose(in);
    if (bytes) bytes[size] = '\0';
    if (out_size) *out_size = size;
    return bytes;
}

/* Returns a bit set of the arguments between `open` and `close` that contain the word. */
static unsigned long long find_word(const char *open, const char *close, const char *word) {
    unsigned long long found = 0, bit = 1;
    for (const char *c = open; c < close; c++) {
        if (strncmp(c, word, strlen(word)) == 0) found |= bit;
        if (*c == ',') bit <<= 1;
    }
    return found;
}

/* Writes data about each kernel for kernels.c: the number of arguments, those that are only
 * read, and those whose memory is not shared. */
static void write_arguments(const char *source, FILE *out) {
    for (const char *at = source; (at = strstr(at, "__global__"));) {
        const char *open = strchr(at, '('), *close = open ? strchr(open, ')') : NULL;
        if (!close) return;
        /* Skip __launch_bounds__(256), which also has parentheses. */
        if (strncmp(close + 1, " {", 2) != 0) {
            open = strchr(close, '(');
            close = open ? strchr(open, ')') : NULL;
            if (!close) return;
        }
        const char *name = open;
        while (isalnum((unsigned char)name[-1]) || name[-1] == '_') name--;
        int count = 0;
        for (const char *c = open; c < close; c++) count += *c == ',' || *c == '*';
        for (const char *c = open; c < close; c++) count -= *c == ',';
        fprintf(out,
                "extern \"C\" { extern const standin_arguments standin_arguments_%.*s = "
                "{%d, %lluull, %lluull}; }\n",
                (int)(open - name), name, count, find_word(open, close, "const "),
                find_word(open, close, "__restrict__"));
        at = close;
    }
}

/* Writes the source without device.cuh, whose functions shim.h implements for the host. */
static void write_source(char *source, FILE *out) {
    char *device = read_file(STANDIN_SOURCE "/runtime/cuda/codegen/device.cuh", NULL);
    char *at = device ? strstr(source, device) : NULL;
    if (at) memset(at, ' ', strlen(device));
    fprintf(out, "#include \"%s/tests/cuda/shim.h\"\n%s\n", STANDIN_SOURCE, source);
    write_arguments(source, out);
    free(device);
}

/* FNV-1a. */
static unsigned long long hash_of(unsigned long long hash, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return hash;
}

/* Reads the image of kernels that an earlier process compiled, or compiles them: the same modules
 * run in many tests. */
static int run_compiler(nvrtc_program *program, const char *folder) {
    static const char options[] =
        "-std=c++17 -O1 -w -fno-strict-aliasing -ffp-contract=off -shared -fPIC";
    char path[256], image[1024], made[1060], command[4096];
    snprintf(path, sizeof path, "%s/kernels.cc", folder);
    FILE *out = fopen(path, "w");
    if (!out) return COMPILATION_ERROR;
    write_source(program->source, out);
    fclose(out);
    size_t size = 0, shim_size = 0;
    char *source = read_file(path, &size);
    char *shim = read_file(STANDIN_SOURCE "/tests/cuda/shim.h", &shim_size);
    unsigned long long hash = hash_of(0xcbf29ce484222325, options, sizeof options);
    const bool complete = source && shim;
    if (complete) hash = hash_of(hash_of(hash, source, size), shim, shim_size);
    free(source);
    free(shim);
    if (!complete) return COMPILATION_ERROR;
    snprintf(image, sizeof image, STANDIN_KERNELS "/%016llx.so", hash);
    program->image = read_file(image, &program->image_size);
    if (program->image) return 0;
    snprintf(made, sizeof made, "%s%s", image, strrchr(folder, '-'));
    snprintf(command, sizeof command, "%s %s -o '%s' %s >%s/log 2>&1", STANDIN_COMPILER, options,
             made, path, folder);
    int status = system(command);
    if (status == 0) status = rename(made, image);
    snprintf(path, sizeof path, "%s/log", folder);
    free(program->log);
    program->log = read_file(path, NULL);
    program->image = read_file(image, &program->image_size);
    return status == 0 && program->image ? 0 : COMPILATION_ERROR;
}

int nvrtcCompileProgram(nvrtc_program *program, int option_count, const char *const *options) {
    char all[1024] = "";
    for (int i = 0; i < option_count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", options[i]);
    int failed = standin_enter("nvrtcCompileProgram %s", all);
    if (failed) return failed;
    if (version() < FIRST_FP8_MMA && strstr(program->source, "mma_f8")) return COMPILATION_ERROR;
    char folder[] = "/tmp/standin-XXXXXX", command[64];
    if (!mkdtemp(folder)) return COMPILATION_ERROR;
    int status = run_compiler(program, folder);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? status : COMPILATION_ERROR;
}

int nvrtcGetCUBINSize(nvrtc_program *program, size_t *size) {
    *size = program->image_size;
    return 0;
}

int nvrtcGetCUBIN(nvrtc_program *program, char *cubin) {
    memcpy(cubin, program->image, program->image_size);
    return 0;
}

int nvrtcGetProgramLogSize(nvrtc_program *program, size_t *size) {
    *size = strlen(program->log) + 1;
    return 0;
}

int nvrtcGetProgramLog(nvrtc_program *program, char *log) {
    strcpy(log, program->log);
    return 0;
}
