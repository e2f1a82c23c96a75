#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace models {

/// How many tokens go to which expert of a mixture, where a router's scores are not known.
struct Routing {
    enum class Kind : uint8_t {
        kBalanced,  // row r goes to experts (r k + j) mod N, j < k
        kZeros,     // nothing is assumed: places read as zeros
        kZipf,      // expert e is chosen in proportion to 1 / (e + 1)^strength
        kWorst,     // expert 0 gets `strength` times its fair share
        kRandom     // each expert is as likely as another one
    };
    Kind kind = Kind::kBalanced;
    double strength = 1.0;
    uint64_t seed = 0;  // of kZipf and kRandom
};

/// How much more the fullest expert gets where the memory of an uneven routing is asked for.
inline constexpr Routing kImbalanced{.kind = Routing::Kind::kWorst, .strength = 1.5};

/// "balanced", "zeros", "zipf:1.2", "worst:1.5" or "seed:7". Errors: another text.
Result<Routing> parse_routing(std::string_view text);
std::string to_text(const Routing& routing);

}  // namespace models
