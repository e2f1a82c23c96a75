#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// A table of text: for the panel, the HTML page and terminals.
namespace profiler {

/// How a value reads: less memory is good, less throughput is bad.
enum class Tone : uint8_t { kNeutral, kGood, kBad, kStrong };

enum class Align : uint8_t { kLeft, kRight };

struct TextTable {
    struct Column {
        std::string title;
        Align align = Align::kLeft;
        std::string explanation = {};  // what the number is and how it came about, for a (?) marker
    };
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows;  // a cell per column
    std::vector<std::vector<Tone>> tones;        // the same shape; empty: all are neutral
};

}  // namespace profiler
