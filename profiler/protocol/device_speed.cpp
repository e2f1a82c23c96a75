#include "profiler/protocol/device_speed.h"

namespace profiler {

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
