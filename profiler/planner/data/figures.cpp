#include "profiler/planner/data/figures.h"

namespace profiler {

FieldReader::FieldReader(const nlohmann::json& object, std::string place,
                         const std::map<std::string, std::string>& sources)
    : object_(object), place_(std::move(place)), sources_(sources) {
    if (!object.is_object()) fail("an object {...} is expected here");
    const auto id = object.find("id");
    if (id != object.end() && id->is_string()) place_ += ", " + id->get<std::string>();
}

void FieldReader::fail(const std::string& problem) const {
    throw FieldError{fmt::format("{}: {}.", place_, problem)};
}

const nlohmann::json& FieldReader::take(const char* key) {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(fmt::format("the field '{}' is missing", key));
    taken_.insert(key);
    return *found;
}

std::string FieldReader::text(const char* key) {
    const nlohmann::json& value = take(key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
        fail(fmt::format("'{}' must be a text", key));
    }
    return value.get<std::string>();
}

std::optional<std::string> FieldReader::optional_text(const char* key) {
    if (!has(key)) return std::nullopt;
    return text(key);
}

std::vector<std::string> FieldReader::optional_texts(const char* key) {
    std::vector<std::string> texts;
    if (!has(key)) return texts;
    for (const nlohmann::json& item : array(key)) {
        if (!item.is_string()) fail(fmt::format("'{}' must be a list of texts", key));
        texts.push_back(item.get<std::string>());
    }
    return texts;
}

models::ComputeCapability FieldReader::capability(const char* key) {
    const auto parsed = models::parse_compute_capability(text(key));
    if (!parsed) fail(fmt::format("'{}' must be a text such as \"8.6\"", key));
    return *parsed;
}

std::optional<models::ComputeCapability> FieldReader::optional_capability(const char* key) {
    return has(key) ? std::optional(capability(key)) : std::nullopt;
}

bool FieldReader::boolean(const char* key) {
    const nlohmann::json& value = take(key);
    if (!value.is_boolean()) fail(fmt::format("'{}' must be true or false", key));
    return value.get<bool>();
}

double FieldReader::number(const char* key, const Limits& limits) {
    const nlohmann::json& value = take(key);
    if (!value.is_number()) fail(fmt::format("'{}' must be a number", key));
    const auto number = value.get<double>();
    if (number >= limits.least && number <= limits.most) return number;
    if (limits.least == 0) fail(fmt::format("'{}' must be a number that is not negative", key));
    fail(fmt::format("'{}' must be above 0, a number from {} to {}", key, limits.least,
                     limits.most));
}

Figure FieldReader::figure(const char* key, double unit, const Limits& limits) {
    Figure figure;
    group(key, [&](FieldReader& reader) {
        figure = {reader.number("value", limits) * unit, reader.source()};
    });
    return figure;
}

std::optional<Figure> FieldReader::optional_figure(const char* key, double unit,
                                                   const Limits& limits) {
    if (!has(key)) return std::nullopt;
    return figure(key, unit, limits);
}

Figure FieldReader::row_figure(const char* key, double unit, const Limits& limits) {
    const double value = number(key, limits) * unit;
    return {value, source()};
}

std::string FieldReader::source() {
    const std::string id = text("source");
    const auto found = sources_.find(id);
    if (found == sources_.end()) {
        fail(fmt::format("the source '{}' is not in the file's 'sources'", id));
    }
    return found->second;
}

const nlohmann::json& FieldReader::array(const char* key) {
    const nlohmann::json& value = take(key);
    if (!value.is_array()) fail(fmt::format("'{}' must be a list", key));
    return value;
}

void FieldReader::finish() {
    for (const auto& [key, value] : object_.items()) {
        if (!taken_.contains(key)) fail(fmt::format("the field '{}' is not known", key));
    }
}

DataFile parse_data_file(std::string_view text, const std::string& file) {
    DataFile data{nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false), {}};
    if (!data.document.is_object()) {
        throw FieldError{
            fmt::format("{} is not a JSON object: compare it with the file that "
                        "Temposcope brings (docs/choose_gpu_and_batch.md).",
                        file)};
    }
    const auto sources = data.document.find("sources");
    if (sources == data.document.end() || !sources->is_object()) {
        throw FieldError{
            fmt::format("{}: the object 'sources' is missing: it says where the "
                        "figures are from.",
                        file)};
    }
    for (const auto& [id, words] : sources->items()) {
        if (!words.is_string() || words.get_ref<const std::string&>().empty()) {
            throw FieldError{fmt::format("{}: the source '{}' must be a text.", file, id)};
        }
        data.sources[id] = words.get<std::string>();
    }
    data.document.erase("sources");
    return data;
}

}  // namespace profiler
