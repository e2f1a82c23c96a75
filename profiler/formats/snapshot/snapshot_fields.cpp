#include "profiler/formats/snapshot/snapshot_fields.h"

#include "profiler/trace/allocator_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profiler::snapshot {

void stop(std::string text) { throw Problem{std::move(text)}; }

uint8_t word_of(std::string_view text) {
    const auto word = std::find(kWords.begin() + 1, kWords.end(), text);
    if (word != kWords.end()) return static_cast<uint8_t>(word - kWords.begin());
    const auto action = std::find(kRecordedActionNames.begin(), kRecordedActionNames.end(), text);
    if (action == kRecordedActionNames.end()) return kOtherText;
    return static_cast<uint8_t>(kFirstAction + (action - kRecordedActionNames.begin()));
}

int64_t Fields::integer(Word key) const {
    const auto value = optional_integer(key);
    if (!value && has(key)) stop(fmt::format("'{}' is no whole number", kWords[key]));
    if (!value) stop(fmt::format("a number '{}' is missing", kWords[key]));
    return *value;
}

int64_t Fields::within(Word key, int64_t limit) const {
    const int64_t value = integer(key);
    if (value < 0 || value > limit) {
        stop(fmt::format("'{}' is {}, which is impossible", kWords[key], value));
    }
    return value;
}

}  // namespace profiler::snapshot
