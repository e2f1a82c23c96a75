#include "app/commands/reports/prediction_error_report.h"

#include "profiler/analysis/compare/prediction_error.h"
#include "profiler/tables/signed_text.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace app {
namespace {

using namespace profiler;

struct Pair {
    const ComparisonColumn* predicted;
    const ComparisonColumn* measured;
    PredictionError result;
};

std::vector<Pair> pairs_of(const Comparison& comparison) {
    std::vector<Pair> pairs;
    for (const ComparisonColumn& predicted : comparison.columns) {
        if (!predicted.step_trace || predicted.source != Source::kPredicted) continue;
        for (const ComparisonColumn& measured : comparison.columns) {
            if (!measured.step_trace || measured.source == Source::kPredicted) continue;
            // Traces of different steps or recipes have no prediction error.
            auto result = explain_prediction_error(*predicted.step_trace, *measured.step_trace);
            if (result) pairs.push_back({&predicted, &measured, std::move(*result)});
        }
    }
    return pairs;
}

TextTable gap_table(const PredictionError& result) {
    TextTable table{.columns = {{"", Align::kLeft},
                                {"predicted", Align::kRight},
                                {"measured", Align::kRight},
                                {"difference", Align::kRight}}};
    const auto add = [&](std::string name, int64_t predicted, int64_t measured) {
        table.rows.push_back({std::move(name), format_bytes(predicted), format_bytes(measured),
                              change_in_bytes(predicted - measured)});
    };
    add(fmt::format("{} tensors of both", format_count(result.matched_count)), result.matched_bytes,
        result.matched_bytes);
    for (std::size_t i = 0; i < result.gaps.size(); ++i) {
        const Gap& gap = result.gaps[i];
        if (gap.predicted_bytes == 0 && gap.measured_bytes == 0) continue;
        add(std::string(kGapCauseNames[i]), gap.predicted_bytes, gap.measured_bytes);
    }
    add(result.of_reserved ? "reserved at most" : "allocated at most", result.predicted_bytes,
        result.measured_bytes);
    return table;
}

TextTable tensor_table(const PredictionError& result) {
    constexpr std::size_t kMostTensors = 10;
    TextTable table{.columns = {{"held by one only", Align::kLeft},
                                {"class", Align::kLeft},
                                {"in", Align::kLeft},
                                {"size", Align::kRight}}};
    for (std::size_t i = 0; i < std::min(result.tensors.size(), kMostTensors); ++i) {
        const UnmatchedTensor& tensor = result.tensors[i];
        table.rows.push_back({tensor.name, std::string(name_of(tensor.category)),
                              tensor.is_predicted ? "prediction" : "measurement",
                              format_bytes(tensor.size_bytes)});
    }
    if (result.tensors.size() > kMostTensors) {
        const auto rest = static_cast<int64_t>(result.tensors.size() - kMostTensors);
        table.rows.push_back({format_count(rest) + " more", "", "", ""});
    }
    return table;
}

}  // namespace

void print_prediction_errors(Output& output, const Comparison& comparison) {
    for (const Pair& pair : pairs_of(comparison)) {
        output.heading(fmt::format("{}: {}", pair.predicted->recipe, pair.result.sentence));
        output.table(gap_table(pair.result));
        if (pair.result.tensors.empty()) continue;
        output.line();
        output.table(tensor_table(pair.result));
    }
}

nlohmann::json prediction_errors_json(const Comparison& comparison) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Pair& pair : pairs_of(comparison)) {
        const PredictionError& result = pair.result;
        nlohmann::json gaps = nlohmann::json::object();
        for (std::size_t i = 0; i < result.gaps.size(); ++i) {
            gaps[std::string(kGapCauseNames[i]) + "_bytes"] = result.gaps[i].difference_bytes();
        }
        nlohmann::json tensors = nlohmann::json::array();
        for (const UnmatchedTensor& tensor : result.tensors) {
            tensors.push_back({{"name", tensor.name},
                               {"role", name_of(tensor.category)},
                               {"predicted", tensor.is_predicted},
                               {"size_bytes", tensor.size_bytes}});
        }
        rows.push_back({{"recipe", pair.predicted->recipe},
                        {"predicted_file", pair.predicted->files.front()},
                        {"measured_file", pair.measured->files.front()},
                        {"of_reserved", result.of_reserved},
                        {"predicted_bytes", result.predicted_bytes},
                        {"measured_bytes", result.measured_bytes},
                        {"matched_bytes", result.matched_bytes},
                        {"matched_tensors", result.matched_count},
                        {"gaps", std::move(gaps)},
                        {"tensors", std::move(tensors)},
                        {"sentence", result.sentence}});
    }
    return rows;
}

}  // namespace app
