// What an action complains of.
#pragma once
#include <string>

#include "base/error.hpp"

namespace simsync::test {

/// Text of the InputError that `action` throws; "no error" when it throws none.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace simsync::test
