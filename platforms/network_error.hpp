// How far the time of communication may be off, by what the numbers of a network rest on.
#pragma once
#include "base/spread.hpp"

namespace simsync {

/// Numbers of platforms/network_errors.yaml, which says what each of them was derived from.
struct NetworkErrors {
  Spread nominal;  ///< a preset as it is: data sheets, and measurements of other machines of its kind
  Spread set;      ///< some of its rates or costs are set to what was measured on the machine itself
  /// Not the network, but what comes with it: the compute of a step of several workers against that of one alone
  /// (collectives that slow it, stragglers, hooks of the framework), where the network hardly matters.
  Spread interference;
};

/// The built-in numbers, read once. @throws InputError when the file is missing or wrong.
const NetworkErrors& network_errors();

}  // namespace simsync
