#include "profiler/planner/planner_data.h"

#include "embedded/temposcope_planner_data.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace profiler {
namespace {

template <typename T>
T value_of(models::Result<T> result) {
    if (!result) throw std::logic_error(result.error().message);
    return std::move(*result);
}

/// The text of a file; none when there is no such file.
models::Result<std::optional<std::string>> read_if_there(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return std::nullopt;
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream || std::filesystem::is_directory(path, error)) {
        return models::fail("{} cannot be read: check its permissions.", path.string());
    }
    return text;
}

/// Adds `more` to `rows`; one of a known id takes the place of the old one.
template <typename Row>
void merge(std::vector<Row>& rows, std::vector<Row> more) {
    for (Row& row : more) {
        const auto same = std::find_if(rows.begin(), rows.end(),
                                       [&](const Row& other) { return other.id == row.id; });
        if (same == rows.end()) {
            rows.push_back(std::move(row));
        } else {
            *same = std::move(row);
        }
    }
}

}  // namespace

const PlannerData& built_in_planner_data() {
    static const PlannerData data{
        value_of(parse_gpus(embedded::gpus(), "gpus.json")),
        value_of(parse_setups(embedded::setups(), "setups.json")),
        value_of(parse_calibration(embedded::calibration(), "calibration.json"))};
    return data;
}

models::Result<PlannerData> load_planner_data(const std::filesystem::path& folder) {
    PlannerData data = built_in_planner_data();
    if (folder.empty()) return data;
    const auto gpus_text = read_if_there(folder / "gpus.json");
    if (!gpus_text) return tl::unexpected(gpus_text.error());
    if (*gpus_text) {
        auto gpus = parse_gpus(**gpus_text, (folder / "gpus.json").string());
        if (!gpus) return tl::unexpected(gpus.error());
        merge(data.gpus, std::move(*gpus));
    }
    const auto setups_text = read_if_there(folder / "setups.json");
    if (!setups_text) return tl::unexpected(setups_text.error());
    if (*setups_text) {
        auto setups = parse_setups(**setups_text, (folder / "setups.json").string());
        if (!setups) return tl::unexpected(setups.error());
        merge(data.setups, std::move(*setups));
    }
    const auto rows_text = read_if_there(folder / "calibration.json");
    if (!rows_text) return tl::unexpected(rows_text.error());
    if (*rows_text) {
        auto extended = extend_calibration(std::move(data.calibration), **rows_text,
                                           (folder / "calibration.json").string());
        if (!extended) return tl::unexpected(extended.error());
        data.calibration = std::move(*extended);
    }
    return data;
}

}  // namespace profiler
