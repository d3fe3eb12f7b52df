#compdef @PROGRAM@
# Made from the program's own options.
@MODELS@
_@PROGRAM@() {
  local context state state_descr line
  local -A opt_args
  local -a all
  all=("${words[@]}")
@TABLES@}

_@PROGRAM@ "$@"
