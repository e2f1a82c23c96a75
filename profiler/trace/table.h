#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Tables of a trace: one vector per column, one strong id type per table.
///
/// A row type is a plain struct with a `columns()` list. That list is the only place that names a
/// column: access from C++, the SQLite schema and the wire format all follow from it.
///
///     struct Marker {
///         int64_t time_ns = 0;
///         static constexpr auto columns() {
///             return std::tuple(Column{"time_ns", &Marker::time_ns});
///         }
///     };
///     Table<Marker> markers;
///     Id<Marker> id = markers.append({.time_ns = 5});
///     for (const Marker marker : markers.rows()) ...
///     std::span<const int64_t> times = markers.column<&Marker::time_ns>();
namespace profiler {

/// Index of a row of `Table<Row>`; -1 means none. Ids of different tables do not convert.
template <typename Row>
struct Id {
    int32_t value = -1;

    constexpr Id() = default;
    constexpr explicit Id(std::size_t index) : value(static_cast<int32_t>(index)) {}

    constexpr bool valid() const { return value >= 0; }
    constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
    friend constexpr auto operator<=>(Id, Id) = default;
};

/// Name and member of one column. Values are integers, doubles, enums or ids.
template <typename Row, typename T>
struct Column {
    std::string_view name;
    T Row::*member;
    int since = 1;  // the version of the format that brought it: files of older ones lack it
    using Value = T;
};
// clang before 17 deduces none itself
template <typename Row, typename T>
Column(std::string_view, T Row::*) -> Column<Row, T>;
template <typename Row, typename T>
Column(std::string_view, T Row::*, int) -> Column<Row, T>;

/// The version of the format that brought the table of `Row`, as `Row::kSince` says: older files
/// lack it.
template <typename Row>
constexpr int table_since() {
    if constexpr (requires { Row::kSince; }) {
        return Row::kSince;
    } else {
        return 1;
    }
}

/// Memory for a column. Large columns get huge pages, which take far fewer page faults to fill.
void* allocate_column(std::size_t size_bytes);
void free_column(void* memory);

/// Allocator of a column's vector. `resize` leaves numbers uninitialized, for a reader to fill.
template <typename T>
struct ColumnAllocator {
    using value_type = T;

    ColumnAllocator() = default;
    template <typename U>
    ColumnAllocator(const ColumnAllocator<U>&) {}

    T* allocate(std::size_t count) { return static_cast<T*>(allocate_column(count * sizeof(T))); }
    void deallocate(T* memory, std::size_t) { free_column(memory); }
    template <typename U>
    void construct(U* place) {
        ::new (static_cast<void*>(place)) U;
    }
    template <typename U, typename... Args>
    void construct(U* place, Args&&... args) {
        ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
    }
    friend bool operator==(ColumnAllocator, ColumnAllocator) { return true; }
};

namespace detail {
template <typename Row, typename Columns>
struct ColumnVectors;
template <typename Row, typename... T>
struct ColumnVectors<Row, std::tuple<Column<Row, T>...>> {
    using Type = std::tuple<std::vector<T, ColumnAllocator<T>>...>;
};
template <typename M>
struct MemberValue;
template <typename Row, typename T>
struct MemberValue<T Row::*> {
    using Type = T;
};
}  // namespace detail

/// What `get` returns for 0, 1, ... below `size`, for a loop. clang 14 cannot compile std::views of
/// GCC 12's library.
template <typename Get>
struct Sequence {
    struct Iterator {
        const Get& get;
        std::size_t index;
        auto operator*() const { return get(index); }
        Iterator& operator++() {
            ++index;
            return *this;
        }
        bool operator==(const Iterator& other) const { return index == other.index; }
    };
    Get get;
    std::size_t size;

    Iterator begin() const { return {get, 0}; }
    Iterator end() const { return {get, size}; }
};

template <typename Row>
class Table {
public:
    using RowId = Id<Row>;
    template <auto Member>
    using ValueOf = typename detail::MemberValue<decltype(Member)>::Type;

    std::size_t size() const { return std::get<0>(values_).size(); }
    bool empty() const { return size() == 0; }

    /// The ids of the rows that are there now, in order.
    auto ids() const {
        const auto id = [](std::size_t index) { return RowId(index); };
        return Sequence<decltype(id)>{id, size()};
    }

    /// The same rows, each gathered from its columns.
    auto rows() const {
        const auto row = [this](std::size_t index) { return (*this)[RowId(index)]; };
        return Sequence<decltype(row)>{row, size()};
    }

    RowId append(const Row& row) {
        for_each_column(
            [&](const auto& column, auto& values) { values.push_back(row.*column.member); });
        return RowId(size() - 1);
    }

    /// The row, gathered from its columns. Loops over many rows read `column<>()` instead.
    Row operator[](RowId id) const {
        Row row;
        for_each_column([&](const auto& column, const auto& values) {
            row.*column.member = values[id.index()];
        });
        return row;
    }

    template <auto Member>
    std::span<const ValueOf<Member>> column() const {
        return std::get<index_of<Member>()>(values_);
    }

    template <auto Member>
    const ValueOf<Member>& get(RowId id) const {
        return std::get<index_of<Member>()>(values_)[id.index()];
    }

    template <auto Member>
    void set(RowId id, ValueOf<Member> value) {
        std::get<index_of<Member>()>(values_)[id.index()] = value;
    }

    /// Calls `visit(column, values)` for each column in schema order; `values` is its vector.
    template <typename Visit>
    void for_each_column(Visit&& visit) {
        visit_columns(values_, visit, kIndices);
    }
    template <typename Visit>
    void for_each_column(Visit&& visit) const {
        visit_columns(values_, visit, kIndices);
    }

private:
    static constexpr auto kColumns = Row::columns();
    using Columns = std::remove_const_t<decltype(kColumns)>;
    static constexpr auto kIndices = std::make_index_sequence<std::tuple_size_v<Columns>>{};

    template <auto Member, std::size_t I>
    static constexpr bool matches() {
        if constexpr (std::is_same_v<typename std::tuple_element_t<I, Columns>::Value,
                                     ValueOf<Member>>) {
            return std::get<I>(kColumns).member == Member;
        } else {
            return false;
        }
    }

    template <auto Member, std::size_t I = 0>
    static constexpr std::size_t index_of() {
        static_assert(I < std::tuple_size_v<Columns>, "not a column of this table");
        if constexpr (matches<Member, I>()) {
            return I;
        } else {
            return index_of<Member, I + 1>();
        }
    }

    template <typename Values, typename Visit, std::size_t... I>
    static void visit_columns(Values& values, Visit& visit, std::index_sequence<I...>) {
        (visit(std::get<I>(kColumns), std::get<I>(values)), ...);
    }

    typename detail::ColumnVectors<Row, Columns>::Type values_;
};

}  // namespace profiler
