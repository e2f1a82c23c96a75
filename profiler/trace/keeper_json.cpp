#include "profiler/trace/keeper_json.h"

#include "models/config/names.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>

namespace profiler {

Keeper keeper_from(const nlohmann::json& told, Id<Allocation> block, int64_t event,
                   StringTable& strings) {
    const auto text = [&](const char* key) { return told.at(key).get<std::string>(); };
    const auto kind = models::find_name<KeeperKind>(kKeeperKindNames, text("kind"));
    if (!kind) {
        throw std::invalid_argument(fmt::format("no keeper is of the kind '{}'", text("kind")));
    }
    const std::string file = text("file");
    const auto line = told.at("line").get<int64_t>();
    return {.allocation = block,
            .event = event,
            .kind = *kind,
            .text = strings.intern(text("text")),
            .file = file.empty() ? StringId() : strings.intern(file),
            .line = line > 0 ? line : -1};
}

}  // namespace profiler
