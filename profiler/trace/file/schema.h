#pragma once

#include "profiler/trace/trace.h"

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

/// The SQL schema of the data model, derived from the `columns()` of each row type: one table per
/// `Table<Row>`, and a readable view `v_<table>` for each. Private to profiler/trace.
namespace profiler::schema {

inline constexpr int32_t kApplicationId = 0x54534350;  // "TSCP"

/// Names of an enumeration's values, in order.
constexpr std::span<const std::string_view> names_of(Source) { return kSourceNames; }
constexpr std::span<const std::string_view> names_of(TimeBasis) { return kTimeBasisNames; }
constexpr std::span<const std::string_view> names_of(RunState) { return kRunStateNames; }
constexpr std::span<const std::string_view> names_of(Severity) { return kSeverityNames; }
constexpr std::span<const std::string_view> names_of(StepKind) { return kStepKindNames; }
constexpr std::span<const std::string_view> names_of(PhaseKind) { return kPhaseKindNames; }
constexpr std::span<const std::string_view> names_of(OpClass) { return kOpClassNames; }
constexpr std::span<const std::string_view> names_of(Category) { return kCategoryNames; }
constexpr std::span<const std::string_view> names_of(DType) { return kDTypeNames; }
constexpr std::span<const std::string_view> names_of(Access) { return kAccessNames; }
constexpr std::span<const std::string_view> names_of(AllocatorAction) {
    return kAllocatorActionNames;
}
constexpr std::span<const std::string_view> names_of(SweepOutcome) { return kSweepOutcomeNames; }
constexpr std::span<const std::string_view> names_of(FailureOutcome) {
    return kFailureOutcomeNames;
}
constexpr std::span<const std::string_view> names_of(KeeperKind) { return kKeeperKindNames; }
constexpr std::span<const std::string_view> names_of(ValueReadKind) { return kValueReadKindNames; }
constexpr std::span<const std::string_view> names_of(CollectiveKind) {
    return kCollectiveKindNames;
}

template <typename T>
struct Reference : std::false_type {};
template <typename Row>
struct Reference<Id<Row>> : std::true_type {
    using Target = Row;
};
/// Whether a column of type T is an id.
template <typename T>
inline constexpr bool is_id = Reference<T>::value;

/// The name of the table of `Row` in the file. Strings are in the table "string".
template <typename Row>
std::string_view table_name() {
    if constexpr (std::is_same_v<Row, Text>) {
        return "string";
    } else {
        std::string_view found;
        const Trace trace;
        Trace::for_each_table(trace, [&](std::string_view name, const auto& table) {
            if constexpr (std::is_same_v<std::decay_t<decltype(table)>, Table<Row>>) found = name;
        });
        return found;
    }
}

/// All CREATE TABLE and CREATE VIEW statements.
std::string create_statements();

/// "INSERT INTO t VALUES(?, ...), ..." for rows of an id and `num_columns` columns; `verb` may be
/// REPLACE.
std::string insert_statement(std::string_view verb, std::string_view table, std::size_t num_columns,
                             std::size_t num_rows = 1);

}  // namespace profiler::schema
