// Modelled times of the ops and kernels of predicted steps.

#include "models/config/validity.h"
#include "profiler/analysis/ops/movement.h"
#include "profiler/planner/data/planner_data.h"
#include "profiler/planner/device_peaks.h"
#include "profiler/planner/placement/place_and_schedule.h"
#include "tests/app/predicted_steps.h"

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace profiler {
namespace {

using models::Precision;
using models::Workload;

class PredictedMovement : public ::tests::PredictedSteps {
protected:
    static Trace scheduled(const std::string& recipe, Precision precision) {
        Workload w{.model = *models::find_model("bert-large"),
                   .head = models::Head::kMlm,
                   .precision = precision,
                   .batch_size = 8,
                   .seq_len = 512};
        w.model.num_layers = 4;
        const PlannerData& data = built_in_planner_data();
        auto trace = place_and_schedule(predict(*models::with_recipe(w, recipe), kGpu),
                                        **find_gpu(data.gpus, kGpu), {}, data.calibration,
                                        **find_environment(data.environments, "torch-2.11"));
        EXPECT_TRUE(trace) << trace.error().message;
        return trace ? std::move(*trace) : Trace();
    }

    static constexpr const char* kGpu = "a100-40gb";
};

/// The update is modelled as a whole; each of its ops takes a share that its bytes justify. What L2
/// holds need not come from memory.
TEST_F(PredictedMovement, NoOpMovesItsBytesFasterThanTheCardCan) {
    const std::string fused = "original,optimizer=adamw_fused";
    for (const std::string& recipe : {std::string("original"), std::string("tempo"),
                                      std::string("substation"), std::string("flash"), fused}) {
        for (const Precision precision : {Precision::kAmpBf16, Precision::kFp16}) {
            // The calibration's bytes of the fused update leave out the check of scaled gradients.
            if (recipe == fused && precision == Precision::kFp16) continue;
            const Trace trace = scheduled(recipe, precision);
            const PeaksOfTrace peaks = peaks_of_trace(trace, built_in_planner_data().gpus);
            ASSERT_TRUE(peaks.fit_its_times);
            const PlannerData& data = built_in_planner_data();
            const double l2_bytes = (*find_gpu(data.gpus, kGpu))->l2_bytes.value;
            const double l2_mue = last_row_about(data.calibration.l2, kGpu)->bytes_per_s.value /
                                  peaks.peaks.bytes_per_s;
            constexpr double kMost = 1.01;  // bytes of an update are rounded
            double most = 0;
            for (const MovementRow& row : movement_of(trace, MovementScope::kAll).rows) {
                const double mue = rates_of(row.work, peaks.peaks).mue.value_or(0);
                const double call_bytes = row.work.bytes / static_cast<double>(row.work.num_calls);
                EXPECT_LE(mue, call_bytes < l2_bytes ? l2_mue : kMost)
                    << recipe << " " << name_of(precision) << " " << name_of(*row.phase) << " "
                    << row.name;
                most = std::max(most, mue);
            }
            fmt::print("  {:<32} {:<8} most MUE {:.1f} %\n", recipe, name_of(precision),
                       100 * most);
        }
    }
}

}  // namespace
}  // namespace profiler
