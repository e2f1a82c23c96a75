#include "models/config/precision.h"

#include "models/config/names.h"

namespace models {

Result<Precision> parse_precision(std::string_view name) {
    return parse_name<Precision>(kPrecisionNames, name, "precision");
}

}  // namespace models
