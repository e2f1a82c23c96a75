#include "profiler/protocol/device_speed.h"

namespace profiler {

nlohmann::json to_json(const DeviceSpeed& speed) {
    nlohmann::json products = nlohmann::json::array();
    for (const DeviceSpeed::Product& product : speed.products) {
        products.push_back(
            {{"type", product.type}, {"size", product.size}, {"flop_per_s", product.flop_per_s}});
    }
    return {{"device_name", speed.device_name},
            {"compute_capability", speed.compute_capability},
            {"memory_bytes", speed.memory_bytes},
            {"num_processors", speed.sm_count},
            {"l2_bytes", speed.l2_bytes},
            {"products", std::move(products)},
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
        for (const nlohmann::json& product : json.at("products")) {
            speed.products.push_back({.type = product.at("type"),
                                      .size = product.at("size"),
                                      .flop_per_s = product.at("flop_per_s")});
        }
        return speed;
    } catch (const nlohmann::json::exception& error) {
        return models::fail("The worker's measurement cannot be read: {}.", error.what());
    }
}

}  // namespace profiler
