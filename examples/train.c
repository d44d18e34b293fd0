/* SPDX-License-Identifier: Apache-2.0 */
/* train FILE [BACKEND]: a training loop whose weights stay on the device. BACKEND is cpu (default)
 * or cuda. FILE is the HLO module of one training step. The last output of the module is the loss.
 * The other outputs replace the inputs that the `input_output_alias` of the module names. Exits
 * with status 3 if the loss does not decrease. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <hlo/buffer.h>
#include <hlo/pass.h>
#include <hlo/text.h>

enum { STEPS = 100 };

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}

/* Copies the initial state and the batch to the device. */
static hlo_status put_inputs(hlo_plan *plan, const hlo_module *module, const hlo_diag_sink *sink,
                             hlo_buffer **inputs) {
    hlo_arrays *arrays = NULL;
    hlo_status status = hlo_arrays_draw(module, 0, sink, &arrays);
    size_t i;
    for (i = 0; status == HLO_OK && i < hlo_plan_input_count(plan); i++)
        status = hlo_buffer_new(plan, i, hlo_arrays_at(arrays, i), sink, &inputs[i]);
    hlo_arrays_free(arrays);
    return status;
}

/* Queues a step. Each output with a donated input replaces that input in the next step. */
static hlo_status step(hlo_plan *plan, const hlo_diag_sink *sink, hlo_buffer **inputs,
                       hlo_buffer **outputs) {
    size_t o;
    hlo_status status =
        hlo_plan_run_async(plan, inputs, hlo_plan_input_count(plan), NULL, sink, outputs, NULL);
    for (o = 0; status == HLO_OK && o < hlo_plan_output_count(plan); o++) {
        const size_t input = hlo_plan_donated_input(plan, o);
        if (input == SIZE_MAX) continue;
        hlo_buffer_free(inputs[input]);
        inputs[input] = outputs[o];
        outputs[o] = NULL;
    }
    return status;
}

static hlo_status train(hlo_plan *plan, const hlo_diag_sink *sink, hlo_buffer **inputs,
                        hlo_buffer **outputs) {
    const size_t count = hlo_plan_output_count(plan);
    float first = 0, loss = 0;
    size_t o;
    int i;
    for (i = 0; i < STEPS; i++) {
        hlo_status status = step(plan, sink, inputs, outputs);
        if (status == HLO_OK && i % 20 == 0) { /* otherwise the loop does not wait */
            status = hlo_buffer_read(outputs[count - 1], &loss, sizeof loss, sink);
            if (i == 0) first = loss;
            if (status == HLO_OK) printf("step %d: loss %.4g\n", i, loss);
        }
        for (o = 0; o < count; o++) {
            hlo_buffer_free(outputs[o]);
            outputs[o] = NULL;
        }
        if (status != HLO_OK) return status;
    }
    return isfinite(loss) && loss < first ? HLO_OK : HLO_MISMATCH;
}

static hlo_status run(const hlo_module *module, const char *backend, const hlo_diag_sink *sink) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_buffer **inputs, **outputs;
    hlo_status status;
    size_t i;

    hlo_plan_options_init(&options);
    options.backend = backend;
    options.resident = true;
    status = hlo_plan_new(module, &options, sink, &plan);
    if (status != HLO_OK) return status;
    inputs = calloc(hlo_plan_input_count(plan) + 1, sizeof *inputs);
    outputs = calloc(hlo_plan_output_count(plan) + 1, sizeof *outputs);
    if (!inputs || !outputs) status = HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) status = put_inputs(plan, module, sink, inputs);
    if (status == HLO_OK) status = train(plan, sink, inputs, outputs);
    for (i = 0; inputs && i < hlo_plan_input_count(plan); i++) hlo_buffer_free(inputs[i]);
    free(inputs);
    free(outputs);
    hlo_plan_free(plan);
    return status;
}

int main(int argc, char **argv) {
    hlo_diag_sink sink;
    hlo_pass_options options;
    hlo_module *module = NULL;
    hlo_status status;

    if (argc != 2 && argc != 3) {
        fputs("usage: train FILE [BACKEND]\n", stderr);
        return 2;
    }
    sink.emit = print_diagnostic;
    sink.user = stderr;
    hlo_pass_options_init(&options);
    options.sink = &sink;
    status = hlo_module_parse_file(argv[1], &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, NULL);
    if (status == HLO_OK) status = run(module, argc == 3 ? argv[2] : "cpu", &sink);
    hlo_module_free(module);
    if (status != HLO_OK) fprintf(stderr, "train: %s\n", hlo_status_name(status));
    return hlo_status_exit(status);
}
