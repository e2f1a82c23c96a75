#include "profiler/analysis/step/describe_run.h"

#include "models/config/validity.h"
#include "profiler/trace/trace_notes.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <limits>
#include <type_traits>

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
                           .has_other_batches = has_note(trace, kBatchesDiffer),
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
    if (program.has_other_batches) text += " and others";
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

namespace {

/// The parts of the sentence about a workload.
struct WorkloadWords {
    std::string_view model;
    int64_t num_layers = 0;
    std::string_view head;
    int64_t batch_size = 0;
    int64_t seq_len = 0;
    int64_t micro_batches = 1;
    std::string_view precision;
};

/// "layers" is the head of a model that has none.
std::string_view words_of_head(std::string_view head) {
    return head == models::name_of(models::Head::kLayers) ? "no" : head;
}

std::string describe(const WorkloadWords& w) {
    const std::string micro_batches =
        w.micro_batches == 1 ? "" : fmt::format("{} micro-batches of ", w.micro_batches);
    return fmt::format("{}, {} {}, {} head, {}B={} S={}, {}", w.model, w.num_layers,
                       w.num_layers == 1 ? "layer" : "layers", words_of_head(w.head), micro_batches,
                       w.batch_size, w.seq_len, w.precision);
}

/// Versions, and what else is known of the run; empty: the trace does not say, or is damaged.
nlohmann::json software_of(const Trace& trace) {
    auto software = nlohmann::json::parse(trace.text(trace.run().software), nullptr,
                                          /*allow_exceptions=*/false);
    return software.is_object() ? software : nlohmann::json::object();
}

std::string text_in_software(const Trace& trace, const char* key) {
    const auto software = software_of(trace);
    const auto text = software.find(key);
    return text != software.end() && text->is_string() ? text->get<std::string>() : std::string();
}

}  // namespace

std::optional<models::Workload> workload_of(const Trace& trace) {
    const auto json = nlohmann::json::parse(trace.text(trace.run().workload), nullptr,
                                            /*allow_exceptions=*/false);
    if (json.is_discarded()) return std::nullopt;
    const auto workload = models::workload_from_json(json);
    if (!workload || !models::validate(*workload)) return std::nullopt;
    return *workload;
}

std::optional<int64_t> micro_batches_of(const Trace& trace) {
    if (const auto workload = workload_of(trace)) return workload->gradient_accumulation_steps;
    const auto program = program_of(trace);
    if (!program) return 1;
    if (const auto& spread = program->spread) {
        return models::micro_batches_per_step(spread->workload, spread->parallel);
    }
    return program->micro_batches > 0 ? std::optional(program->micro_batches) : std::nullopt;
}

int64_t sequences_per_step(const Trace& trace) {
    if (const auto program = program_of(trace)) return sequences_per_step(*program);
    return sequences_of(trace.run().batch_size, micro_batches_of(trace).value_or(0));
}

std::string describe(const models::Workload& w) {
    return describe(WorkloadWords{.model = w.model.name,
                                  .num_layers = w.model.num_layers,
                                  .head = models::name_of(w.head),
                                  .batch_size = w.batch_size,
                                  .seq_len = w.seq_len,
                                  .micro_batches = w.gradient_accumulation_steps,
                                  .precision = models::name_of(w.precision)});
}

std::string describe_workload(const Trace& trace) {
    if (const auto workload = workload_of(trace)) return describe(*workload);
    const Run run = trace.run();
    const std::string_view model = trace.text(run.model);
    if (model.empty()) return "unknown workload";
    if (const auto program = program_of(trace)) return describe(*program);
    return describe(WorkloadWords{.model = model,
                                  .num_layers = run.num_layers,
                                  .head = trace.text(run.head),
                                  .batch_size = run.batch_size,
                                  .seq_len = run.seq_len,
                                  .precision = trace.text(run.precision)});
}

std::string describe_recipe(const Trace& trace) {
    std::string text(trace.text(trace.run().recipe));
    const auto program = program_of(trace);
    const std::string strategy = program ? strategy_of(*program) : std::string();
    return strategy.empty() ? text : fmt::format("{} · {}", text, strategy);
}

std::optional<std::string> canonical_recipe(const Trace& trace) {
    const auto workload = workload_of(trace);
    if (!workload) return std::nullopt;
    return models::to_text(models::layer_recipes_of(*workload));
}

std::string run_id_of(const Trace& trace) { return text_in_software(trace, "run_id"); }

std::string launch_id_of(const Trace& trace) { return text_in_software(trace, "launch_id"); }

std::string turns_run_of(const Trace& trace) {
    const auto software = software_of(trace);
    const auto turns = software.find("measured_in_turn");
    if (turns == software.end() || !turns->is_object()) return {};
    const auto run = turns->find("run"), recipes = turns->find("recipes");
    if (run == turns->end() || !run->is_string()) return {};
    if (recipes == turns->end() || !recipes->is_number() || *recipes < 2) return {};
    return run->get<std::string>();
}

std::string describe_run(const Trace& trace) {
    const std::string_view recipe = trace.text(trace.run().recipe);
    std::string text = describe_workload(trace);
    if (!recipe.empty()) text += fmt::format(", recipe {}", recipe);
    const auto program = program_of(trace);
    const std::string spread = program ? describe_spread(*program) : std::string();
    return spread.empty() ? text : text + ", " + spread;
}

std::string_view describe(PhaseKind phase) {
    constexpr std::array<std::string_view, kPhaseKindNames.size()> kWords{
        "forward", "the loss", "backward", "the optimizer's step", "inference"};
    return kWords[static_cast<std::size_t>(phase)];
}

std::string_view describe(Source source) {
    constexpr std::array<std::string_view, kSourceNames.size()> kTexts{
        "measured on the CPU", "measured on the GPU", "predicted", "imported"};
    return kTexts[static_cast<std::size_t>(source)];
}

bool has_inferred_categories(const Trace& trace) { return has_note(trace, kInferredCategories); }

bool records_saves(const Trace& trace) {
    return trace.run().source != Source::kImported || !trace.saves.empty();
}

std::string_view classes_note(const Trace& trace) {
    if (!has_inferred_categories(trace)) return {};
    return has_note(trace, kToldCategories) ? kOthersInferred : kClassesInferred;
}

bool has_lines_of_functions(const Trace& trace) { return has_note(trace, kLinesOfFunctions); }

bool counts_block_bytes(const Trace& trace) {
    return trace.run().source == Source::kImported && !trace.ops.empty() && !is_joined(trace);
}

std::string describe_source(const Trace& trace) {
    const Run run = trace.run();
    const std::string_view device = trace.text(run.device_name);
    std::string text(describe(run.source));
    if (!device.empty()) text += fmt::format(" ({})", device);
    if (run.num_threads > 0) {
        text +=
            fmt::format(", {} {}", run.num_threads, run.num_threads == 1 ? "thread" : "threads");
    }
    const auto software = software_of(trace);
    if (software.contains("torch") && software["torch"].is_string()) {
        text += ", torch " + software["torch"].get<std::string>();
    }
    if (run.memory_limit_bytes > 0) {
        text += fmt::format(", limited to {}", format_bytes(run.memory_limit_bytes));
    }
    if (run.world_size > 1) text += fmt::format(", rank {} of {}", run.rank, run.world_size);
    if (has_inferred_categories(trace)) text += ", classes inferred";
    return text;
}

std::vector<std::string> differences(const models::Workload& a, const models::Workload& b) {
    std::vector<std::string> texts;
    const auto add = [&texts](std::string_view what, const auto& x, const auto& y) {
        if (x != y) texts.push_back(fmt::format("{} ({} and {})", what, x, y));
    };
    add("model", a.model.name, b.model.name);
    add("family", models::name_of(a.model.family), models::name_of(b.model.family));
    add("number of layers", a.model.num_layers, b.model.num_layers);
    add("hidden size", a.model.hidden_size, b.model.hidden_size);
    add("number of heads", a.model.num_heads, b.model.num_heads);
    add("intermediate size", a.model.intermediate_size, b.model.intermediate_size);
    add("vocabulary", a.model.vocab_size, b.model.vocab_size);
    add("positions", a.model.max_position_embeddings, b.model.max_position_embeddings);
    add("first position", a.model.first_position, b.model.first_position);
    add("token types", a.model.type_vocab_size, b.model.type_vocab_size);
    add("epsilon of LayerNorm", a.model.layer_norm_eps, b.model.layer_norm_eps);
    add("dropout", a.model.hidden_dropout_p, b.model.hidden_dropout_p);
    add("attention dropout", a.model.attention_dropout_p, b.model.attention_dropout_p);
    add("head", models::name_of(a.head), models::name_of(b.head));
    add("precision", models::name_of(a.precision), models::name_of(b.precision));
    add("batch size", a.batch_size, b.batch_size);
    add("sequence length", a.seq_len, b.seq_len);
    add("padding", models::kPaddingNames[static_cast<std::size_t>(a.padding)],
        models::kPaddingNames[static_cast<std::size_t>(b.padding)]);
    add("micro-batches", a.gradient_accumulation_steps, b.gradient_accumulation_steps);
    add("gradient of the input", a.input_requires_grad, b.input_requires_grad);
    add("seed", a.seed, b.seed);
    add("learning rate", a.learning_rate, b.learning_rate);
    return texts;
}

std::vector<std::string> differences(const Trace& a, const Trace& b) {
    const auto workload = workload_of(a), other_workload = workload_of(b);
    if (workload && other_workload) return differences(*workload, *other_workload);
    const auto program = program_of(a), other_program = program_of(b);
    if (program && other_program) return differences(*program, *other_program);
    std::vector<std::string> texts;
    const auto add = [&texts](std::string_view what, const auto& x, const auto& y) {
        const std::remove_cvref_t<decltype(x)> unknown{};
        if (x == unknown || y == unknown || x == y) return;
        texts.push_back(fmt::format("{} ({} and {})", what, x, y));
    };
    const Run x = a.run(), y = b.run();
    add("model", a.text(x.model), b.text(y.model));
    add("number of layers", x.num_layers, y.num_layers);
    add("head", a.text(x.head), b.text(y.head));
    add("precision", a.text(x.precision), b.text(y.precision));
    const int64_t sequences = sequences_per_step(a);
    const bool trains_as_many = sequences > 0 && sequences == sequences_per_step(b);
    if (!trains_as_many) add("batch size", x.batch_size, y.batch_size);
    add("sequence length", x.seq_len, y.seq_len);
    return texts;
}

}  // namespace profiler
