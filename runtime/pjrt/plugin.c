/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a plugin and calls its functions. */
#include "runtime/pjrt/plugin.h"

#include <dlfcn.h>
#include <string.h>

#include "ir/text/diag.h"
#include "ir/text/file.h"

static pjrt_call *find(const pjrt_plugin *plugin, pjrt_function function) {
    const size_t end = offsetof(pjrt_api, functions) + ((size_t)function + 1) * sizeof(pjrt_call *);
    return plugin->api->size < end ? NULL : plugin->api->functions[function];
}

/* Reports an error of the plugin, and destroys it. */
static hlo_status report_error(const pjrt_plugin *plugin, pjrt_error *error, const char *doing,
                               const hlo_diag_sink *sink) {
    pjrt_error_args args = {.size = sizeof args, .error = error};
    pjrt_call *message = find(plugin, PJRT_ERROR_MESSAGE), *destroy;
    if (message) message(&args);
    char said[900]; /* in one line */
    snprintf(said, sizeof said, "%.*s",
             (int)(args.message_size < sizeof said ? args.message_size : sizeof said),
             args.message ? args.message : "");
    for (char *at = said; *at; at++)
        if (*at == '\n') *at = ' ';
    hlo_diag_refuse(sink, plugin->path, 0, 0, "cannot %s: %s", doing, said);
    args = (pjrt_error_args){.size = sizeof args, .error = error};
    destroy = find(plugin, PJRT_ERROR_DESTROY);
    if (destroy) destroy(&args);
    return HLO_INVALID_INPUT;
}

hlo_status pjrt_plugin_call(const pjrt_plugin *plugin, pjrt_function function, void *arguments,
                            const char *doing, const hlo_diag_sink *sink) {
    pjrt_call *call = find(plugin, function);
    if (!call) {
        return hlo_diag_refuse(
            sink, plugin->path, 0, 0,
            "cannot %s: version 0.%d of the plugin's interface lacks function %d", doing,
            plugin->api->version.minor, function);
    }
    pjrt_error *error = call(arguments);
    return error ? report_error(plugin, error, doing, sink) : HLO_OK;
}

hlo_status pjrt_plugin_call_on(const pjrt_plugin *plugin, pjrt_function function, void *object,
                               const char *doing, const hlo_diag_sink *sink) {
    if (!object) return HLO_OK;
    pjrt_object_args args = {.size = sizeof args, .object = object};
    return pjrt_plugin_call(plugin, function, &args, doing, sink);
}

hlo_status pjrt_plugin_await(const pjrt_plugin *plugin, pjrt_event *event, const char *doing,
                             const hlo_diag_sink *sink) {
    hlo_status status = pjrt_plugin_call_on(plugin, PJRT_EVENT_AWAIT, event, doing, sink);
    hlo_status freed =
        pjrt_plugin_call_on(plugin, PJRT_EVENT_DESTROY, event, "free an event", sink);
    return status == HLO_OK ? freed : status;
}

hlo_status pjrt_plugin_register(const pjrt_plugin *plugin, const char *target, const char *platform,
                                pjrt_handler *handler, const hlo_diag_sink *sink) {
    const pjrt_extension *at = plugin->api->extensions;
    while (at && (at->type != PJRT_EXTENSION_FFI || at->size < sizeof(pjrt_ffi_extension)))
        at = at->next;
    if (!at) return HLO_OK;
    const pjrt_ffi_extension *extension = (const pjrt_ffi_extension *)at;
    pjrt_ffi_register_args args = {.size = sizeof args,
                                   .target = target,
                                   .target_size = strlen(target),
                                   .handler = handler,
                                   .platform = platform,
                                   .platform_size = strlen(platform)};
    pjrt_error *error = extension->functions[PJRT_FFI_REGISTER](&args);
    return error ? report_error(plugin, error, "register a custom call", sink) : HLO_OK;
}

hlo_status pjrt_plugin_load(const char *path, const hlo_diag_sink *sink, pjrt_plugin *out) {
    /* A path without a slash names a file here, not a system library. */
    char local[4096];
    snprintf(local, sizeof local, "%s%s", strchr(path, '/') ? "" : "./", path);
    const hlo_status readable = hlo_file_check(local, sink);
    if (readable != HLO_OK) return readable;
    void *library = dlopen(local, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return hlo_diag_refuse(sink, path, 0, 0, "cannot load the plugin: %s", dlerror());
    void *address = dlsym(library, "GetPjrtApi");
    const pjrt_api *(*get)(void);
    memcpy(&get, &address, sizeof get);
    *out = (pjrt_plugin){.path = path, .api = get ? get() : NULL};
    if (!out->api || out->api->size < sizeof *out->api)
        return hlo_diag_refuse(sink, path, 0, 0, "the library is not a PJRT plugin");
    if (out->api->version.major != 0)
        return hlo_diag_refuse(sink, path, 0, 0,
                               "unsupported plugin interface version %d.%d: expected 0.*",
                               out->api->version.major, out->api->version.minor);
    pjrt_object_args args = {.size = sizeof args};
    return pjrt_plugin_call(out, PJRT_PLUGIN_INITIALIZE, &args, "initialize the plugin", sink);
}
