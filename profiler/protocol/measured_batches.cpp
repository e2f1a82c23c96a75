#include "profiler/protocol/measured_batches.h"

#include <algorithm>

namespace profiler {

int64_t MeasuredBatch::median_ns() const {
    if (step_times_ns.empty()) return 0;
    std::vector<int64_t> times = step_times_ns;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
}

nlohmann::json to_json(const MeasuredBatches& tried) {
    nlohmann::json batches = nlohmann::json::array();
    for (const MeasuredBatch& batch : tried.batches) {
        batches.push_back({{"batch_size", batch.batch_size},
                           {"fits", batch.fits},
                           {"step_times_ns", batch.step_times_ns}});
    }
    return {{"device_name", tried.device_name},
            {"memory_bytes", tried.memory_bytes},
            {"batches", std::move(batches)}};
}

models::Result<MeasuredBatches> measured_batches_from_json(const nlohmann::json& json) {
    try {
        MeasuredBatches tried;
        json.at("device_name").get_to(tried.device_name);
        json.at("memory_bytes").get_to(tried.memory_bytes);
        for (const auto& one : json.at("batches")) {
            MeasuredBatch& batch = tried.batches.emplace_back();
            one.at("batch_size").get_to(batch.batch_size);
            one.at("fits").get_to(batch.fits);
            one.at("step_times_ns").get_to(batch.step_times_ns);
        }
        return tried;
    } catch (const nlohmann::json::exception& error) {
        return models::fail(
            "The worker's times could not be understood ({}): it is of another "
            "build.",
            error.what());
    }
}

}  // namespace profiler
