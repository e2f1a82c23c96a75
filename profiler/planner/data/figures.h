#pragma once

#include "models/config/compute_capability.h"
#include "models/config/names.h"
#include "models/config/result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Strict reading of the planner's data files (gpus.json, setups.json, calibration.json). Each
/// figure must have a source. Unknown and missing fields are errors that name the file, the row and
/// the field.
namespace profiler {

/// A number, and a description of where it comes from.
struct Figure {
    double value = 0;
    std::string source;
};

/// The range of a figure in the unit of its field. It keeps modelled times between nanoseconds and
/// years.
struct Limits {
    double least = 0;
    double most = 1e15;
};
inline constexpr Limits kGpuLimits{0.01, 1e6};   // GiB, GB/s, TFLOPS
inline constexpr Limits kCountLimits{1, 1e6};    // of parts, bytes or launches
inline constexpr Limits kRatioLimits{0.01, 10};  // efficiencies and shares of a specification

/// Ends the reading of a file; the message names the place. The `parse_…` functions catch it.
struct FieldError {
    std::string message;
};

/// One JSON object of a data file. Each field is read once; `finish` refuses fields that were not
/// read.
class FieldReader {
public:
    /// `place` names the object in errors: "gpus.json, rtx3090". `sources` is the table of the
    /// file.
    FieldReader(const nlohmann::json& object, std::string place,
                const std::map<std::string, std::string>& sources);

    std::string text(const char* key);
    std::optional<std::string> optional_text(const char* key);
    std::vector<std::string> optional_texts(const char* key);
    bool boolean(const char* key);
    models::ComputeCapability capability(const char* key);  // written as "8.6"
    std::optional<models::ComputeCapability> optional_capability(const char* key);
    /// One of the names of an enum.
    template <typename Enum, std::size_t N>
    Enum name(const char* key, const std::array<std::string_view, N>& names) {
        const auto value = models::find_name<Enum>(names, text(key));
        if (!value) fail(fmt::format("'{}' must be one of {}", key, fmt::join(names, ", ")));
        return *value;
    }
    double number(const char* key, const Limits& limits = {});
    /// {"value": 24, "source": "datasheet"}, in the field's unit.
    Figure figure(const char* key, double unit = 1, const Limits& limits = {});
    std::optional<Figure> optional_figure(const char* key, double unit = 1,
                                          const Limits& limits = {});
    /// The same in a row that has one figure and one source: "mib": 500, "source": "datasheet".
    Figure row_figure(const char* key, double unit = 1, const Limits& limits = kGpuLimits);
    /// The description of the object's own "source".
    std::string source();
    const nlohmann::json& array(const char* key);
    /// Reads each object of a list with `read(FieldReader&)`. A missing list is empty.
    template <typename Row>
    void add_rows(const char* key, std::vector<Row>& rows, Row (*read)(FieldReader&)) {
        if (!has(key)) return;
        std::size_t number = 0;
        for (const nlohmann::json& object : array(key)) {
            FieldReader reader(object, fmt::format("{}, {} {}", place_, key, ++number), sources_);
            rows.push_back(read(reader));
            reader.finish();
        }
    }
    /// A {...} inside the object.
    template <typename Read>
    void group(const char* key, const Read& read) {
        FieldReader reader(take(key), fmt::format("{}, {}", place_, key), sources_);
        read(reader);
        reader.finish();
    }
    bool has(const char* key) const { return object_.contains(key); }
    void finish();

    [[noreturn]] void fail(const std::string& problem) const;
    const std::string& place() const { return place_; }

private:
    const nlohmann::json& take(const char* key);

    const nlohmann::json& object_;
    std::string place_;
    const std::map<std::string, std::string>& sources_;
    std::set<std::string> taken_;
};

/// The document of a data file and its table of sources; throws FieldError.
struct DataFile {
    nlohmann::json document;
    std::map<std::string, std::string> sources;
};
DataFile parse_data_file(std::string_view text, const std::string& file);

/// Reads the objects of the document's only list, `key`, with `read(FieldReader&)`. Each has a
/// unique `id`. `what` is the noun in errors: "GPU".
template <typename Row>
models::Result<std::vector<Row>> parse_rows(std::string_view text, const std::string& file,
                                            const char* key, std::string_view what,
                                            Row (*read)(FieldReader&)) {
    try {
        const DataFile data = parse_data_file(text, file);
        FieldReader document(data.document, file, data.sources);
        std::vector<Row> rows;
        std::set<std::string> ids;
        for (const nlohmann::json& object : document.array(key)) {
            FieldReader reader(object, file, data.sources);
            Row row = read(reader);
            reader.finish();
            if (!ids.insert(row.id).second) {
                throw FieldError{
                    fmt::format("{}: the {} '{}' is there twice.", file, what, row.id)};
            }
            rows.push_back(std::move(row));
        }
        document.finish();
        return rows;
    } catch (const FieldError& error) {
        return models::fail("{}", error.message);
    }
}

/// The GPUs that a row is about; empty: all.
using GpuIds = std::vector<std::string>;
inline bool is_about(const GpuIds& ids, std::string_view gpu) {
    return ids.empty() || std::ranges::find(ids, gpu) != ids.end();
}

/// The last row about a GPU for which `holds(row)` is true; null if there is none. The last row
/// counts because special rows follow general rows.
template <typename Row, typename Holds>
const Row* last_row_about(const std::vector<Row>& rows, std::string_view gpu, const Holds& holds) {
    const auto row = std::find_if(rows.rbegin(), rows.rend(), [&](const Row& one) {
        return is_about(one.gpus, gpu) && holds(one);
    });
    return row == rows.rend() ? nullptr : &*row;
}
template <typename Row>
const Row* last_row_about(const std::vector<Row>& rows, std::string_view gpu) {
    return last_row_about(rows, gpu, [](const Row&) { return true; });
}

}  // namespace profiler
