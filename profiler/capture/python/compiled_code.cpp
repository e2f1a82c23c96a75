#include "profiler/capture/python/compiled_code.h"

#include "profiler/capture/call_stacks.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace profiler {
namespace {

struct CompiledPlace {
    std::string module;
    std::string op;
    std::string file;
    int64_t line = 0;
    std::string function;
};

std::optional<CompiledPlace> place_from(const nlohmann::json& row) {
    constexpr std::size_t kNumFields = 5;
    constexpr std::size_t kLine = 3;
    if (!row.is_array() || row.size() != kNumFields) return std::nullopt;
    for (std::size_t i = 0; i < kNumFields; ++i) {
        const bool is_right = i == kLine ? row[i].is_number_integer() : row[i].is_string();
        if (!is_right) return std::nullopt;
    }
    return CompiledPlace{row[0], row[1], row[2], row[kLine], row[4]};
}

/// By line of a file of compiled code.
using PlacesOfFile = std::unordered_map<int64_t, CompiledPlace>;

PlacesOfFile read_places(const std::string& code_file) {
    std::ifstream file(code_file + ".places.json");
    if (!file.is_open()) return {};
    const auto json = nlohmann::json::parse(file, nullptr, false);
    const auto lines = json.is_object() ? json.find("lines") : json.end();
    if (!json.is_object() || lines == json.end() || !lines->is_object()) return {};
    PlacesOfFile places;
    for (const auto& [number, row] : lines->items()) {
        auto place = place_from(row);
        if (place) places.emplace(std::strtoll(number.c_str(), nullptr, 10), *std::move(place));
    }
    return places;
}

class CompiledCode {
public:
    explicit CompiledCode(const Trace& trace) : trace_(trace) {}

    /// The place of the innermost line of compiled code; null: the stack has none.
    const CompiledPlace* place_of(Id<Stack> stack) {
        while (stack.valid()) {
            if (const CompiledPlace* place = place_of(trace_.stacks.get<&Stack::frame>(stack))) {
                return place;
            }
            stack = trace_.stacks.get<&Stack::parent>(stack);
        }
        return nullptr;
    }

private:
    const CompiledPlace* place_of(Id<Frame> frame) {
        const StringId file = trace_.frames.get<&Frame::file>(frame);
        const auto [places, is_new] = places_.try_emplace(file.value);
        if (is_new && trace_.text(file).ends_with(".py")) {
            places->second = read_places(std::string(trace_.text(file)));
        }
        const auto found = places->second.find(trace_.frames.get<&Frame::line>(frame));
        return found == places->second.end() ? nullptr : &found->second;
    }

    const Trace& trace_;
    std::unordered_map<decltype(StringId::value), PlacesOfFile> places_;  // by file
};

/// The tensors of each storage that nobody has named, and the storages that somebody has.
class UnnamedStorages {
public:
    explicit UnnamedStorages(const Trace& trace) : tensors_(trace.storages.size()) {
        is_named_.resize(trace.storages.size());
        for (const Id<Tensor> id : trace.tensors.ids()) {
            const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(id);
            if (!storage.valid()) continue;
            const std::string_view name = trace.text(trace.tensors.get<&Tensor::name>(id));
            const bool says_nothing = name.empty() || name.starts_with("CompiledFunction");
            if (says_nothing) tensors_[storage.index()].push_back(id);
            if (!says_nothing) is_named_[storage.index()] = true;
        }
    }

    void name(Id<Storage> storage, StringId name, Trace& trace) {
        if (!storage.valid() || is_named_[storage.index()]) return;
        is_named_[storage.index()] = true;
        const std::vector<Id<Tensor>>& tensors = tensors_[storage.index()];
        for (const Id<Tensor> id : tensors) trace.tensors.set<&Tensor::name>(id, name);
        if (tensors.empty()) trace.tensors.append({.storage = storage, .name = name});
    }

private:
    std::vector<std::vector<Id<Tensor>>> tensors_;
    std::vector<bool> is_named_;
};

}  // namespace

void name_compiled(Trace& trace, StackRows& rows,
                   const std::function<void(const std::string& path)>& add_module) {
    CompiledCode code(trace);
    UnnamedStorages unnamed(trace);
    for (const Id<Allocation> id : trace.allocations.ids()) {
        const Allocation allocation = trace.allocations[id];
        const CompiledPlace* const place = code.place_of(allocation.stack);
        if (place == nullptr) continue;
        if (!place->file.empty()) {
            const StackLine line{
                .function = place->function, .file = place->file, .line = place->line};
            trace.allocations.set<&Allocation::stack>(id, rows.add(allocation.stack, line));
        }
        if (place->module.empty()) continue;
        add_module(place->module);
        unnamed.name(allocation.storage,
                     trace.strings.intern(fmt::format("{}.{}", place->module, place->op)), trace);
    }
}

}  // namespace profiler
