#include "profiler/protocol/measurements.h"

namespace profiler {

// Their fields in JSON.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasuredBatch, batch_size, fits, step_times_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasuredBatches, device_name, memory_bytes, batches)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceSpeed::Gemm, type, size, flop_per_s)

int64_t MeasuredBatch::median_ns() const {
    return step_times_ns.empty() ? 0 : median(step_times_ns);
}

nlohmann::json to_json(const MeasuredBatches& tried) { return nlohmann::json(tried); }

models::Result<MeasuredBatches> measured_batches_from_json(const nlohmann::json& json) {
    try {
        return json.get<MeasuredBatches>();
    } catch (const nlohmann::json::exception& error) {
        return models::fail(
            "The worker's times could not be understood ({}): it is of another "
            "build.",
            error.what());
    }
}

nlohmann::json to_json(const DeviceSpeed& speed) {
    return {{"device_name", speed.device_name},
            {"compute_capability", speed.compute_capability},
            {"memory_bytes", speed.memory_bytes},
            {"num_processors", speed.sm_count},
            {"l2_bytes", speed.l2_bytes},
            {"products", speed.gemms},
            {"bytes_per_s", speed.bytes_per_s},
            {"softmax_bytes_per_s", speed.softmax_bytes_per_s},
            {"layer_norm_bytes_per_s", speed.layer_norm_bytes_per_s},
            {"launch_ns", speed.launch_ns}};
}

models::Result<DeviceSpeed> device_speed_from_json(const nlohmann::json& json) {
    try {
        return DeviceSpeed{.device_name = json.at("device_name"),
                           .compute_capability = json.at("compute_capability"),
                           .memory_bytes = json.at("memory_bytes"),
                           .sm_count = json.at("num_processors"),
                           .l2_bytes = json.at("l2_bytes"),
                           .gemms = json.at("products"),
                           .bytes_per_s = json.at("bytes_per_s"),
                           .softmax_bytes_per_s = json.at("softmax_bytes_per_s"),
                           .layer_norm_bytes_per_s = json.at("layer_norm_bytes_per_s"),
                           .launch_ns = json.at("launch_ns")};
    } catch (const nlohmann::json::exception& error) {
        return models::fail("The worker's measurement cannot be read: {}.", error.what());
    }
}

}  // namespace profiler
