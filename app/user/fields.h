#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Forms and queries as named texts, for the settings file. One list of fields serves both
/// directions:
///
///     void visit_fields(FlameQuery& query, const auto& visit) {
///         visit("search", query.search);
///         visit("show", query.mode, kTraces);
///     }
///     visit_fields(query, FieldWriter(fields));
///     visit_fields(query, FieldReader(fields));
namespace app {

using Fields = std::map<std::string, std::string>;

/// The names of an enum's values, in their order.
template <std::size_t N>
using Names = std::array<std::string_view, N>;
inline constexpr Names<2> kNoYes{"no", "yes"};
inline constexpr Names<2> kOffOn{"off", "on"};

class FieldWriter {
public:
    explicit FieldWriter(Fields& fields) : fields_(fields) {}

    void operator()(const char* name, const std::string& text) const { fields_[name] = text; }
    void operator()(const char* name, int64_t number) const {
        fields_[name] = std::to_string(number);
    }
    /// 0 stands for none.
    void operator()(const char* name, const std::optional<int64_t>& number) const {
        (*this)(name, number.value_or(0));
    }
    void operator()(const char* name, const std::vector<std::string>& words) const {
        std::string& text = fields_[name];
        for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    }
    template <typename T, std::size_t N>
    void operator()(const char* name, T value, const Names<N>& names) const {
        fields_[name] = names[static_cast<std::size_t>(value)];
    }
    template <typename T, std::size_t N>
    void operator()(const char* name, std::optional<T> value, const Names<N>& names) const {
        if (value) (*this)(name, *value, names);
    }

private:
    Fields& fields_;
};

/// A field that is missing, or cannot be read, keeps its value.
class FieldReader {
public:
    explicit FieldReader(const Fields& fields) : fields_(fields) {}

    void operator()(const char* name, std::string& text) const {
        const std::string* const found = find(name);
        if (found && found->size() <= kLongestText) text = *found;
    }
    void operator()(const char* name, int64_t& number) const {
        if (const std::string* found = find(name)) {
            std::from_chars(found->data(), found->data() + found->size(), number);
        }
    }
    void operator()(const char* name, std::optional<int64_t>& number) const {
        int64_t read = number.value_or(0);
        (*this)(name, read);
        number = read == 0 ? std::nullopt : std::optional(read);
    }
    void operator()(const char* name, std::vector<std::string>& words) const {
        std::istringstream text(find(name) ? *find(name) : "");
        std::vector<std::string> read;
        for (std::string word; text >> word;) read.push_back(std::move(word));
        if (!read.empty()) words = std::move(read);
    }
    template <typename T, std::size_t N>
    void operator()(const char* name, T& value, const Names<N>& names) const {
        std::optional<T> read;
        (*this)(name, read, names);
        value = read.value_or(value);
    }
    /// Here a missing name is a value of its own.
    template <typename T, std::size_t N>
    void operator()(const char* name, std::optional<T>& value, const Names<N>& names) const {
        value.reset();
        const std::string* const found = find(name);
        for (std::size_t i = 0; found && i < N; ++i) {
            if (*found == names[i]) value = static_cast<T>(i);
        }
    }

private:
    /// No path is longer; a damaged file may hold such a text.
    static constexpr std::size_t kLongestText = 4096;

    const std::string* find(const char* name) const {
        const auto found = fields_.find(name);
        return found != fields_.end() ? &found->second : nullptr;
    }
    const Fields& fields_;
};

}  // namespace app
