#pragma once

#include "profiler/trace/file/schema.h"
#include "profiler/trace/trace.h"
#include "profiler/trace/value_range.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

namespace tests {

/// Random rows in every table: values of every size, NULLs, and ids that exist.
class RandomTrace {
public:
    explicit RandomTrace(unsigned seed) : random_(seed) {}

    profiler::Trace make(std::size_t rows_per_table) {
        profiler::Trace trace;
        const std::string odd_texts[] = {"", "ä ∂ 漢字", std::string("nul\0inside", 10),
                                         "'quotes\"", std::string(20000, 'x')};
        for (const std::string& text : odd_texts) trace.strings.intern(text);
        for (std::size_t i = 0; i < rows_per_table; ++i)
            trace.strings.intern("text " + std::to_string(i));
        append_rows(trace, rows_per_table);
        return trace;
    }

    /// Adds rows to every table except the run, which has one row.
    void append_rows(profiler::Trace& trace, std::size_t count) {
        using namespace profiler;
        Trace::for_each_table(trace, [&]<typename Row>(std::string_view, Table<Row>& table) {
            const bool single = std::is_same_v<Row, Run>;
            if (single && !table.empty()) return;
            for (std::size_t i = 0; i < (single ? 1 : count); ++i) table.append({});
        });
        Trace::for_each_table(trace, [&]<typename Row>(std::string_view, Table<Row>& table) {
            for (std::size_t row = 0; row < table.size(); ++row) fill_row(trace, table, row);
        });
    }

private:
    template <typename Row>
    void fill_row(const profiler::Trace& trace, profiler::Table<Row>& table, std::size_t row) {
        table.for_each_column(
            [&]<typename T>(const profiler::Column<Row, T>& column, auto& values) {
                if constexpr (std::is_same_v<T, profiler::Id<Row>>) {
                    // Refers to an older row, so that there are no rings.
                    values[row] = row == 0 ? T() : T(random_() % row);
                } else if constexpr (std::is_same_v<T, int64_t>) {
                    values[row] = inside(profiler::range_of_column(column.name), value<T>(trace));
                } else {
                    values[row] = value<T>(trace);
                }
            });
    }

    /// A value as wide as `value` if its column allows it.
    static int64_t inside(const profiler::ValueRange& range, int64_t value) {
        if (range.is_summed) value %= int64_t{1} << 40;
        return range.holds(value) ? value : std::clamp(-value, range.min, range.max);
    }

    template <typename T>
    T value(const profiler::Trace& trace) {
        if constexpr (profiler::schema::is_id<T>) {
            const std::size_t rows =
                rows_of<typename profiler::schema::Reference<T>::Target>(trace);
            return rows == 0 || random_() % 4 == 0 ? T() : T(random_() % rows);
        } else if constexpr (std::is_enum_v<T>) {
            return static_cast<T>(random_() % profiler::schema::names_of(T{}).size());
        } else if constexpr (std::is_floating_point_v<T>) {
            const double values[] = {0,
                                     1,
                                     -2.5,
                                     1e300,
                                     std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};
            return values[random_() % 6];
        } else {
            // Every width that SQLite stores: 0, 1, 8, 16, 24, 32, 48 and 64 bits, and none.
            const int bits = static_cast<int>(random_() % 64);
            const auto magnitude = static_cast<T>(random_() & ((uint64_t{1} << bits) - 1));
            return random_() % 3 == 0 ? -magnitude - 1 : magnitude;
        }
    }

    template <typename Row>
    static std::size_t rows_of(const profiler::Trace& trace) {
        if constexpr (std::is_same_v<Row, profiler::Text>) {
            return trace.strings.size();
        } else {
            std::size_t rows = 0;
            profiler::Trace::for_each_table(trace, [&](std::string_view, const auto& table) {
                if constexpr (std::is_same_v<std::decay_t<decltype(table)>, profiler::Table<Row>>) {
                    rows = table.size();
                }
            });
            return rows;
        }
    }

    std::mt19937_64 random_;
};

}  // namespace tests
