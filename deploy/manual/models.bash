
# The models of the server on the command line; none if it does not answer at once.
_perceptronctl_models() {
  local begun=$1 name rest
  while read -r name rest; do
    # Omits words that a shell would split.
    if [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]]; then _perceptronctl_offer "$begun" "$name"; fi
  done < <(perceptronctl "${connection[@]}" --timeout 0.5 list 2>/dev/null | tail -n +2)
}
