#include "profiler/analysis/compare/comparison_labels.h"

#include "profiler/analysis/step/describe_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace profiler {
namespace {

namespace fs = std::filesystem;

/// The parts of a path without its extension, in reverse order.
std::vector<std::string> parts_from_end(const std::string& file) {
    const fs::path path = fs::path(file).lexically_normal();
    std::vector<std::string> parts;
    for (const fs::path& part : path) parts.push_back(part.string());
    if (!parts.empty()) parts.back() = path.stem().string();
    std::reverse(parts.begin(), parts.end());
    return parts;
}

/// The last `count` parts, as a path.
std::string suffix(const std::vector<std::string>& parts, std::size_t count) {
    fs::path path;
    for (std::size_t i = std::min(count, parts.size()); i-- > 0;) path /= parts[i];
    return path.string();
}

/// The shortest end of the path `file` that no path in `others` has; all of it if there is none.
std::string distinguishing_suffix(const std::string& file, const std::vector<std::string>& others) {
    const std::vector<std::string> parts = parts_from_end(file);
    for (std::size_t count = 1; count < parts.size(); ++count) {
        const std::string text = suffix(parts, count);
        const bool repeats = std::any_of(others.begin(), others.end(), [&](const auto& other) {
            return suffix(parts_from_end(other), count) == text;
        });
        if (!repeats) return text;
    }
    return suffix(parts, parts.size());
}

std::string label_of(const std::vector<ComparisonColumn>& columns, std::size_t index) {
    const ComparisonColumn& column = columns[index];
    bool repeats = false;
    std::vector<std::string> others;  // files of the same recipe and source
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i == index || columns[i].recipe != column.recipe) continue;
        repeats = true;
        if (columns[i].source == column.source) others.push_back(columns[i].files.front());
    }
    if (!repeats) return column.recipe;
    return fmt::format("{} ({})", column.recipe,
                       others.empty() ? std::string(describe(column.source))
                                      : distinguishing_suffix(column.files.front(), others));
}

}  // namespace

std::vector<std::string> unique_labels(const std::vector<ComparisonColumn>& columns) {
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::string label = label_of(columns, i);
        std::string unique = label;
        for (int n = 2; std::find(labels.begin(), labels.end(), unique) != labels.end(); ++n) {
            unique = fmt::format("{} #{}", label, n);
        }
        labels.push_back(std::move(unique));
    }
    return labels;
}

}  // namespace profiler
