#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <string>
#include <vector>

/// The colours of single blocks: every block belongs to one group, and a group has a colour.
namespace profiler {

enum class BlockColoring : uint8_t { kCategory, kLayer, kOp, kSize };

struct BlockGroup {
    enum class ColorSource : uint8_t {
        kCategory,  // the colour of `category`
        kNamed,     // the colour `number` of a palette
        kRamp,      // `share` of the way along a ramp
        kOther      // grey
    };
    std::string label;  // "Parameters", "layer 3", "aten::addmm", "4 to 16 MiB"
    ColorSource color_source = ColorSource::kOther;
    Category category = Category::kUnknown;
    std::size_t number = 0;
    double share = 0;
    bool gone = false;  // of a difference: blocks that the other trace does not hold
};

/// "attention_probs"; else the op that made the block; else the line of code; else "block".
std::string name_of_block(const StepIndex& source, Id<Allocation> allocation);

class BlockGroups {
public:
    static constexpr std::size_t kMost = 40;

    BlockGroups(const StepIndex& source, BlockColoring coloring);

    const std::vector<BlockGroup>& all() const { return groups_; }
    uint8_t of(std::size_t block) const { return group_[block]; }
    /// The group without regard to what is gone.
    uint8_t color_of(std::size_t block) const {
        return static_cast<uint8_t>(group_[block] % num_colors_);
    }
    /// Moves blocks that are gone into groups of their own, so that others do not hide them.
    void part(const std::vector<char>& gone);

private:
    void add_categories(const StepIndex& source);
    void add_layers(const StepIndex& source);
    void add_makers(const StepIndex& source);
    void add_sizes(const StepIndex& source);

    std::vector<BlockGroup> groups_;
    std::vector<uint8_t> group_;  // by block
    std::size_t num_colors_ = 1;
};

}  // namespace profiler
