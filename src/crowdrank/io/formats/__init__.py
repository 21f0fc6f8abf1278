"""External formats. Each module defines one or more `Format`s; `registry` lists and detects them."""
