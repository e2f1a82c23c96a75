#include "profiler/analysis/step/value_reads.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

namespace profiler {
namespace {

constexpr std::size_t kMostPlaces = 3;

std::string_view without_namespace(std::string_view op) {
    const std::size_t colons = op.rfind("::");
    return colons == op.npos ? op : op.substr(colons + 2);
}

std::string times_of(const ValueReadLine& line) {
    const std::string times =
        line.count == 1 ? "once" : fmt::format("{} times", format_count(line.count));
    return line.op.empty() ? times : fmt::format("{}, {}", line.op, times);
}

/// "experts.py:24 main (nonzero, 12 times), experts.py:30 main (item, once) and 2 more places".
std::string places_of(std::span<const ValueReadLine> lines) {
    std::string text;
    const std::size_t num_named = std::min(lines.size(), kMostPlaces);
    for (std::size_t i = 0; i < num_named; ++i) {
        const bool is_last = i + 1 == lines.size() && i > 0;
        text += i == 0 ? "" : is_last ? " and " : ", ";
        text += fmt::format("{} ({})", lines[i].place, times_of(lines[i]));
    }
    const std::size_t num_more = lines.size() - num_named;
    if (num_more == 0) return text;
    return text + fmt::format(" and {} more place{}", num_more, num_more == 1 ? "" : "s");
}

int64_t count_of(std::span<const ValueReadLine> lines) {
    int64_t count = 0;
    for (const ValueReadLine& line : lines) count += line.count;
    return count;
}

std::vector<ValueReadLine> lines_where(const std::vector<ValueReadLine>& lines,
                                       bool (*is_wanted)(ValueReadKind)) {
    std::vector<ValueReadLine> found;
    std::ranges::copy_if(lines, std::back_inserter(found),
                         [&](const ValueReadLine& line) { return is_wanted(line.kind); });
    return found;
}

/// What the worst of the reads does to the figures.
std::string_view consequence_of(ValueReadKind kind) {
    switch (kind) {
        case ValueReadKind::kSize:
        case ValueReadKind::kInteger:
            return "Sizes that depend on them are wrong.";
        case ValueReadKind::kBranch:
            return "What the program does only if one of them is true was left out.";
        default:
            return "Memory does not depend on numbers that are only printed or stored.";
    }
}

}  // namespace

std::vector<ValueReadLine> value_read_lines(const Trace& trace) {
    const CallSites sites(trace);
    std::map<std::tuple<ValueReadKind, std::string, std::string, std::string>, int64_t> counts;
    for (const Id<ValueRead> id : trace.value_reads.ids()) {
        const ValueRead read = trace.value_reads[id];
        const Id<Frame> frame =
            read.stack.valid() ? CallSites::program_frame_of(trace, read.stack) : Id<Frame>();
        const std::string place = frame.valid()        ? sites.label_of(frame)
                                  : read.stack.valid() ? sites.of(read.stack)
                                                       : "in backward";
        counts[{read.kind, place, std::string(without_namespace(trace.text(read.op))),
                std::string(trace.text(read.answer))}] += read.count;
    }
    std::vector<ValueReadLine> lines;
    for (const auto& [key, count] : counts) {
        const auto& [kind, place, op, answer] = key;
        lines.push_back({place, op, kind, count, answer});
    }
    std::ranges::stable_sort(lines, [](const ValueReadLine& a, const ValueReadLine& b) {
        return std::pair(a.kind, -a.count) < std::pair(b.kind, -b.count);
    });
    return lines;
}

std::string value_read_sentence(const std::vector<ValueReadLine>& lines) {
    const std::vector<ValueReadLine> reads = lines_where(lines, &is_value_read);
    if (reads.empty()) return {};
    const int64_t count = count_of(reads);
    return fmt::format(
        "The program read {} value{} that the simulated GPU does not compute, as "
        "zeros: {}. {}",
        format_count(count), count == 1 ? "" : "s", places_of(reads),
        consequence_of(reads.front().kind));
}

std::string assumption_sentence(const std::vector<ValueReadLine>& lines) {
    const std::vector<ValueReadLine> routes =
        lines_where(lines, [](ValueReadKind kind) { return kind == ValueReadKind::kRouting; });
    if (routes.empty()) return {};
    return fmt::format("Which experts get a token is not known: {} was assumed at {}.",
                       routes.front().answer, places_of(routes));
}

}  // namespace profiler
