#include "profiler/analysis/recorded_program.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace profiler {

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
                           .world_size = run.world_size};
}

std::string describe(const RecordedProgram& program) {
    std::string text = fmt::format("{}: {}", program.program, program.model);
    if (program.batch_size > 0) text += fmt::format(", B={}", program.batch_size);
    if (program.seq_len > 0) text += fmt::format(" S={}", program.seq_len);
    if (!program.precision.empty()) text += ", " + program.precision;
    return text;
}

std::vector<std::string> differences(const RecordedProgram& a, const RecordedProgram& b) {
    std::vector<std::string> texts;
    const auto add = [&texts](std::string_view what, const auto& x, const auto& y) {
        if (x != y) texts.push_back(fmt::format("{} ({} and {})", what, x, y));
    };
    add("program", a.program, b.program);
    add("model", a.model, b.model);
    add("precision", a.precision, b.precision);
    add("batch size", a.batch_size, b.batch_size);
    add("sequence length", a.seq_len, b.seq_len);
    add("number of processes", a.world_size, b.world_size);
    return texts;
}

}  // namespace profiler
