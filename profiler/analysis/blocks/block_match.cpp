#include "profiler/analysis/blocks/block_match.h"

#include "profiler/analysis/step/call_site.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace profiler {
namespace {

/// Where the blocks of a trace come from, as numbers that two traces share.
class Origins {
public:
    Origins(const Trace& trace, std::unordered_map<std::string, int32_t>& numbers)
        : trace_(trace), sites_(trace), numbers_(numbers) {}

    int32_t of(const Allocation& block) {
        const bool has_stack = block.stack.valid();
        auto& known = has_stack ? of_stack_ : of_op_name_;
        int32_t key = block.stack.value;
        if (!has_stack) {
            key = block.op.valid() ? trace_.ops.get<&Op::name>(block.op).value : -1;
        }
        const auto [place, is_new] = known.try_emplace(key, -1);
        if (is_new) {
            const std::string name = has_stack ? without_line(sites_.of(block.stack))
                                               : std::string(trace_.text(name_of(key)));
            place->second =
                numbers_.try_emplace(name, static_cast<int32_t>(numbers_.size())).first->second;
        }
        return place->second;
    }

private:
    static StringId name_of(int32_t value) {
        return value < 0 ? StringId() : StringId(static_cast<std::size_t>(value));
    }

    const Trace& trace_;
    CallSites sites_;
    std::unordered_map<std::string, int32_t>& numbers_;
    std::unordered_map<int32_t, int32_t> of_stack_, of_op_name_;
};

using BlocksByKey = std::map<std::pair<int32_t, int64_t>, std::vector<Id<Allocation>>>;

BlocksByKey blocks_by_key(const Trace& trace, std::unordered_map<std::string, int32_t>& numbers) {
    Origins origins(trace, numbers);
    BlocksByKey blocks;
    const Id<Device> profiled = profiled_device(trace);
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Id<Allocation> id(i);
        const Allocation block = trace.allocations[id];
        if (!is_on(profiled, block.device)) continue;
        blocks[{origins.of(block), block.requested_bytes}].push_back(id);
    }
    return blocks;
}

/// The longest list of pairs in which both sides rise. Patience sorting: `ends[n]` is the pair with
/// the least second block at which a list of n + 1 pairs ends.
std::vector<BlockPair> longest_rising(const std::vector<BlockPair>& pairs) {
    std::vector<std::size_t> ends, before(pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto place =
            std::lower_bound(ends.begin(), ends.end(), i, [&](std::size_t a, std::size_t b) {
                return pairs[a].second.value < pairs[b].second.value;
            });
        before[i] = place == ends.begin() ? i : *(place - 1);
        if (place == ends.end()) {
            ends.push_back(i);
        } else {
            *place = i;
        }
    }
    std::vector<BlockPair> rising(ends.size());
    for (std::size_t n = ends.size(), i = n == 0 ? 0 : ends.back(); n-- > 0; i = before[i]) {
        rising[n] = pairs[i];
    }
    return rising;
}

}  // namespace

std::vector<BlockPair> match_blocks(const Trace& first, const Trace& second) {
    std::unordered_map<std::string, int32_t> numbers;
    const BlocksByKey a = blocks_by_key(first, numbers), b = blocks_by_key(second, numbers);
    std::vector<BlockPair> pairs;
    for (const auto& [key, blocks] : a) {
        const auto twins = b.find(key);
        if (twins == b.end()) continue;
        const std::size_t count = std::min(blocks.size(), twins->second.size());
        for (std::size_t i = 0; i < count; ++i) pairs.push_back({blocks[i], twins->second[i]});
    }
    std::ranges::sort(pairs, {}, [](const BlockPair& pair) { return pair.first.value; });
    return longest_rising(pairs);
}

std::string without_line(std::string_view site) {
    std::string text;
    for (std::size_t i = 0; i < site.size(); ++i) {
        const std::size_t end = site.find_first_not_of("0123456789", i + 1);
        const bool is_line =
            site[i] == ':' && end != i + 1 && (end == std::string_view::npos || site[end] == ' ');
        if (!is_line) {
            text += site[i];
        } else {
            i = std::min(end, site.size()) - 1;
        }
    }
    return text;
}

}  // namespace profiler
