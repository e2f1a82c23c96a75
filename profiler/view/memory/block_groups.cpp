#include "profiler/view/memory/block_groups.h"

#include "profiler/analysis/step/origin.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace profiler {
namespace {

constexpr std::size_t kMostNamed = 7;  // ops or lines of code with a colour of their own

using ColorSource = BlockGroup::ColorSource;

/// The op that made a block, or in a PyTorch snapshot the line of code that did, as a number.
class Makers {
public:
    explicit Makers(const StepIndex& source)
        : source_(source), of_stack_(source.trace().stacks.size(), -1) {}

    /// -1: not known.
    int32_t of(Id<Allocation> allocation) {
        const Trace& trace = source_.trace();
        const Id<Op> op = trace.allocations.get<&Allocation::op>(allocation);
        if (op.valid()) return number_of(std::string(name_of_call(trace, op)));
        const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(allocation);
        if (!stack.valid() || stack.index() >= of_stack_.size()) return -1;
        int32_t& number = of_stack_[stack.index()];
        if (number < 0) number = number_of(source_.sites().of(stack));
        return number;
    }
    const std::vector<std::string>& names() const { return names_; }

private:
    int32_t number_of(const std::string& name) {
        const auto [found, added] = numbers_.emplace(name, static_cast<int32_t>(names_.size()));
        if (added) names_.push_back(name);
        return found->second;
    }

    const StepIndex& source_;
    std::vector<int32_t> of_stack_;
    std::unordered_map<std::string, int32_t> numbers_;
    std::vector<std::string> names_;
};

}  // namespace

std::string name_of_block(const StepIndex& source, Id<Allocation> allocation) {
    const Trace& trace = source.trace();
    const BlockOrigin origin = origin_of(trace, source.storage_names(), {}, allocation);
    if (!origin.name.empty()) return std::string(origin.name);
    const Id<Stack> stack = trace.allocations.get<&Allocation::stack>(allocation);
    return stack.valid() ? source.sites().of(stack) : std::string("block");
}

BlockGroups::BlockGroups(const StepIndex& source, BlockColoring coloring) {
    group_.reserve(source.blocks().size());
    switch (coloring) {
        case BlockColoring::kCategory:
            add_categories(source);
            break;
        case BlockColoring::kLayer:
            add_layers(source);
            break;
        case BlockColoring::kOp:
            add_makers(source);
            break;
        case BlockColoring::kSize:
            add_sizes(source);
            break;
    }
    num_colors_ = groups_.size();
}

void BlockGroups::part(const std::vector<char>& gone) {
    for (std::size_t i = 0; i < num_colors_; ++i) {
        groups_.push_back(groups_[i]);
        groups_.back().gone = true;
    }
    for (std::size_t i = 0; i < group_.size(); ++i) {
        if (gone[i]) group_[i] = static_cast<uint8_t>(group_[i] + num_colors_);
    }
}

void BlockGroups::add_categories(const StepIndex& source) {
    for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
        const auto category = static_cast<Category>(i);
        groups_.push_back({.label = std::string(label_of(category)),
                           .color_source = ColorSource::kCategory,
                           .category = category});
    }
    for (std::size_t i = 0; i < source.blocks().size(); ++i) {
        group_.push_back(
            static_cast<uint8_t>(category_of_block(source.trace(), source.blocks().allocation(i))));
    }
}

/// Neighbouring layers share a group if there are too many.
void BlockGroups::add_layers(const StepIndex& source) {
    const BlockLabels& labels = source.labels();
    int32_t last = -1;
    for (std::size_t i = 0; i < source.blocks().size(); ++i) last = std::max(last, labels.layer(i));
    groups_.push_back({.label = "outside the layers"});
    constexpr auto kBins = static_cast<int32_t>(kMost) - 1;
    const int32_t per_group = last / kBins + 1;
    for (int32_t first = 0; first <= last && groups_.size() < kMost; first += per_group) {
        const int32_t end = std::min(first + per_group - 1, last);
        groups_.push_back({.label = per_group == 1 ? fmt::format("layer {}", first)
                                                   : fmt::format("layers {}-{}", first, end),
                           .color_source = ColorSource::kRamp,
                           .share = last > 0 ? static_cast<double>(first) / last : 0});
    }
    for (std::size_t i = 0; i < source.blocks().size(); ++i) {
        const int32_t layer = labels.layer(i);
        group_.push_back(layer < 0 ? uint8_t{0} : static_cast<uint8_t>(1 + layer / per_group));
    }
}

/// The ops that allocate most have colours; all others share one.
void BlockGroups::add_makers(const StepIndex& source) {
    const BlockHistory& history = source.blocks();
    Makers makers(source);
    std::vector<int32_t> maker;
    std::vector<std::pair<double, std::size_t>> bytes;  // and the maker's number
    for (std::size_t i = 0; i < history.size(); ++i) {
        maker.push_back(makers.of(history.allocation(i)));
        if (maker.back() < 0) continue;
        const auto number = static_cast<std::size_t>(maker.back());
        while (bytes.size() <= number) bytes.emplace_back(0.0, bytes.size());
        bytes[number].first += static_cast<double>(history.size_bytes(i));
    }
    std::ranges::stable_sort(bytes, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<uint8_t> group_of_maker(bytes.size(), 0);
    groups_.push_back({.label = makers.names().empty() ? "unknown" : "others"});
    for (std::size_t i = 0; i < std::min(bytes.size(), kMostNamed); ++i) {
        group_of_maker[bytes[i].second] = static_cast<uint8_t>(groups_.size());
        groups_.push_back({.label = makers.names()[bytes[i].second],
                           .color_source = ColorSource::kNamed,
                           .number = i});
    }
    for (const int32_t number : maker) {
        group_.push_back(number < 0 ? uint8_t{0}
                                    : group_of_maker[static_cast<std::size_t>(number)]);
    }
}

void BlockGroups::add_sizes(const StepIndex& source) {
    struct Bin {
        int64_t end_bytes;
        const char* label;
    };
    constexpr int64_t kMiB = int64_t{1} << 20;
    constexpr std::array<Bin, 6> kBins{{{kMiB, "below 1 MiB"},
                                        {4 * kMiB, "1 to 4 MiB"},
                                        {16 * kMiB, "4 to 16 MiB"},
                                        {64 * kMiB, "16 to 64 MiB"},
                                        {256 * kMiB, "64 to 256 MiB"},
                                        {INT64_MAX, "256 MiB and more"}}};
    for (std::size_t i = 0; i < kBins.size(); ++i) {
        groups_.push_back({.label = kBins[i].label,
                           .color_source = ColorSource::kRamp,
                           .share = static_cast<double>(i) / (kBins.size() - 1)});
    }
    for (std::size_t i = 0; i < source.blocks().size(); ++i) {
        std::size_t bin = 0;
        while (source.blocks().size_bytes(i) >= kBins[bin].end_bytes) ++bin;
        group_.push_back(static_cast<uint8_t>(bin));
    }
}

}  // namespace profiler
