// The form of a capture, and what a running capture shows.
#include "app/workspace/capture_form.h"

#include "app/prediction/predictor.h"
#include "app/user/workload_jobs.h"
#include "app/workspace/capture_session.h"
#include "app/workspace/jobs/rate_limit.h"
#include "app/workspace/planner_form.h"
#include "profiler/protocol/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>

namespace {

using testing::HasSubstr;

const app::Predictor& predictor() {
    static const app::Predictor predictor;
    return predictor;
}

/// What the Capture panel shows at first, changed.
template <typename Change>
app::StepForm form_with(const Change& change) {
    app::StepForm form = app::first_capture_form();
    change(form);
    return form;
}

TEST(CaptureForm, ComesBackFromItsFields) {
    const app::StepForm form{.device = "predict:t4",
                             .sweeps = true,
                             .model = "gpt2-medium",
                             .hidden = 512,
                             .heads = 8,
                             .vocab = 100,
                             .head = "lm",
                             .recipes = {{"original", "gelu=in_place,masks=bit"}},
                             .batch_size = 2,
                             .seq_len = 128,
                             .hidden_dropout = false,
                             .attention_dropout = false,
                             .padding = "random",
                             .steps = 2,
                             .memory_limit = "3GiB",
                             .output = "/somewhere else/out"};
    EXPECT_EQ(app::form_from_fields(app::to_fields(form)), form);
    EXPECT_EQ(app::form_from_fields({{"batch", "many"}}), app::first_capture_form());
}

TEST(CaptureForm, BecomesOneRequestPerRecipe) {
    const app::StepForm form = form_with([](auto& one) { one.attention_dropout = false; });
    const auto list = app::make_jobs(form, "/out", predictor());
    ASSERT_TRUE(list) << list.error().message;
    const auto requests = app::make_requests(form, *list);
    ASSERT_EQ(requests.size(), 2U);
    EXPECT_EQ(requests[1].kind, profiler::RequestKind::kCapture);
    EXPECT_EQ(requests[1].output_path, "/out/tempo.tscope");
    EXPECT_EQ(requests[1].workload.at("recipe_name"), "tempo");
    EXPECT_EQ(list->jobs[1].workload.model.attention_dropout_p, 0);
    EXPECT_EQ(list->jobs[1].workload.model.hidden_dropout_p, 0.1);
}

TEST(CaptureForm, RunsTheStepOfThePlanner) {
    app::PlannerForm planner;
    models::Workload& planned = planner.workload;
    planned.padding = models::Padding::kRandom;
    planned.model.hidden_dropout_p = 0;
    app::set_hidden_size(planned.model, 4);
    planner.recipes = {"tempo"};
    const app::StepForm form = app::capture_form_of(planner, app::first_capture_form());
    const auto list = app::make_jobs(form, "/out", predictor());
    ASSERT_TRUE(list) << list.error().message;
    models::Workload run = list->jobs.at(0).workload;
    run.recipe_name = planned.recipe_name;
    run.recipe = planned.recipe;
    EXPECT_EQ(models::to_json(run), models::to_json(planned));
}

TEST(CaptureForm, AsksForASweep) {
    const app::StepForm form = form_with([](auto& one) {
        one.sweeps = true;
        one.memory_limit = "1GiB";
    });
    const auto list = app::make_jobs(form, "/out", predictor());
    ASSERT_TRUE(list) << list.error().message;
    for (const profiler::Request& request : app::make_requests(form, *list)) {
        EXPECT_EQ(request.kind, profiler::RequestKind::kSweep);
        EXPECT_EQ(request.memory_limit_bytes, 1 << 30);
    }
}

TEST(CaptureForm, AGpuThatIsNotHereIsPredicted) {
    // The limit is for measurements; a GPU has its own memory.
    const app::StepForm form = form_with([](auto& one) {
        one.device = "predict:t4";
        one.memory_limit = "1GiB";
    });
    const auto list = app::make_jobs(form, "/out", predictor());
    ASSERT_TRUE(list) << list.error().message;
    EXPECT_EQ(list->gpu, "t4");
    EXPECT_EQ(list->jobs.size(), 2U);
}

TEST(CaptureForm, IsRefusedInOneSentenceWhenItCannotRun) {
    const auto refused = [](const auto& change) {
        const std::string problem = app::problem_of(form_with(change), predictor());
        return problem.empty() ? std::string("accepted") : problem;
    };
    EXPECT_THAT(refused([](auto& one) { one.model = "bert-huge"; }), HasSubstr("bert-huge"));
    EXPECT_THAT(refused([](auto& one) { one.recipes.names = {"temp"}; }), HasSubstr("temp"));
    EXPECT_NE(refused([](auto& one) { one.seq_len = 100'000; }), "accepted");
    EXPECT_NE(refused([](auto& one) { one.memory_limit = "lots"; }), "accepted");
    // The checks are those of the command.
    EXPECT_THAT(refused([](auto& one) { one.memory_limit = "0"; }), HasSubstr("memory limit is 0"));
    EXPECT_THAT(refused([](auto& one) { one.recipes.names = {"tempo", "tempo"}; }),
                HasSubstr("twice"));
    EXPECT_NE(refused([](auto& one) { one.layers = -1; }), "accepted");
    EXPECT_THAT(refused([](auto& one) { one.steps = 0; }), HasSubstr("at least 1 step"));
    EXPECT_THAT(refused([](auto& one) { one.recipes.names = {}; }), HasSubstr("at least one"));
    EXPECT_EQ(
        refused([](auto& one) { one.recipes.names = {"original", "gelu=in_place,masks=bit"}; }),
        "accepted");
    EXPECT_THAT(refused([](auto& one) { one.sweeps = true; }), HasSubstr("memory limit"));
    EXPECT_THAT(refused([](auto& one) { one.device = "predict:t5"; }), HasSubstr("t4"));
    const auto flash_on = [&](const char* device, const char* precision) {
        return refused([&](auto& one) {
            one.device = device;
            one.recipes.names = {"flash"};
            one.precision = precision;
        });
    };
    EXPECT_THAT(flash_on("predict:t4", "amp-fp16"), HasSubstr("7.5"));
    EXPECT_EQ(flash_on("predict:a100-40gb", "bf16"), "accepted");
}

TEST(CaptureForm, EveryCaptureHasAFolderOfItsOwn) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("temposcope_form_" + std::to_string(getpid()));
    const app::StepForm form = form_with([&](auto& one) {
        one.model = "gpt2";
        one.batch_size = 2;
        one.output = folder.string();
    });
    const std::time_t now = 1'790'000'000;
    const auto first = app::new_capture_folder(form, now);
    EXPECT_EQ(first.parent_path(), folder);
    EXPECT_EQ(first.filename().string().find("gpt2-B2-S128-2026"), 0U);
    std::filesystem::create_directories(first);
    EXPECT_EQ(app::new_capture_folder(form, now), first.string() + "-2");
    std::filesystem::remove_all(folder);
}

TEST(LiveCurve, StaysSmallAndKeepsThePeak) {
    app::LiveCurve curve;
    for (int i = 0; i < 100'000; ++i) curve.add(i, i == 41'234 ? 9e9 : 1000 + i % 7);
    EXPECT_LE(curve.time_ns.size(), app::LiveCurve::kMaxPoints);
    EXPECT_GE(curve.time_ns.size(), app::LiveCurve::kMaxPoints / 2);
    EXPECT_EQ(curve.time_ns.size(), curve.allocated_bytes.size());
    EXPECT_TRUE(std::is_sorted(curve.time_ns.begin(), curve.time_ns.end()));
    const auto highest =
        std::max_element(curve.allocated_bytes.begin(), curve.allocated_bytes.end());
    EXPECT_EQ(*highest, 9e9);
    EXPECT_EQ(curve.time_ns[static_cast<size_t>(highest - curve.allocated_bytes.begin())], 41'234);
}

TEST(RateLimit, LetsPassOneAPeriod) {
    using namespace std::chrono_literals;
    app::RateLimit limit(200ms);
    const app::RateLimit::Clock::time_point start{};
    int passed = 0;
    for (auto t = 0ms; t < 1000ms; t += 50ms) passed += limit.passes(start + t);
    EXPECT_EQ(passed, 5);
}

}  // namespace
