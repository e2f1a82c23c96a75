#include "app/commands/reports/plan_report.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"
#include "app/commands/reports/reports.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

Json terms_json(const PlanMemory& memory) {
    Json json{{"context_bytes", memory.context_bytes},
              {"rounding_bytes", memory.contents.rounding_bytes},
              {"cached_bytes", memory.contents.cached_bytes},
              {"nccl_bytes", 0},
              {"ddp_buckets_bytes", 0},
              {"reduce_bucket_bytes", 0},
              {"gathered_parameters_bytes", 0}};
    for (const MemoryTerm& term : memory.terms) json[term.name] = term.size_bytes;
    return json;
}

Json times_json(const StepTime& time) {
    Json json{{"optimizer_ns", whole_ns(time.optimizer_ns)},
              {"all_reduce_ns", whole_ns(time.all_reduce_ns)},
              {"waiting_ns", whole_ns(time.waiting_ns())}};
    for (std::size_t i = 0; i < kOpClassNames.size(); ++i) {
        json[fmt::format("{}_ns", kOpClassNames[i])] = whole_ns(time.by_class_ns[i]);
    }
    return json;
}

Json curve_json(const std::vector<PlanPoint>& curve) {
    Json json = Json::array();
    for (const PlanPoint& point : curve) {
        json.push_back({{"batch_size", point.batch_size},
                        {"step_time_ns", point.step_time_ns},
                        {"throughput_sequences_per_s", point.sequences_per_s}});
    }
    return json;
}

Json row_json(const PlanRow& row) {
    const auto& memory = row.memory;
    const auto& time = row.time;
    return {
        {"model", row.workload.model.name},
        {"head", models::name_of(row.workload.head)},
        {"recipe", row.workload.recipe_name},
        {"gpu", row.gpu->id},
        {"setup", row.setup->id},
        {"precision", models::name_of(row.workload.precision)},
        {"seq_len", row.workload.seq_len},
        {"status", name_of(row.status)},
        {"reason", row.reason},
        {"batch_size", or_null(row.batch_size)},
        {"max_batch_size", or_null(row.max_batch_size)},
        {"max_batch_limited_by", row.max_batch_size ? Json(name_of(row.max_batch_end)) : Json()},
        {"best_batch_size", or_null(row.best_batch_size)},
        {"usable_bytes", memory ? Json(memory->usable_bytes) : Json()},
        {"peak_allocated_bytes",
         memory ? Json(memory->contents.peaks.peak_allocated_bytes) : Json()},
        {"peak_reserved_bytes", memory ? Json(memory->contents.peaks.peak_reserved_bytes) : Json()},
        {"peak_by_class", memory ? by_class_json(memory->contents.by_category) : Json()},
        {"terms", memory ? terms_json(*memory) : Json()},
        {"step_time_ns", time ? Json(whole_ns(time->total_ns())) : Json()},
        {"time_by_class", time ? times_json(*time) : Json()},
        {"throughput_sequences_per_s", time ? Json(row.sequences_per_s) : Json()},
        {"best_throughput_sequences_per_s",
         row.best_batch_size ? Json(row.best_sequences_per_s) : Json()},
        {"model_tflops", time ? Json(row.model_tflops) : Json()},
        {"best_model_tflops", row.best_batch_size ? Json(row.best_model_tflops) : Json()},
        {"curve", curve_json(row.curve)},
        {"notes", row.notes}};
}

std::string text_or_dash(const std::optional<int64_t>& value) {
    return value ? format_count(*value) : "–";
}

/// Columns that say the same in every row stand above the table instead.
struct RowText {
    std::string_view title;
    std::string (*text)(const PlanRow&);
};
constexpr std::array<RowText, 6> kRowTexts{{
    {"model", [](const PlanRow& r) { return r.workload.model.name; }},
    {"head", [](const PlanRow& r) { return std::string(models::name_of(r.workload.head)); }},
    {"recipe", [](const PlanRow& r) { return r.workload.recipe_name; }},
    {"precision",
     [](const PlanRow& r) { return std::string(models::name_of(r.workload.precision)); }},
    {"seq", [](const PlanRow& r) { return format_count(r.workload.seq_len); }},
    {"GPU", [](const PlanRow& r) { return r.gpu->id; }},
}};

bool is_equal_everywhere(const Plan& plan, const RowText& column) {
    return std::all_of(plan.rows.begin(), plan.rows.end(), [&](const PlanRow& row) {
        return column.text(row) == column.text(plan.rows.front());
    });
}

std::vector<std::string> figures_of(const PlanRow& row) {
    const auto& memory = row.memory;
    const auto& time = row.time;
    return {text_or_dash(row.max_batch_size),
            text_or_dash(row.best_batch_size),
            row.best_batch_size ? fmt::format("{:.1f}", row.best_sequences_per_s) : "–",
            row.best_batch_size ? fmt::format("{:.1f}", row.best_model_tflops) : "–",
            text_or_dash(row.batch_size),
            memory ? format_bytes(memory->contents.peaks.peak_allocated_bytes) : "–",
            memory ? format_bytes(memory->contents.peaks.peak_reserved_bytes) : "–",
            time ? format_duration(whole_ns(time->total_ns())) : "–",
            time ? fmt::format("{:.1f}", row.sequences_per_s) : "–",
            time ? fmt::format("{:.1f}", row.model_tflops) : "–",
            row.status == PlanStatus::kOk           ? "–"
            : row.status == PlanStatus::kDoesNotFit ? "does not fit"
                                                    : "not supported"};
}

TextTable table_of(const Plan& plan) {
    TextTable table;
    for (const RowText& column : kRowTexts) {
        if (!is_equal_everywhere(plan, column)) {
            table.columns.push_back({std::string(column.title), Align::kLeft, {}});
        }
    }
    for (const char* title : {"max batch", "fastest batch", "its seq/s", "its TFLOPS", "at batch",
                              "allocated", "reserved", "step", "seq/s", "TFLOPS"}) {
        table.columns.push_back({title, Align::kRight, {}});
    }
    table.columns.push_back({"", Align::kLeft, {}});
    for (const PlanRow& row : plan.rows) {
        std::vector<std::string> cells;
        for (const RowText& column : kRowTexts) {
            if (!is_equal_everywhere(plan, column)) cells.push_back(column.text(row));
        }
        const auto figures = figures_of(row);
        cells.insert(cells.end(), figures.begin(), figures.end());
        table.rows.push_back(std::move(cells));
    }
    return table;
}

std::string common_texts(const Plan& plan) {
    std::vector<std::string> texts;
    for (const RowText& column : kRowTexts) {
        if (!is_equal_everywhere(plan, column)) continue;
        const std::string text = column.text(plan.rows.front());
        texts.push_back(column.title == "seq" ? "sequence length " + text : text);
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

using RowSet = std::vector<const PlanRow*>;

/// What the rows say in a column, each text once.
std::vector<std::string> texts_of(const RowSet& rows, const RowText& column) {
    std::vector<std::string> texts;
    for (const PlanRow* row : rows) {
        std::string text = column.text(*row);
        if (std::find(texts.begin(), texts.end(), text) == texts.end()) {
            texts.push_back(std::move(text));
        }
    }
    return texts;
}

/// Which of `all` a sentence is about: the fewest columns that tell its rows from the others, as
/// "fp16/pure-fp16, t4"; empty: all of them.
std::string name_of_rows(const RowSet& all, const RowSet& rows) {
    std::array<std::vector<std::string>, kRowTexts.size()> texts;
    for (std::size_t i = 0; i < kRowTexts.size(); ++i) texts[i] = texts_of(rows, kRowTexts[i]);
    const auto selects = [&](uint32_t columns, const PlanRow& row) {
        for (std::size_t i = 0; i < kRowTexts.size(); ++i) {
            if ((columns >> i & 1) == 0) continue;
            const std::string text = kRowTexts[i].text(row);
            if (std::find(texts[i].begin(), texts[i].end(), text) == texts[i].end()) return false;
        }
        return true;
    };
    std::optional<uint32_t> best;
    for (uint32_t columns = 0; columns < 1U << kRowTexts.size(); ++columns) {
        if (best && std::popcount(columns) >= std::popcount(*best)) continue;
        const auto count = std::count_if(
            all.begin(), all.end(), [&](const PlanRow* row) { return selects(columns, *row); });
        if (static_cast<std::size_t>(count) == rows.size()) best = columns;
    }
    if (!best) return fmt::format("{} of {} rows", rows.size(), all.size());
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < kRowTexts.size(); ++i) {
        if ((*best >> i & 1) != 0) parts.push_back(fmt::format("{}", fmt::join(texts[i], "/")));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// Sentences with the rows that each is about, in the order in which they first occur.
template <typename SentencesOf>
void print_sentences(Output& output, const RowSet& rows, std::string_view heading,
                     const SentencesOf& sentences_of) {
    std::vector<std::pair<std::string, RowSet>> sentences;
    for (const PlanRow* row : rows) {
        for (const std::string& sentence : sentences_of(*row)) {
            const auto same = std::find_if(sentences.begin(), sentences.end(),
                                           [&](const auto& one) { return one.first == sentence; });
            if (same == sentences.end()) {
                sentences.push_back({sentence, {row}});
            } else {
                same->second.push_back(row);
            }
        }
    }
    if (!sentences.empty()) output.heading(heading);
    for (const auto& [sentence, about] : sentences) {
        const std::string name = name_of_rows(rows, about);
        output.line(fmt::format("  {}{}{}", name, name.empty() ? "" : ": ", sentence));
    }
}

/// What one row's memory and step are made of.
void print_contents(Output& output, const PlanRow& row) {
    if (row.memory) {
        output.heading("Memory when most is allocated");
        TextTable table{.columns = {{"class", Align::kLeft, {}}, {"bytes", Align::kRight, {}}}};
        const auto add = [&](std::string name, int64_t bytes) {
            if (bytes > 0) table.rows.push_back({std::move(name), format_bytes(bytes)});
        };
        for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
            add(std::string(kCategoryNames[i]), row.memory->contents.by_category[i]);
        }
        int64_t outside_bytes = row.memory->contents.cached_bytes + row.memory->context_bytes;
        const auto add_terms = [&](bool is_tensor) {
            for (const MemoryTerm& term : row.memory->terms) {
                if (term.is_tensor != is_tensor) continue;
                add(term.name.substr(0, term.name.rfind("_bytes")), term.size_bytes);
                if (!is_tensor) outside_bytes += term.size_bytes;
            }
        };
        const int64_t allocated_bytes = row.memory->contents.peaks.peak_allocated_bytes;
        add_terms(/*is_tensor=*/true);
        add("rounding of blocks", row.memory->contents.rounding_bytes);
        add("= allocated", allocated_bytes);
        add("cached by the allocator", row.memory->contents.cached_bytes);
        add_terms(/*is_tensor=*/false);
        add("context", row.memory->context_bytes);
        add("= of the GPU", allocated_bytes + outside_bytes);
        output.table(table);
    }
    if (row.time) {
        output.heading("Time of a step");
        TextTable table{.columns = {{"class", Align::kLeft, {}}, {"time", Align::kRight, {}}}};
        const auto add = [&](std::string name, double ns) {
            if (whole_ns(ns) > 0)
                table.rows.push_back({std::move(name), format_duration(whole_ns(ns))});
        };
        for (std::size_t i = 0; i < kOpClassNames.size(); ++i) {
            add(std::string(kOpClassNames[i]), row.time->by_class_ns[i]);
        }
        add("waiting for the host", row.time->waiting_ns());
        add("optimizer", row.time->optimizer_ns);
        add("all-reduce not hidden", row.time->all_reduce_ns);
        output.table(table);
    }
}

constexpr std::array kCsvColumns{"model",
                                 "head",
                                 "recipe",
                                 "gpu",
                                 "setup",
                                 "precision",
                                 "seq_len",
                                 "status",
                                 "reason",
                                 "batch_size",
                                 "max_batch_size",
                                 "max_batch_limited_by",
                                 "best_batch_size",
                                 "usable_bytes",
                                 "peak_allocated_bytes",
                                 "peak_reserved_bytes",
                                 "step_time_ns",
                                 "throughput_sequences_per_s",
                                 "model_tflops",
                                 "best_throughput_sequences_per_s",
                                 "best_model_tflops"};
constexpr std::array kCsvRequestColumns{"gpus", "zero_stage", "budget_bytes", "link_bytes_per_s"};

/// The objects of a row of the JSON whose keys get a column each.
std::vector<std::pair<std::string, std::vector<std::string>>> csv_groups() {
    const auto keys_of = [](const Json& object) {
        std::vector<std::string> keys;
        for (const auto& [key, value] : object.items()) keys.push_back(key);
        return keys;
    };
    return {{"peak_by_class", keys_of(by_class_json({}))},
            {"terms", keys_of(terms_json({}))},
            {"time_by_class", keys_of(times_json({}))}};
}

std::string csv_text(const Json& value) {
    return value.is_string() ? value.get<std::string>()
           : value.is_null() ? std::string()
                             : value.dump();
}

}  // namespace

void print_plan(Output& output, const Plan& plan) {
    output.line(output.styled(common_texts(plan), Style::kBold));
    output.line(
        "Predicted. Figures from \"at batch\" on are at the largest batch that fits, or at "
        "--batch.");
    output.line();
    output.table(table_of(plan));
    if (plan.rows.size() == 1) print_contents(output, plan.rows.front());
    RowSet all, possible;
    for (const PlanRow& row : plan.rows) {
        all.push_back(&row);
        if (row.status == PlanStatus::kOk) possible.push_back(&row);
    }
    print_sentences(output, all, "Why not", [](const PlanRow& row) {
        return row.reason.empty() ? std::vector<std::string>() : std::vector{row.reason};
    });
    print_sentences(output, possible, "Assumptions", [](const PlanRow& row) { return row.notes; });
}

nlohmann::json plan_json(const Plan& plan, const PlanRequest& request) {
    Json json{{"setup", request.setup->id},
              {"gpus", request.parallel.num_gpus},
              {"zero_stage", request.parallel.zero_stage},
              {"budget_bytes", or_null(request.budget_bytes)},
              {"link_bytes_per_s", or_null(request.bus_bytes_per_s)},
              {"rows", Json::array()}};
    for (const PlanRow& row : plan.rows) json["rows"].push_back(row_json(row));
    return json;
}

std::string plan_csv(const Json& document) {
    CsvWriter csv;
    std::vector<std::string> header(kCsvColumns.begin(), kCsvColumns.end());
    header.insert(header.end(), kCsvRequestColumns.begin(), kCsvRequestColumns.end());
    const auto groups = csv_groups();
    for (const auto& [group, keys] : groups) header.insert(header.end(), keys.begin(), keys.end());
    header.emplace_back("notes");
    csv.row(header);
    for (const Json& row : document["rows"]) {
        std::vector<std::string> cells;
        for (const char* key : kCsvColumns) cells.push_back(csv_text(row[key]));
        for (const char* key : kCsvRequestColumns) cells.push_back(csv_text(document[key]));
        for (const auto& [group, keys] : groups) {
            for (const std::string& key : keys) {
                cells.push_back(row[group].is_null() ? "" : csv_text(row[group][key]));
            }
        }
        cells.push_back(
            fmt::format("{}", fmt::join(row["notes"].get<std::vector<std::string>>(), "; ")));
        csv.row(cells);
    }
    return csv.take();
}

}  // namespace app
