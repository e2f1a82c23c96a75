#pragma once

#include "models/config/cuda_support.h"
#include "models/config/result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Strict reading of the planner's own data files (gpus.json, setups.json, calibration.json): each
/// figure has a source, unknown and missing fields are errors that name the file, the row and the
/// field.
namespace profiler {

/// A number and where it is from, in words that a reader can follow.
struct Figure {
    double value = 0;
    std::string source;
};

/// Ends a reading; the message names the place. Never leaves the `parse_…` functions.
struct FieldError {
    std::string message;
};

/// One JSON object of a data file. Every field is taken once; `finish` refuses those left.
class FieldReader {
public:
    /// `place` says where the object stands: "gpus.json, rtx3090". `sources` are the file's.
    FieldReader(const nlohmann::json& object, std::string place,
                const std::map<std::string, std::string>& sources);

    std::string text(const char* key);
    std::optional<std::string> optional_text(const char* key);
    std::vector<std::string> optional_texts(const char* key);
    bool boolean(const char* key);
    models::ComputeCapability capability(const char* key);  // written as "8.6"
    std::optional<models::ComputeCapability> optional_capability(const char* key);
    /// A positive finite number.
    double number(const char* key);
    /// {"value": 24, "source": "datasheet"}, the value positive (or zero where allowed).
    Figure figure(const char* key);
    std::optional<Figure> optional_figure(const char* key);
    /// The words that the object's own "source" stands for.
    std::string source();
    const nlohmann::json& array(const char* key);
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

}  // namespace profiler
