#include "profiler/trace/file/schema.h"

#include "profiler/trace/file/sqlite.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace profiler::schema {
namespace {

using sqlite::quoted_name;

std::string string_at(std::string_view id) {
    return fmt::format("(SELECT text FROM string WHERE id = {})", id);
}

std::string text_of(std::string_view table, std::string_view column, std::string_view id) {
    return fmt::format("(SELECT s.text FROM {} r JOIN string s ON s.id = r.{} WHERE r.id = {})",
                       quoted_name(table), quoted_name(column), id);
}

template <typename Enum>
std::string enum_text(std::string_view value) {
    std::string sql = fmt::format("CASE {}", value);
    const auto names = names_of(Enum{});
    for (std::size_t i = 0; i < names.size(); ++i) {
        sql += fmt::format(" WHEN {} THEN '{}'", i, names[i]);
    }
    return sql + " END";
}

/// The column that names a row of `Target` to people, as (suffix, SQL); empty when it has none.
template <typename Target>
std::pair<std::string_view, std::string> label_of(std::string_view id) {
    if constexpr (std::is_same_v<Target, Op>) return {"name", text_of("op", "name", id)};
    if constexpr (std::is_same_v<Target, ModulePath>) return {"path", text_of("scope", "path", id)};
    if constexpr (std::is_same_v<Target, Device>) return {"name", text_of("device", "name", id)};
    if constexpr (std::is_same_v<Target, Thread>) return {"name", text_of("thread", "name", id)};
    if constexpr (std::is_same_v<Target, Kernel>) return {"name", text_of("kernel", "name", id)};
    if constexpr (std::is_same_v<Target, Communicator>) {
        return {"name", text_of("communicator", "name", id)};
    }
    if constexpr (std::is_same_v<Target, Tensor>) return {"name", text_of("tensor", "name", id)};
    if constexpr (std::is_same_v<Target, Frame>) {
        return {"function", text_of("frame", "function", id)};
    }
    if constexpr (std::is_same_v<Target, Phase>) {
        return {"kind", fmt::format("(SELECT {} FROM phase WHERE id = {})",
                                    enum_text<PhaseKind>("kind"), id)};
    }
    return {};
}

template <typename T>
std::string column_type(std::string_view name) {
    if constexpr (is_id<T>) {
        return fmt::format("{} INTEGER REFERENCES {}(id)", quoted_name(name),
                           quoted_name(table_name<typename Reference<T>::Target>()));
    } else if constexpr (std::is_floating_point_v<T>) {
        return quoted_name(name) + " REAL";
    } else {
        return quoted_name(name) + " INTEGER";
    }
}

/// A column as people read it: text for strings and enumerations, and a label beside an id.
template <typename T>
std::string readable_column(std::string_view name) {
    const std::string value = "t." + quoted_name(name);
    if constexpr (std::is_same_v<T, StringId>) {
        return fmt::format("{} AS {}", string_at(value), quoted_name(name));
    } else if constexpr (std::is_enum_v<T>) {
        return fmt::format("{} AS {}", enum_text<T>(value), quoted_name(name));
    } else if constexpr (is_id<T>) {
        const auto [suffix, sql] = label_of<typename Reference<T>::Target>(value);
        if (suffix.empty()) return value;
        return fmt::format("{},\n  {} AS {}", value, sql,
                           quoted_name(fmt::format("{}_{}", name, suffix)));
    } else {
        return value;
    }
}

/// What a view adds to the columns of its table.
std::vector<std::string> derived_columns(std::string_view table) {
    constexpr std::string_view kDuration = "t.end_ns - t.start_ns AS duration_ns";
    const auto storage = [](std::string_view column, std::string_view id) {
        return fmt::format("(SELECT {} FROM storage WHERE id = {})", column, id);
    };
    const auto op_module_path = [](std::string_view id) {
        return fmt::format(
            "(SELECT s.text FROM op o JOIN scope c ON c.id = o.scope "
            "JOIN string s ON s.id = c.path WHERE o.id = {}) AS scope_path",
            id);
    };
    const std::string category = enum_text<Category>("role");
    const std::string tensor_dtype = fmt::format(
        "(SELECT {} FROM tensor WHERE id = t.tensor) AS dtype", enum_text<DType>("dtype"));
    if (table == "step" || table == "phase" || table == "kernel" || table == "memcpy" ||
        table == "api" || table == "annotation" || table == "collective") {
        return {std::string(kDuration)};
    }
    if (table == "op") {
        return {std::string(kDuration), "(SELECT layer FROM scope WHERE id = t.scope) AS layer"};
    }
    if (table == "tensor") {
        return {storage("size_bytes", "t.storage") + " AS storage_bytes",
                storage(category, "t.storage") + " AS role"};
    }
    if (table == "op_tensor") {
        return {text_of("tensor", "shape", "t.tensor") + " AS shape", tensor_dtype};
    }
    if (table == "save") {
        return {text_of("tensor", "shape", "t.tensor") + " AS shape", tensor_dtype,
                storage("size_bytes", "t.storage") + " AS size_bytes",
                storage(category, "t.storage") + " AS role", op_module_path("t.op")};
    }
    if (table == "allocation") {
        return {storage(category, "t.storage") + " AS role", op_module_path("t.op"),
                "t.free_requested_ns - t.alloc_ns AS lifetime_ns"};
    }
    return {};
}

template <typename Row>
std::string create_table(std::string_view name) {
    std::string sql = fmt::format("CREATE TABLE {}(\n  id INTEGER PRIMARY KEY", quoted_name(name));
    const Table<Row> table;
    table.for_each_column([&]<typename T>(const Column<Row, T>& column, const auto&) {
        sql += ",\n  " + column_type<T>(column.name);
    });
    return sql + ");\n";
}

template <typename Row>
std::string create_view(std::string_view name) {
    std::string sql = fmt::format("CREATE VIEW v_{} AS SELECT\n  t.id AS id", name);
    const Table<Row> table;
    table.for_each_column([&]<typename T>(const Column<Row, T>& column, const auto&) {
        sql += ",\n  " + readable_column<T>(column.name);
    });
    for (const std::string& derived : derived_columns(name)) sql += ",\n  " + derived;
    return sql + fmt::format("\nFROM {} t;\n", quoted_name(name));
}

/// Bytes in use after each allocator event, per device. A block counts until its free is complete.
constexpr std::string_view kMemoryView = R"(CREATE VIEW v_memory AS
WITH delta AS (
  SELECT device, alloc_event AS event, alloc_ns AS time_ns, block_bytes AS delta_bytes
  FROM allocation
  UNION ALL
  SELECT device, free_completed_event, free_completed_ns, -block_bytes
  FROM allocation WHERE free_completed_event IS NOT NULL)
SELECT device, event, time_ns, delta_bytes,
  sum(delta_bytes) OVER (PARTITION BY device ORDER BY event) AS allocated_bytes
FROM delta ORDER BY device, event;
)";

/// The storages that are saved for backward when the last recorded backward begins. Each has one
/// row, which belongs to the op that saved it first. Parameters, gradients, optimizer state and
/// inputs are left out.
std::string ledger_view() {
    return fmt::format(
        R"(CREATE VIEW v_ledger AS
WITH before AS (
  SELECT id, max(last_event) OVER () AS last_event FROM phase
  WHERE kind IN ({forward}, {loss}) AND step = (SELECT max(id) FROM step)),
kept AS (
  SELECT min(v.id) AS id, v.storage AS storage, v.tensor AS tensor, v.op AS op,
    group_concat(DISTINCT {saver}) AS saved_by
  FROM save v JOIN op o ON o.id = v.op JOIN before b ON b.id = o.phase
  WHERE v.released_event IS NULL OR v.released_event >= b.last_event
  GROUP BY v.storage)
SELECT {scope} AS scope, {op} AS op, {tensor} AS tensor,
  {shape} AS shape, (SELECT {dtype} FROM tensor WHERE id = k.tensor) AS dtype,
  {role} AS role, g.size_bytes, k.saved_by, k.storage
FROM kept k JOIN storage g ON g.id = k.storage JOIN op o ON o.id = k.op
WHERE g.role NOT IN ({parameter}, {gradient}, {optimizer_state}, {input})
ORDER BY k.id;
)",
        fmt::arg("forward", static_cast<int>(PhaseKind::kForward)),
        fmt::arg("loss", static_cast<int>(PhaseKind::kLoss)),
        fmt::arg("saver", string_at("o.name")),
        fmt::arg("scope", text_of("scope", "path", "o.scope")), fmt::arg("op", string_at("o.name")),
        fmt::arg("tensor", text_of("tensor", "name", "k.tensor")),
        fmt::arg("shape", text_of("tensor", "shape", "k.tensor")),
        fmt::arg("dtype", enum_text<DType>("dtype")),
        fmt::arg("role", enum_text<Category>("g.role")),
        fmt::arg("parameter", static_cast<int>(Category::kParameter)),
        fmt::arg("gradient", static_cast<int>(Category::kGradient)),
        fmt::arg("optimizer_state", static_cast<int>(Category::kOptimizerState)),
        fmt::arg("input", static_cast<int>(Category::kInput)));
}

}  // namespace

std::string create_statements() {
    std::string tables =
        "CREATE TABLE string(\n  id INTEGER PRIMARY KEY,\n  text TEXT NOT NULL);\n";
    std::string views;
    const Trace trace;
    Trace::for_each_table(trace, [&]<typename Row>(std::string_view name, const Table<Row>&) {
        tables += create_table<Row>(name);
        views += create_view<Row>(name);
    });
    return tables + views + std::string(kMemoryView) + ledger_view();
}

std::string insert_statement(std::string_view verb, std::string_view table, std::size_t num_columns,
                             std::size_t num_rows) {
    std::string row = "(?";
    for (std::size_t i = 0; i < num_columns; ++i) row += ", ?";
    row += ')';
    std::string sql = fmt::format("{} INTO {} VALUES{}", verb, quoted_name(table), row);
    for (std::size_t i = 1; i < num_rows; ++i) sql += ", " + row;
    return sql;
}

}  // namespace profiler::schema
