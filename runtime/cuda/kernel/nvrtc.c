/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a device's program, and caches compiled programs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "runtime/cuda/codegen/kernel.h"
#include "runtime/cuda/driver/library.h"

void cuda_image_free(cuda_image *image) {
    hlo_free(image->bytes);
    hlo_free(image->log);
    *image = (cuda_image){0};
}

hlo_status cuda_image_compile(const cuda_library *lib, const char *source, int sm,
                              cuda_image *out) {
    *out = (cuda_image){0};
    nvrtc_program *program = NULL;
    out->result = lib->nvrtcCreateProgram(&program, source, "hlo-fp8.cu", 0, NULL, NULL);
    if (out->result) return HLO_INVALID_INPUT;
    /* Find the latest architecture that NVRTC supports and whose code the device runs: the device's
     * own, or an earlier architecture of the same generation. */
    enum { MAX = 256 };
    int archs[MAX], count = 0, arch = 0;
    if (lib->nvrtcGetNumSupportedArchs(&count) || count > MAX || lib->nvrtcGetSupportedArchs(archs))
        count = 0;
    for (int i = 0; i < count; i++)
        if (archs[i] <= sm && archs[i] / 10 == sm / 10 && archs[i] > arch) arch = archs[i];
    /* Disable FMA contraction, so that results do not depend on the compiler's choices. */
    char target[32];
    snprintf(target, sizeof target, "-arch=sm_%d", arch ? arch : sm);
    const char *const options[] = {target, "-std=c++17", "-default-device", "-fmad=false", "-w"};
    int result = lib->nvrtcCompileProgram(program, sizeof options / sizeof *options, options);
    size_t size = 0;
    if (lib->nvrtcGetProgramLogSize(program, &size) == 0 && (out->log = hlo_calloc(1, size + 1)))
        lib->nvrtcGetProgramLog(program, out->log);
    out->result = result;
    if (!result) result = lib->nvrtcGetCUBINSize(program, &out->size);
    hlo_status status = result ? HLO_INVALID_INPUT : HLO_OK;
    if (!result && !(out->bytes = hlo_malloc(out->size ? out->size : 1)))
        status = HLO_OUT_OF_MEMORY;
    else if (!result && lib->nvrtcGetCUBIN(program, out->bytes))
        status = HLO_INVALID_INPUT;
    lib->nvrtcDestroyProgram(&program);
    return status;
}

hlo_status cuda_image_find(const cuda_library *lib, const char *folder, const char *source, int sm,
                           cuda_image *out) {
    /* The file name contains the target, the compiler's version, and a hash of the program's text.
     * A file that cannot be read counts as missing. */
    char path[4096], beside[4200];
    int major = 0, minor = 0, length = 0;
    *out = (cuda_image){0};
    if (folder && !lib->nvrtcVersion(&major, &minor)) {
        XXH128_hash_t hash = XXH3_128bits(source, strlen(source));
        length = snprintf(path, sizeof path, "%s/%016llx%016llx-sm_%d-nvrtc-%d.%d.cubin", folder,
                          (unsigned long long)hash.high64, (unsigned long long)hash.low64, sm,
                          major, minor);
    }
    const bool keeps = length > 0 && (size_t)length < sizeof path;
    hlo_content content = {0};
    if (keeps && hlo_file_read(path, NULL, &content) == HLO_OK && content.size) {
        *out = (cuda_image){.bytes = content.bytes, .size = content.size};
        return HLO_OK;
    }
    hlo_free(content.bytes);
    hlo_status status = cuda_image_compile(lib, source, sm, out);
    if (status != HLO_OK || !keeps) return status;
    /* Write a temporary file and rename it, so that readers never see partial contents. */
    snprintf(beside, sizeof beside, "%s.XXXXXX", path);
    int file = mkstemp(beside);
    FILE *to = file < 0 ? NULL : fdopen(file, "wb");
    bool good = to && fwrite(out->bytes, 1, out->size, to) == out->size;
    if (to)
        good = fclose(to) == 0 && good;
    else if (file >= 0)
        close(file);
    good = good && rename(beside, path) == 0;
    if (!good && file >= 0) unlink(beside);
    out->unkept = !good;
    return HLO_OK;
}

static void release_module(cuda_device *device, void *module) {
    device->lib->cuModuleUnload(module);
}

hlo_status cuda_program_compile(cuda_device *device, const char **why) {
    char *source = cuda_program_source(device->program);
    if (!source) return HLO_OUT_OF_MEMORY;
    cuda_image image;
    hlo_status status =
        cuda_image_find(device->lib, device->kernel_cache, source, device->sm, &image);
    if (status == HLO_INVALID_INPUT) {
        /* Report the log's line with the error, and the kernel that contains the error: the last
         * kernel that begins before it. */
        const char *log = image.log ? image.log : "", *error = strstr(log, "error");
        unsigned long line = 0;
        const char *place = strchr(log, '(');
        if (error && place && place < error) line = strtoul(place + 1, NULL, 10);
        char kernel[64] = "";
        const char *at = source;
        for (unsigned long n = 1; at && n <= line; n++) {
            const char *name = strstr(at, "__launch_bounds__"), *end = strchr(at, '\n');
            if (name && end && name < end && (name = strchr(name, ' ')))
                snprintf(kernel, sizeof kernel, "%.*s", (int)strcspn(name + 1, "("), name + 1);
            at = end ? end + 1 : NULL;
        }
        error = error ? error : device->lib->nvrtcGetErrorString(image.result);
        snprintf(device->message, sizeof device->message, "cannot be compiled by NVRTC: %s%s%.*s",
                 kernel, *kernel ? ": " : "", (int)strcspn(error, "\n"), error);
        *why = device->message;
    }
    if (image.unkept && device->sink) {
        snprintf(device->message, sizeof device->message, "cannot write to the kernel cache %s",
                 device->kernel_cache);
        hlo_diag_send(
            device->sink,
            (hlo_diag){.severity = HLO_WARNING, .code = HLO_DIAG_FILE, .message = device->message});
    }
    if (status == HLO_OK) {
        cuda_module *module = NULL;
        int result = device->lib->cuModuleLoadData(&module, image.bytes);
        if (result)
            status = cuda_fails(device, "load the kernels", result, why);
        else
            status = cuda_own(device, module, release_module) ? HLO_OK : HLO_OUT_OF_MEMORY;
        device->module = module;
    }
    cuda_image_free(&image);
    hlo_free(source);
    return status;
}
