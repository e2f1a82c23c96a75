#include "profiler/protocol/messages.h"

#include <array>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace profiler {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 9> kRequestNames{
    "doctor",          "capture",          "sweep",    "predict_step", "calibrate", "try_batches",
    "measure_layouts", "time_layout_runs", "benchmark"};

json fields(const Hello& hello) { return {{"version", hello.version}}; }

json fields(const Request& request) {
    return {{"request", kRequestNames[static_cast<std::size_t>(request.kind)]},
            {"workload", request.workload},
            {"device", request.device},
            {"output_path", request.output_path},
            {"memory_limit_bytes", request.memory_limit_bytes},
            {"warmup_steps", request.warmup_steps},
            {"steps", request.steps},
            {"num_threads", request.num_threads},
            {"batch_sizes", request.batch_sizes},
            {"compute_capability", request.compute_capability},
            {"gpu_index", request.gpu_index},
            {"records_kernels", request.records_kernels},
            {"layout_runs", request.layout_runs},
            {"benchmark", request.benchmark},
            {"seconds", request.seconds},
            {"takes_turns", request.takes_turns}};
}

json fields(const Cancel&) { return json::object(); }

json fields(const Progress& progress) {
    return {{"stage", progress.stage}, {"done", progress.done}, {"total", progress.total}};
}

json fields(const Sample& sample) {
    return {{"time_ns", sample.time_ns},
            {"allocated_bytes", sample.allocated_bytes},
            {"peak_bytes", sample.peak_bytes},
            {"step", sample.step},
            {"phase", sample.phase}};
}

json fields(const ResultFrame& result) {
    return {{"path", result.path}, {"summary", result.summary}};
}

json fields(const ErrorFrame& error) {
    return {{"message", error.message},
            {"exit_code", error.exit_code},
            {"cancelled", error.cancelled},
            {"fields", error.fields},
            {"path", error.path}};
}

json fields(const WaitsForTurn& waits) {
    return {{"held_bytes", waits.held_bytes}, {"available_bytes", waits.available_bytes}};
}

json fields(const TakeTurn& turn) { return {{"run", turn.run}, {"recipes", turn.recipes}}; }

std::string_view kind_of(const Message& message) {
    constexpr std::array<std::string_view, std::variant_size_v<Message>> kKinds{
        "hello",  "request", "cancel",         "progress", "sample",
        "result", "error",   "waits_for_turn", "take_turn"};
    return kKinds[message.index()];
}

Request request_from(const json& header) {
    Request request;
    const auto name = header.at("request").get<std::string>();
    std::size_t kind = 0;
    while (kind < kRequestNames.size() && kRequestNames[kind] != name) ++kind;
    if (kind == kRequestNames.size()) throw std::invalid_argument("unknown request " + name);
    request.kind = static_cast<RequestKind>(kind);
    request.workload = header.at("workload");
    header.at("device").get_to(request.device);
    header.at("output_path").get_to(request.output_path);
    header.at("memory_limit_bytes").get_to(request.memory_limit_bytes);
    header.at("warmup_steps").get_to(request.warmup_steps);
    header.at("steps").get_to(request.steps);
    header.at("num_threads").get_to(request.num_threads);
    header.at("batch_sizes").get_to(request.batch_sizes);
    header.at("compute_capability").get_to(request.compute_capability);
    header.at("gpu_index").get_to(request.gpu_index);
    header.at("records_kernels").get_to(request.records_kernels);
    request.layout_runs = header.at("layout_runs");
    request.benchmark = header.at("benchmark");
    header.at("seconds").get_to(request.seconds);
    header.at("takes_turns").get_to(request.takes_turns);
    return request;
}

Sample sample_from(const json& header) {
    Sample sample;
    header.at("time_ns").get_to(sample.time_ns);
    header.at("allocated_bytes").get_to(sample.allocated_bytes);
    header.at("peak_bytes").get_to(sample.peak_bytes);
    header.at("step").get_to(sample.step);
    header.at("phase").get_to(sample.phase);
    return sample;
}

Message message_from(const json& header) {
    const auto kind = header.at("kind").get<std::string>();
    if (kind == "hello") {
        return Hello{header.at("protocol").get<int>(), header.at("version").get<std::string>()};
    }
    if (kind == "request") return request_from(header);
    if (kind == "cancel") return Cancel{};
    if (kind == "sample") return sample_from(header);
    if (kind == "progress") {
        return Progress{header.at("stage").get<std::string>(), header.at("done").get<int64_t>(),
                        header.at("total").get<int64_t>()};
    }
    if (kind == "result") {
        return ResultFrame{.path = header.at("path").get<std::string>(),
                           .summary = header.at("summary")};
    }
    if (kind == "error") {
        return ErrorFrame{header.at("message").get<std::string>(),
                          header.at("exit_code").get<int>(), header.at("cancelled").get<bool>(),
                          header.value("fields", std::vector<std::string>()),
                          header.value("path", std::string())};
    }
    if (kind == "waits_for_turn") {
        return WaitsForTurn{header.at("held_bytes").get<int64_t>(),
                            header.at("available_bytes").get<int64_t>()};
    }
    if (kind == "take_turn") {
        return TakeTurn{header.at("run").get<std::string>(), header.at("recipes").get<int64_t>()};
    }
    throw std::invalid_argument("unknown kind " + kind);
}

}  // namespace

models::Error to_error(const ErrorFrame& frame) {
    return {frame.message, {frame.fields.begin(), frame.fields.end()}, frame.out_of_memory()};
}

std::string_view build_version() { return TEMPOSCOPE_VERSION; }

json to_header(const Message& message, int64_t id) {
    json header = std::visit([](const auto& value) { return fields(value); }, message);
    header["protocol"] = kProtocolVersion;
    header["id"] = id;
    header["kind"] = kind_of(message);
    return header;
}

models::Result<AddressedMessage> from_header(const json& header) {
    try {
        return AddressedMessage{header.at("id").get<int64_t>(), message_from(header)};
    } catch (const std::exception& error) {  // from the JSON library, or an unknown name
        return models::fail(
            "A message could not be understood ({}): the worker is of another build.",
            error.what());
    }
}

bool lacks_threads(const std::exception& error) {
    const auto* const of_system = dynamic_cast<const std::system_error*>(&error);
    return of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again;
}

}  // namespace profiler
