/// Gets several MetaTraces from one process of the real worker.
#include "profiler/protocol/meta_trace_client.h"
#include "tests/support/trace_equality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace profiler {
namespace {

using testing::HasSubstr;

/// Clears the only value that differs from run to run.
void forget_the_clock(Trace& trace) { trace.runs.set<&Run::start_unix_ns>(Id<Run>(0), 0); }

class MetaTraceWorker : public testing::Test {
protected:
    static constexpr const char* kWorker = TEMPOSCOPE_BINARY_DIR "/temposcope-worker";

    void SetUp() override {
        if (!std::filesystem::exists(kWorker)) GTEST_SKIP() << "temposcope-worker is not built";
    }
    static models::Workload workload(const char* recipe) {
        models::Workload w{.model = *models::find_model("bert-base"),
                           .head = models::Head::kMlm,
                           .recipe_name = recipe,
                           .recipe = *models::parse_recipe(recipe),
                           .precision = models::Precision::kBf16,
                           .batch_size = 4,
                           .seq_len = 128};
        w.model.num_layers = 2;
        return w;
    }
};

TEST_F(MetaTraceWorker, AnswersSeveralRequestsAlike) {
    auto worker = WorkerClient::start(kWorker);
    ASSERT_TRUE(worker);
    auto first = request_meta_trace(*worker, workload("original"), {8, 0});
    const auto other = request_meta_trace(*worker, workload("flash"), {9, 0});
    auto again = request_meta_trace(*worker, workload("original"), {8, 0});
    ASSERT_TRUE(first && other && again) << worker->log();
    for (Trace* trace : {&*first, &*again}) forget_the_clock(*trace);
    EXPECT_EQ(::tests::first_difference(*first, *again), "");
    EXPECT_EQ(first->run().source, Source::kPredicted);
    EXPECT_EQ(first->run().batch_size, 4);
    EXPECT_EQ(other->text(other->run().device_name), "compute capability 9.0");
    EXPECT_NE(first->allocations.size(), other->allocations.size());
}

TEST_F(MetaTraceWorker, SaysWhatCannotBePredictedAndGoesOn) {
    auto worker = WorkerClient::start(kWorker);
    ASSERT_TRUE(worker);
    const auto refused = request_meta_trace(*worker, workload("flash"), {7, 5});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("needs compute capability 8.0"));
    EXPECT_TRUE(request_meta_trace(*worker, workload("flash"), {8, 0}));
}

}  // namespace
}  // namespace profiler
