#include "profiler/protocol/measurements.h"

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

nlohmann::json to_json(const DeviceSpeed& speed) {
    nlohmann::json gemms = nlohmann::json::array();
    for (const DeviceSpeed::Gemm& gemm : speed.gemms) {
        gemms.push_back(
            {{"type", gemm.type}, {"size", gemm.size}, {"flop_per_s", gemm.flop_per_s}});
    }
    return {{"device_name", speed.device_name},
            {"compute_capability", speed.compute_capability},
            {"memory_bytes", speed.memory_bytes},
            {"num_processors", speed.sm_count},
            {"l2_bytes", speed.l2_bytes},
            {"products", std::move(gemms)},
            {"bytes_per_s", speed.bytes_per_s},
            {"softmax_bytes_per_s", speed.softmax_bytes_per_s},
            {"layer_norm_bytes_per_s", speed.layer_norm_bytes_per_s},
            {"launch_ns", speed.launch_ns}};
}

models::Result<DeviceSpeed> device_speed_from_json(const nlohmann::json& json) {
    try {
        DeviceSpeed speed{.device_name = json.at("device_name"),
                          .compute_capability = json.at("compute_capability"),
                          .memory_bytes = json.at("memory_bytes"),
                          .sm_count = json.at("num_processors"),
                          .l2_bytes = json.at("l2_bytes"),
                          .bytes_per_s = json.at("bytes_per_s"),
                          .softmax_bytes_per_s = json.at("softmax_bytes_per_s"),
                          .layer_norm_bytes_per_s = json.at("layer_norm_bytes_per_s"),
                          .launch_ns = json.at("launch_ns")};
        for (const nlohmann::json& gemm : json.at("products")) {
            speed.gemms.push_back({.type = gemm.at("type"),
                                   .size = gemm.at("size"),
                                   .flop_per_s = gemm.at("flop_per_s")});
        }
        return speed;
    } catch (const nlohmann::json::exception& error) {
        return models::fail("The worker's measurement cannot be read: {}.", error.what());
    }
}

}  // namespace profiler
