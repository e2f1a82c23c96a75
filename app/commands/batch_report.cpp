#include "app/commands/batch_report.h"

#include "app/commands/console/csv_writer.h"
#include "app/commands/console/json_values.h"
#include "app/commands/reports/reports.h"
#include "profiler/planner/plan.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace app {
namespace {

using namespace profiler;
using Json = nlohmann::json;

/// "activation 30.1 GiB, parameter 1.2 GiB": the two largest.
std::string what_filled(const CategoryBytes& by_category) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < by_category.size(); ++i) {
        if (by_category[i] > 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return by_category[a] > by_category[b]; });
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 2); ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", kCategoryNames[order[i]],
                            format_bytes(by_category[order[i]]));
    }
    return text;
}

/// " 2.00 GiB were requested when 1.10 GiB were free."
std::string failed_request(const BatchTry& above) {
    if (above.requested_bytes < 0) return {};
    return fmt::format(" {} were requested{}.", format_bytes(above.requested_bytes),
                       above.free_bytes < 0
                           ? ""
                           : fmt::format(" when {} were free", format_bytes(above.free_bytes)));
}

/// " Largest: logits 8.00 GiB, addmm_output 6.00 GiB."
std::string largest_tensors(const BatchTry& above) {
    std::string text;
    for (const LiveTensor& tensor : above.largest) {
        text += fmt::format("{}{} {}", text.empty() ? " Largest: " : ", ", tensor.name,
                            format_bytes(tensor.size_bytes));
    }
    return text.empty() ? text : text + ".";
}

Json tensors_json(const std::vector<LiveTensor>& tensors) {
    Json json = Json::array();
    for (const LiveTensor& tensor : tensors) {
        json.push_back({{"name", tensor.name}, {"size_bytes", tensor.size_bytes}});
    }
    return json;
}

std::string csv_text(const Json& value) {
    if (value.is_null()) return {};
    return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string size_text(int64_t bytes) { return bytes < 0 ? "–" : format_bytes(bytes); }

std::string name_of(const ProgramCase& one) {
    std::string text = one.gpu;
    for (const auto& [name, value] : one.values) text += fmt::format(", {}={}", name, value);
    return text;
}

std::string about_try(const ProgramCase& of, const BatchTry& one) {
    return fmt::format("{}: a batch of {} {} ({})", name_of(of), one.batch_size,
                       one.fits ? "fits" : "does not fit", size_text(one.peak_allocated_bytes));
}

std::string why_not(const LargestBatch& found, std::string_view subject) {
    if (!found.first_above) {
        const int64_t batch_size = found.largest->batch_size;
        if (!found.of.why_most.empty()) {
            return fmt::format("{}: {}", subject,
                               not_limited_by_memory(batch_size, found.of.why_most));
        }
        return fmt::format("{}: the search ended at {}; larger batches fit, too.", subject,
                           batch_size);
    }
    const BatchTry& above = *found.first_above;
    if (above.peak_allocated_bytes < 0) {
        return fmt::format("{}: a batch of {} runs out of memory before its first step.", subject,
                           above.batch_size);
    }
    return fmt::format("{}: a batch of {} runs out of memory at {} ({}){}.{}{}", subject,
                       above.batch_size, format_bytes(above.peak_allocated_bytes),
                       what_filled(above.by_category),
                       above.place.empty() ? "" : ", in " + above.place, failed_request(above),
                       largest_tensors(above));
}

Json batch_json(const LargestBatch& row) {
    Json json{{"gpu", row.of.gpu},
              {"values", Json::object()},
              {"max_batch_size", Json()},
              {"peak_allocated_bytes", Json()},
              {"peak_reserved_bytes", Json()},
              {"step_time_ns", Json()},
              {"failing_batch_size", Json()},
              {"failing_place", Json()},
              {"failing_requested_bytes", Json()},
              {"failing_free_bytes", Json()},
              {"failing_by_class", Json()},
              {"failing_tensors", Json()}};
    for (const auto& [name, value] : row.of.values) json["values"][name] = value;
    if (row.largest) {
        json["max_batch_size"] = row.largest->batch_size;
        json["peak_allocated_bytes"] = known_or_null(row.largest->peak_allocated_bytes);
        json["peak_reserved_bytes"] = known_or_null(row.largest->peak_reserved_bytes);
        json["step_time_ns"] = known_or_null(row.largest->step_time_ns);
    }
    if (row.first_above) {
        json["failing_batch_size"] = row.first_above->batch_size;
        json["failing_place"] = row.first_above->place;
        json["failing_requested_bytes"] = known_or_null(row.first_above->requested_bytes);
        json["failing_free_bytes"] = known_or_null(row.first_above->free_bytes);
        json["failing_by_class"] = by_class_json(row.first_above->by_category);
        json["failing_tensors"] = tensors_json(row.first_above->largest);
    }
    return json;
}

std::string batches_csv(const Json& rows, const std::vector<std::string>& value_names,
                        const std::vector<std::string>& more_keys) {
    CsvWriter csv;
    for (std::size_t i = 0; i <= rows.size(); ++i) {
        const bool is_header = i == 0;
        const Json& row = rows[is_header ? 0 : i - 1];
        std::vector<std::string> cells;
        const auto add = [&](std::string name, const Json& value) {
            cells.push_back(is_header ? std::move(name) : csv_text(value));
        };
        add("gpu", row["gpu"]);
        for (const std::string& name : value_names) add(name, row["values"].value(name, Json()));
        for (const std::string& key : more_keys) add(key, row[key]);
        for (const char* key : {"max_batch_size", "peak_allocated_bytes", "peak_reserved_bytes",
                                "step_time_ns", "failing_batch_size", "failing_place",
                                "failing_requested_bytes", "failing_free_bytes"}) {
            add(key, row[key]);
        }
        for (const std::string_view category : kCategoryNames) {
            const std::string key = fmt::format("{}_bytes", category);
            const Json& by_class = row["failing_by_class"];
            add("failing_" + key, by_class.is_null() ? Json() : by_class.value(key, Json()));
        }
        std::string tensors;
        for (const Json& tensor : row["failing_tensors"]) {
            tensors += fmt::format("{}{} {}", tensors.empty() ? "" : "; ",
                                   tensor["name"].get<std::string>(), tensor["size_bytes"].dump());
        }
        add("failing_tensors", tensors);
        csv.row(cells);
    }
    return csv.take();
}

}  // namespace app
