#include "profiler/analysis/step/recorded_program.h"

#include "models/config/validity.h"
#include "profiler/analysis/step/describe_run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>

namespace profiler {
namespace {

/// Nullopt: there is none, or it is damaged.
std::optional<SpreadStep> spread_in(const nlohmann::json& json, int64_t world_size) {
    const auto text = json.find("parallel");
    if (!json.contains("workload") || text == json.end() || !text->is_string()) return {};
    auto workload = models::workload_from_json(json["workload"]);
    const auto parallel = models::parse_parallel(text->get<std::string>());
    if (!workload || !parallel) return {};
    if (!models::validate(*workload) || !models::validate(*workload, *parallel, world_size)) {
        return {};
    }
    return SpreadStep{std::move(*workload), *parallel};
}

/// 0: not known, or damaged.
int64_t micro_batches_in(const nlohmann::json& json) {
    const auto number = json.find("micro_batches");
    if (number == json.end() || !number->is_number_integer()) return 0;
    const auto count = number->get<int64_t>();
    return count >= 1 && count <= models::kMaxMicroBatches ? count : 0;
}

}  // namespace

std::optional<RecordedProgram> program_of(const Trace& trace) {
    const Run run = trace.run();
    const auto json = nlohmann::json::parse(trace.text(run.workload), nullptr,
                                            /*allow_exceptions=*/false);
    if (!json.is_object()) return std::nullopt;
    const auto program = json.find("program");
    if (program == json.end() || !program->is_string()) return std::nullopt;
    return RecordedProgram{.program = program->get<std::string>(),
                           .model = std::string(trace.text(run.model)),
                           .precision = std::string(trace.text(run.precision)),
                           .batch_size = run.batch_size,
                           .seq_len = run.seq_len,
                           .micro_batches = micro_batches_in(json),
                           .world_size = run.world_size,
                           .spread = spread_in(json, run.world_size)};
}

int64_t sequences_of(int64_t batch_size, int64_t micro_batches) {
    constexpr int64_t kMostBatch = std::numeric_limits<int32_t>::max();
    return batch_size <= kMostBatch ? batch_size * micro_batches : 0;
}

int64_t sequences_per_step(const RecordedProgram& program) {
    if (program.spread) {
        return models::sequences_per_step(program.spread->workload, program.spread->parallel,
                                          program.world_size);
    }
    return sequences_of(program.batch_size, program.micro_batches);
}

std::string describe(const RecordedProgram& program) {
    if (const auto& spread = program.spread) {
        models::Workload workload = spread->workload;
        workload.gradient_accumulation_steps =
            models::micro_batches_per_step(workload, spread->parallel);
        return describe(workload);
    }
    std::string text = fmt::format("{}: {}", program.program, program.model);
    if (program.batch_size > 0) {
        text += program.micro_batches > 1
                    ? fmt::format(", {} micro-batches of ", program.micro_batches)
                    : ", ";
        text += fmt::format("B={}", program.batch_size);
    }
    if (program.seq_len > 0) text += fmt::format(" S={}", program.seq_len);
    if (!program.precision.empty()) text += ", " + program.precision;
    return text;
}

std::string strategy_of(const RecordedProgram& program) {
    if (!program.spread || program.world_size == 1) return {};
    return models::to_text(program.spread->parallel);
}

std::string describe_spread(const RecordedProgram& program) {
    const std::string strategy = strategy_of(program);
    return strategy.empty() ? "" : fmt::format("{} on {} GPUs", strategy, program.world_size);
}

std::vector<std::string> differences(const RecordedProgram& a, const RecordedProgram& b) {
    std::vector<std::string> texts;
    const auto add = [&texts](std::string_view what, const auto& x, const auto& y) {
        if (x != y) texts.push_back(fmt::format("{} ({} and {})", what, x, y));
    };
    if (a.spread && b.spread) {
        texts = differences(a.spread->workload, b.spread->workload);
        add("number of GPUs", a.world_size, b.world_size);
        // The GPUs of a tensor-parallel group train the same sequences.
        if (texts.empty()) add("sequences of a step", sequences_per_step(a), sequences_per_step(b));
        return texts;
    }
    add("program", a.program, b.program);
    add("model", a.model, b.model);
    add("precision", a.precision, b.precision);
    // Two micro-batches of 4 train the same as one batch of 8.
    const bool both_count = a.micro_batches > 0 && b.micro_batches > 0;
    if (!both_count || sequences_per_step(a) != sequences_per_step(b)) {
        add("batch size", a.batch_size, b.batch_size);
        if (both_count) add("micro-batches", a.micro_batches, b.micro_batches);
    }
    add("sequence length", a.seq_len, b.seq_len);
    add("number of processes", a.world_size, b.world_size);
    return texts;
}

}  // namespace profiler
