// Which measurements would identify a parameter. Private to this folder.
#pragma once
#include <string>
#include <string_view>

namespace simsync::detail {

/// Rows that depend on the parameter of a key more than on others, in words that follow "measure".
std::string telling_rows(std::string_view key);

}  // namespace simsync::detail
