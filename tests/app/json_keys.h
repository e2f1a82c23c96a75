#pragma once

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <set>
#include <string>

/// What docs/commands.md says of the commands' JSON.
namespace tests {

using Keys = std::set<std::string>;

/// Lines "**name**: `a, b, c`" of the document.
std::map<std::string, Keys> documented_keys();

Keys keys_of(const nlohmann::json& object);

/// The keys that the document lists under a name; a failure, and none, where it lists none.
Keys documented(const std::string& name);

}  // namespace tests
