/* SPDX-License-Identifier: Apache-2.0 */
// Tests hlo.hpp: parses, walks, rewrites and runs a module, and reads errors.
#include <cstdio>
#include <type_traits>

#include <hlo/hlo.hpp>

static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                   \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static const char text[] =
    "HloModule scaled\n"
    "ENTRY main {\n"
    "  a = f8e4m3fn[16,16] parameter(0)\n"
    "  b = f8e4m3fn[16,16] parameter(1)\n"
    "  aw = f32[16,16] convert(a)\n"
    "  bw = f32[16,16] convert(b)\n"
    "  ROOT d = f32[16,16] dot(aw, bw), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "}\n";

static_assert(!std::is_copy_constructible_v<hlo::module>);
static_assert(std::is_nothrow_move_constructible_v<hlo::module>);
static_assert(std::is_same_v<decltype(*std::declval<hlo::instruction_list>().begin()),
                             const hlo_instruction *>);

static void test_rewrite()
{
    hlo::result<hlo::module> parsed = hlo::module::parse(text, "scaled.hlo");
    CHECK(parsed && parsed.has_value() && parsed.status() == HLO_OK);
    hlo::module module = std::move(parsed).value();
    CHECK(module.name() == "scaled");
    CHECK(module.verify());
    std::size_t count = 0, computations = 0;
    for (const hlo_computation *computation : module.computations()) {
        computations++;
        for (const hlo_instruction *instruction : hlo::instructions(computation)) {
            (void)instruction;
            count++;
        }
    }
    CHECK(count == 5 && computations == 1);
    const hlo_instruction *a = hlo_computation_parameter(module.entry(), 0);
    for (const hlo_use *use : hlo::uses(a)) CHECK(hlo_use_index(use) == 0);
    CHECK(hlo::dims(hlo_instruction_shape(a)).size() == 2);
    CHECK(hlo::dims(hlo_instruction_shape(a))[1] == 16);
    CHECK(hlo::to_string(hlo_instruction_shape(a)) == "f8e4m3fn[16,16]{1,0}");
    CHECK(hlo::to_string(hlo_instruction_shape(a), false) == "f8e4m3fn[16,16]");

    hlo::module original = module.clone().value();
    hlo::result<hlo::report> report = module.optimize();
    CHECK(report && report->size() == 1);
    CHECK((*report)[0].kind == HLO_VERDICT_FP8);
    CHECK(module.to_text().value().find("__cublas$lt$matmul$f8") != std::string::npos);

    const hlo::arrays inputs = hlo::arrays::draw(original, 7).value();
    hlo::plan before = hlo::plan::create(original).value();
    hlo::plan after = hlo::plan::create(module).value();
    const hlo::arrays expected = before.run(inputs).value();
    const hlo::arrays found = after.run(inputs).value();
    CHECK(found.size() == 1 && found[0].type == HLO_TYPE_F32);
    CHECK(found.data<float>(0).size() == 256);
    for (std::size_t i = 0; i < 256; i++)
        CHECK(found.data<float>(0)[i] == expected.data<float>(0)[i]);
}

static void test_arrays()
{
    hlo::arrays arrays = hlo::arrays::create().value();
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    const std::int64_t sizes[] = {2, 3};
    CHECK(arrays.append<float>(HLO_TYPE_F32, sizes, values));
    CHECK(arrays.size() == 1 && arrays.data<float>(0)[5] == 6);
    CHECK(arrays.append<float>(HLO_TYPE_F64, sizes, values).status() == HLO_INVALID_USAGE);
    CHECK(arrays.append<float>(HLO_TYPE_INVALID, sizes, values).status() == HLO_INVALID_USAGE);
    CHECK(arrays.size() == 1);
}

static void test_errors()
{
    const hlo::result<hlo::module> wrong = hlo::module::parse("ENTRY e { x = f32[2] neg(", "w.hlo");
    CHECK(!wrong && wrong.status() == HLO_INVALID_INPUT);
    CHECK(!wrong.error().diagnostics.empty());
    CHECK(wrong.error().diagnostics[0].code == HLO_DIAG_SYNTAX);
    CHECK(wrong.error().text().find("w.hlo:1:") == 0);
    bool thrown = false;
    try {
        wrong.value();
    } catch (const hlo::bad_result &bad) {
        thrown = bad.status() == HLO_INVALID_INPUT && wrong.error().text() == bad.what();
    }
    CHECK(thrown);
    hlo::module module = hlo::module::create("empty").value();
    hlo_pass_options options = hlo::module::default_pass_options();
    options.target = "sm_1";
    const hlo::result<hlo::report> report = module.optimize(options);
    CHECK(!report && report.status() == HLO_INVALID_USAGE);
    CHECK(report.error().diagnostics[0].code == HLO_DIAG_OPTION);
    CHECK(!hlo::module::create("not a name"));
    CHECK(hlo::module::parse_file("/nowhere.hlo").error().diagnostics[0].code == HLO_DIAG_FILE);
}

/* Returns a module whose computation calls the one before it twice, `depth` times. */
static std::string deep(int depth)
{
    std::string made = "HloModule deep\nc0 {\n  ROOT p = f32[] parameter(0)\n}\n";
    for (int i = 1; i <= depth; i++) {
        const std::string called = ", to_apply=c" + std::to_string(i - 1) + "\n";
        made += (i == depth ? "ENTRY c" : "c") + std::to_string(i) + " {\n  p = f32[] parameter(0)\n";
        made += "  x = f32[] call(p)" + called + "  ROOT y = f32[] call(x)" + called + "}\n";
    }
    return made;
}

static void test_diagnostics()
{
    hlo::module module = hlo::module::parse(deep(30)).value();
    hlo_print_options options = hlo::module::default_print_options();
    CHECK(module.to_text(options));
    hlo_print_options_init(&options, HLO_PRINT_CANONICAL);
    const hlo::result<std::string> printed = module.to_text(options);
    CHECK(printed.status() == HLO_INVALID_INPUT && printed.diagnostics().size() == 1);
    CHECK(printed.diagnostics()[0].code == HLO_DIAG_LIMIT);

    /* A success keeps its warnings. */
    const char *nan = "ENTRY e {\n  a = f32[] constant(-1)\n  ROOT r = f32[] sqrt(a)\n}\n";
    const hlo::module simple = hlo::module::parse(nan).value();
    hlo_plan_options plan_options;
    hlo_plan_options_init(&plan_options);
    plan_options.check_finite = true;
    hlo::plan plan = hlo::plan::create(simple, &plan_options).value();
    const hlo::result<hlo::arrays> run = plan.run(hlo::arrays::create().value());
    CHECK(run && run.diagnostics().size() == 1);
    CHECK(run.diagnostics()[0].severity == HLO_WARNING);

    /* Texts are clipped. */
    const std::string wide = "ENTRY e { ROOT r = f32[" + std::string(500, ' ') + "2] neg(";
    const hlo::result<hlo::module> wrong = hlo::module::parse(wide, "w.hlo");
    CHECK(!wrong && wrong.diagnostics()[0].text.size() < 400);
}

int main()
{
    test_diagnostics();
    test_rewrite();
    test_arrays();
    test_errors();
    return failures != 0;
}
