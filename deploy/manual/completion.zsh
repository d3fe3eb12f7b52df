#compdef @PROGRAM@
# Generated from the program's options.
@MODELS@
_@PROGRAM@() {
  local context state state_descr line
  local -A opt_args
  local -a all
  all=("${words[@]}")
@TABLES@}

_@PROGRAM@ "$@"
