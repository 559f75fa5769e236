#include "strategies/strategy.hpp"
