// How far the time of communication may be off, by what the numbers of a network rest on.
#pragma once
#include "base/deviation.hpp"

namespace simsync {

/// Numbers of platforms/network_errors.yaml, which says what each of them was derived from.
struct NetworkErrors {
  Deviation nominal;  ///< a preset as it is: data sheets, and measurements of other machines of its kind
  Deviation set;      ///< some of its rates or costs are set to what was measured on the machine itself
};

/// The built-in numbers, read once. @throws InputError when the file is missing or wrong.
const NetworkErrors& network_errors();

}  // namespace simsync
