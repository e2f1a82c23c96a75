#include "profiler/protocol/messages.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <stdexcept>
#include <system_error>
#include <type_traits>

namespace profiler {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 9> kRequestNames{
    "doctor",          "capture",          "sweep",    "predict_step", "calibrate", "try_batches",
    "measure_layouts", "time_layout_runs", "benchmark"};

// The fields of each message, by their names in the header.

template <typename T, typename Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

void visit_fields(Is<Hello> auto& hello, const auto& visit) {
    visit("protocol", hello.protocol);
    visit("version", hello.version);
}

void visit_fields(Is<Request> auto& request, const auto& visit) {
    visit("request", request.kind);
    visit("workload", request.workload);
    visit("device", request.device);
    visit("output_path", request.output_path);
    visit("memory_limit_bytes", request.memory_limit_bytes);
    visit("warmup_steps", request.warmup_steps);
    visit("steps", request.steps);
    visit("num_threads", request.num_threads);
    visit("batch_sizes", request.batch_sizes);
    visit("compute_capability", request.compute_capability);
    visit("gpu_index", request.gpu_index);
    visit("records_kernels", request.records_kernels);
    visit("layout_runs", request.layout_runs);
    visit("benchmark", request.benchmark);
    visit("seconds", request.seconds);
    visit("takes_turns", request.takes_turns);
}

void visit_fields(Is<Cancel> auto&, const auto&) {}

void visit_fields(Is<Progress> auto& progress, const auto& visit) {
    visit("stage", progress.stage);
    visit("done", progress.done);
    visit("total", progress.total);
}

void visit_fields(Is<Sample> auto& sample, const auto& visit) {
    visit("time_ns", sample.time_ns);
    visit("allocated_bytes", sample.allocated_bytes);
    visit("peak_bytes", sample.peak_bytes);
    visit("step", sample.step);
    visit("phase", sample.phase);
}

void visit_fields(Is<ResultFrame> auto& result, const auto& visit) {
    visit("path", result.path);
    visit("summary", result.summary);
}

void visit_fields(Is<ErrorFrame> auto& error, const auto& visit) {
    visit("message", error.message);
    visit("exit_code", error.exit_code);
    visit("cancelled", error.cancelled);
    visit.optional("fields", error.fields);
    visit.optional("path", error.path);
}

void visit_fields(Is<WaitsForTurn> auto& waits, const auto& visit) {
    visit("held_bytes", waits.held_bytes);
    visit("available_bytes", waits.available_bytes);
}

void visit_fields(Is<TakeTurn> auto& turn, const auto& visit) {
    visit("run", turn.run);
    visit("recipes", turn.recipes);
}

struct HeaderWriter {
    json& header;

    void operator()(const char* name, const auto& value) const { header[name] = value; }
    void operator()(const char* name, RequestKind kind) const {
        header[name] = kRequestNames[static_cast<std::size_t>(kind)];
    }
    void optional(const char* name, const auto& value) const { header[name] = value; }
};

struct HeaderReader {
    const json& header;

    void operator()(const char* name, auto& value) const { header.at(name).get_to(value); }
    void operator()(const char* name, RequestKind& kind) const {
        const auto text = header.at(name).get<std::string>();
        const auto found = std::ranges::find(kRequestNames, text);
        if (found == kRequestNames.end()) throw std::invalid_argument("unknown request " + text);
        kind = static_cast<RequestKind>(found - kRequestNames.begin());
    }
    void optional(const char* name, auto& value) const {
        if (header.contains(name)) (*this)(name, value);
    }
};

/// By the kind of message.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kKinds{
    "hello",  "request", "cancel",         "progress", "sample",
    "result", "error",   "waits_for_turn", "take_turn"};

template <std::size_t kKind = 0>
Message message_from(const std::string& name, const json& header) {
    if constexpr (kKind == kKinds.size()) {
        throw std::invalid_argument("unknown kind " + name);
    } else {
        if (name != kKinds[kKind]) return message_from<kKind + 1>(name, header);
        std::variant_alternative_t<kKind, Message> message;
        visit_fields(message, HeaderReader{header});
        return message;
    }
}

}  // namespace

std::string_view work_of(RequestKind kind) {
    constexpr std::array<std::string_view, kRequestNames.size()> kWorks{
        "check",  "capture",     "sweep",       "prediction", "measurement",
        "search", "measurement", "measurement", "benchmark"};
    return kWorks[static_cast<std::size_t>(kind)];
}

models::Error to_error(const ErrorFrame& frame) {
    return {frame.message, {frame.fields.begin(), frame.fields.end()}, frame.out_of_memory()};
}

std::string_view build_version() { return TEMPOSCOPE_VERSION; }

json to_header(const Message& message, int64_t id) {
    json header;
    std::visit([&](const auto& one) { visit_fields(one, HeaderWriter{header}); }, message);
    header["protocol"] = kProtocolVersion;
    header["id"] = id;
    header["kind"] = kKinds[message.index()];
    return header;
}

models::Result<AddressedMessage> from_header(const json& header) {
    try {
        return AddressedMessage{header.at("id").get<int64_t>(),
                                message_from(header.at("kind").get<std::string>(), header)};
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
